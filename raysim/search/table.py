"""The page of a search: every trial, the best in bold, and the budget that it had."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING

from raysim.errors import ConfigError
from raysim.schedule import planned_intervals
from raysim.search.halving import ROUNDS
from raysim.search.space import typed
from raysim.search.trials import Search, Trial, best_of
from raysim.studies.pictures import scale_of
from raysim.units import counted

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig


def page(search: Search, trials: Sequence[Trial], command: str, config: RunConfig) -> str:
    """The page as Markdown.

    Args:
        command: the command line that makes it again.
        config: one of the runs, for the number of rounds of a trial whose values no run can have together.
    """
    known = {("", str(trial.number), search.measure.name): [*trial.measured] for trial in trials if trial.measured}
    scale = scale_of(search.measure, known)
    names = [axis.path.rpartition(".")[2].replace("_", " ") for axis in search.axes]
    heads = [
        "trial",
        *names,
        *(["rounds"] if search.bracket else []),
        scale.heading(search.measure.name.replace("_", " ")),
    ]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    best = best_of(trials, search.measure)
    for trial in trials:
        values = [_shown(trial.values[axis.path]) for axis in search.axes]
        reached = [str(trial.rungs[-1][0]) if trial.rungs else "–"] if search.bracket else []
        value = "failed" if trial.measured is None else scale.text([*trial.measured])
        row = [str(trial.number), *values, *reached, value]
        lines.append("| " + " | ".join(f"**{text}**" if trial is best else text for text in row) + " |")
    return "\n".join([*lines, "", *_below(search, trials, config), "", f"    {command}", ""])


def _below(search: Search, trials: Sequence[Trial], config: RunConfig) -> list[str]:
    """The lines under the table: its budget, who chose by which measure, and whether trials are left."""
    choice = "" if search.bracket is None else ", of trials that were trained to the end"
    lines = [
        f"{_budget(search, trials, config)}; methods that are compared need searches of the same.",
        f"Chosen by the mean of {search.measure.name} over the seeds, on validation data{choice}. "
        f"Asked by Optuna's TPE (seed {search.sampler_seed}) in batches of {search.batch}.",
    ]
    if len(trials) < search.trials:
        lines.append(f"{counted(search.trials - len(trials), 'trial')} left; the same command goes on.")
    return lines


def _budget(search: Search, trials: Sequence[Trial], config: RunConfig) -> str:
    """The rounds that all trials were given, which follow from the request alone, and those that were trained of them.

    Args:
        config: as of :func:`page`.
    """
    seeds, trained = counted(len(search.seeds), "seed"), sum(trial.trained for trial in trials)
    if search.bracket is None:
        runs = [rounds for trial in trials for rounds in _rounds(trial, config)]
        given, least, most = sum(runs), min(runs, default=0), max(runs, default=0)
        each = counted(most, "round") if least == most else f"{least:,} to {counted(most, 'round')}"
        words = f"{counted(len(trials), 'trial')} × {seeds} × {each}"
    else:
        rungs, brackets = search.bracket.rungs, len(trials) // search.batch
        sizes = search.bracket.sizes(search.batch)
        steps = [rung - before for before, rung in zip((0, *rungs), rungs, strict=False)]
        given = brackets * len(search.seeds) * sum(map(operator.mul, sizes, steps))
        climbed = ", ".join(f"{size} to round {rung}" for size, rung in zip(sizes, rungs, strict=True))
        words = f"{counted(brackets, 'bracket')} × {seeds} × trials ({climbed})"
    fewer = f", of which {trained:,} were trained (runs failed or ended early)" if trained != given else ""
    return f"Budget: {words} = {given:,} rounds{fewer}"


def _rounds(trial: Trial, config: RunConfig) -> list[int]:
    """The rounds that each run of a trial was given: options that are searched may decide on them."""
    try:
        return [len(planned_intervals(cell.config())) for cell in trial.cells]
    except ConfigError:  # values that no run can have together
        return [trial.values.get(ROUNDS, len(planned_intervals(config)))] * len(trial.cells)


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else typed(value)
