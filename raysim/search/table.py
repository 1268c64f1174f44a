"""The page of a search: every trial, the best in bold, and the budget that it had."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from raysim.schedule import planned_intervals
from raysim.search.trials import Search, Trial, best_of
from raysim.studies.pictures import scale_of
from raysim.units import counted

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig


def page(search: Search, trials: Sequence[Trial], command: str, config: RunConfig) -> str:
    """The page as Markdown.

    Args:
        command: the command line that makes it again.
        config: one of the runs, for the number of its rounds.
    """
    known = {("", str(trial.number), search.measure.name): [*trial.measured] for trial in trials if trial.measured}
    scale = scale_of(search.measure, known)
    names = [axis.path.rpartition(".")[2].replace("_", " ") for axis in search.axes]
    heads = ["trial", *names, scale.heading(search.measure.name.replace("_", " "))]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    best = best_of(trials, search.measure)
    for trial in trials:
        values = [_shown(trial.values[axis.path]) for axis in search.axes]
        row = [str(trial.number), *values, "failed" if trial.measured is None else scale.text([*trial.measured])]
        lines.append("| " + " | ".join(f"**{text}**" if trial is best else text for text in row) + " |")
    return "\n".join([*lines, "", *_below(search, trials, config), "", f"    {command}", ""])


def _below(search: Search, trials: Sequence[Trial], config: RunConfig) -> list[str]:
    """The lines under the table: its budget, who chose by which measure, and whether trials are left."""
    rounds = len(planned_intervals(config))
    seeds, total = counted(len(search.seeds), "seed"), len(trials) * len(search.seeds) * rounds
    fewer = ", or fewer where a run ended early" if config.evaluation.ends_early else ""
    lines = [
        f"Budget: {counted(len(trials), 'trial')} × {seeds} × {counted(rounds, 'round')} = {total:,} rounds{fewer}; "
        "methods that are compared need searches of the same.",
        f"Chosen by the mean of {search.measure.name} over the seeds, on validation data. "
        f"Asked by Optuna's TPE (seed {search.sampler_seed}) in batches of {search.batch}.",
    ]
    if len(trials) < search.trials:
        lines.append(f"{counted(search.trials - len(trials), 'trial')} left; the same command goes on.")
    return lines


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.4g}" if isinstance(value, float) else str(value)
