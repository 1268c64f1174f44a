"""Budgets of two groups of runs: rounds, epochs and client tasks, which must be equal, and what else they spent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from raysim.judge.refusals import Refusal
from raysim.judge.runs import Pairs, Run

if TYPE_CHECKING:
    from pandas import DataFrame

BUDGET: Mapping[str, tuple[str, Callable[[Run], float]]] = {
    "rounds": ("rounds.csv", lambda run: len(run.rounds)),
    "epochs": ("rounds.csv, epochs_total", lambda run: _last(run, "epochs_total")),
    "client tasks": ("clients.csv", lambda run: len(run.clients)),
    "judged rounds": ("rounds.csv, accuracy or loss", lambda run: int(_judged(run))),
}
"""Part of the budget, equal in both runs of a pair → where it stands, and how much of it a run had."""
PACED = ("rounds", "client tasks", "judged rounds")
"""Parts of the budget that are the method's own choice where the number of epochs is given (``--epochs``)."""


def refusals(pairs: Pairs) -> Iterator[Refusal]:
    """Parts of the budget that one run of a pair had more of."""
    paced = bool(pairs[0][0].settings.get("schedule.epochs"))
    for name, (where, spent) in BUDGET.items():
        if name in PACED and paced:
            continue
        for first, second in pairs:
            own, others = spent(first), spent(second)
            if own != others and not (_ends_early(first) and _ends_early(second)):
                texts = f"had {own:,.10g} {name} (seed {first.seed})", f"had {others:,.10g}"
                why = "The side with more of it had the larger budget."
                yield Refusal(name, where, *texts, why, f"Run both sides with as many {name}.")
                break


def spent(pairs: Pairs) -> dict[str, tuple[float, float]]:
    """Part of what was spent, limited or not → its sum over the runs of each side."""
    measures = {name: own for name, (_, own) in BUDGET.items()}
    measures["steps"] = lambda run: _sum(run.clients, "steps")
    measures["bytes_down"] = lambda run: _sum(run.rounds, "bytes_down")
    measures["bytes_up"] = lambda run: _sum(run.rounds, "bytes_up")
    measures["virtual_seconds"] = lambda run: _last(run, "virtual_seconds")
    sums = {name: [sum(own(pair[place]) for pair in pairs) for place in (0, 1)] for name, own in measures.items()}
    return {name: (first, second) for name, (first, second) in sums.items() if first or second}


def _sum(table: DataFrame, column: str) -> float:
    return float(table[column].sum()) if column in table else 0.0


def _last(run: Run, column: str) -> float:
    return float(run.rounds[column].iloc[-1]) if column in run.rounds else 0.0


def _judged(run: Run) -> int:
    known = [name for name in ("accuracy", "loss") if name in run.rounds]
    return int(run.rounds[known[0]].count()) if known else 0


def _ends_early(run: Run) -> bool:
    """Whether the run may end before its last round; by test data it is refused elsewhere."""
    return bool(run.settings.get("evaluation.patience")) or run.settings.get("evaluation.stop_at") is not None
