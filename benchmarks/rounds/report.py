"""Medians, ratios and the check that every system trains, of one workload."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.rounds.running import Run, growth, peak
from benchmarks.rounds.task import WORKLOADS, Workload

if TYPE_CHECKING:
    import pandas as pd

REFERENCE = "bare"
COLUMNS = (("start_seconds", "start to first step, s", 1), ("peak_mib", "peak memory, MiB", 0))
"""Columns of the rows that have a line of their own in a page's table, its label, and digits behind the point."""


@dataclass(frozen=True)
class Table:
    text: str
    """In Markdown."""
    trains: bool
    """Every system is as accurate as the reference, and the reference more than chance."""


def table(
    workload: Workload, timed: Mapping[str, Sequence[Run]], watched: Mapping[str, Run], tolerance: float
) -> Table:
    """Sum up; ``watched`` are the runs that were not timed but looked at, for memory and (where there is one) accuracy.

    Where there are none, accuracy is that after the few rounds that were timed.
    """
    seconds = {
        name: [s for run in runs for s in run.result.seconds[workload.warm_up :]] for name, runs in timed.items()
    }
    judged = {name: [watched[name]] if name in watched else runs for name, runs in timed.items()}
    accuracies = {name: statistics.median(run.result.accuracy for run in runs) for name, runs in judged.items()}
    reference = REFERENCE if REFERENCE in timed else next(iter(timed))
    floor, expected = statistics.median(seconds[reference]), accuracies[reference]
    repeats = len(timed[reference])
    lines = [
        f"{workload.name}: {workload.about}, {workload.clients} clients x {workload.samples}, "
        f"{workload.participants} a round; medians of "
        f"{len(seconds[reference])} rounds in {repeats} start{'s' if repeats > 1 else ''}",
        "",
        f"| system | seconds a round (least, most) | of {reference} | start s | peak GiB | growth kB a round "
        "| accuracy |",
        "|---|---|---|---|---|---|---|",
    ]
    trains = expected >= workload.learned
    for name, runs in timed.items():
        own, accuracy = seconds[name], accuracies[name]
        start = statistics.median(run.start_seconds for run in runs)
        memory = ["", ""]
        if name in watched:
            run = watched[name]
            memory = [f"{peak(run) / 2**30:.2f}", f"{growth(run) / 1e3:.0f}"]
        agrees = abs(accuracy - expected) <= tolerance
        trains &= agrees
        median = statistics.median(own)
        cells = [
            name,
            f"{median:.3g} ({min(own):.3g}, {max(own):.3g})",
            f"{median / floor:.2f}x",
            f"{start:.1f}",
            *memory,
            f"{accuracy:.3f}{'' if agrees else ' DIFFERS'}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    if not trains:
        lines += [
            "",
            f"NOT ALL TRAIN: {reference} has to reach {workload.learned}, and all others its accuracy up to "
            f"{tolerance}",
        ]
    return Table("\n".join(lines) + "\n", trains)


def row(workload: Workload, system: str, run: Run, *, watched: bool) -> dict[str, Any]:
    """One start as a row: the seconds of all rounds, and memory if it was watched (its seconds do not count then)."""
    return {
        "workload": workload.name,
        "system": system,
        "watched": watched,
        "warm_up": workload.warm_up,
        "seconds": " ".join(f"{value:.4g}" for value in run.result.seconds),
        "start_seconds": round(run.start_seconds, 2),
        "peak_mib": round(peak(run) / 2**20) if watched else "",
        "growth_kib": round(growth(run) / 2**10) if watched else "",
        "accuracy": round(run.result.accuracy, 4),
        "versions": " ".join(f"{name}={version}" for name, version in run.result.versions.items()),
    }


def of_rows(path: Path) -> str:
    """The table of a page, made of the rows of a file: seconds and their ratio to the bare loop, start and memory."""
    import pandas as pd

    rows = pd.read_csv(path)
    systems = list(dict.fromkeys(rows["system"]))
    lines = [f"| | {' | '.join(systems)} |", "|---" * (len(systems) + 1) + "|"]
    for name in (name for name in WORKLOADS if name in set(rows["workload"])):
        of_workload = rows[rows["workload"] == name]
        by_system = {system: of_workload[of_workload["system"] == system] for system in systems}
        timed = {system: _seconds(own[~own["watched"]]) for system, own in by_system.items()}
        floor = statistics.median(timed[REFERENCE])
        cells = [_cell(own, floor, bare=system == REFERENCE) for system, own in timed.items()]
        lines.append(f"| {name}, seconds a round | {' | '.join(cells)} |")
        for column, label, digits in (
            ("start_seconds", "start to first step, s", 1),
            ("peak_mib", "peak memory, MiB", 0),
        ):
            medians = [own[column].median() for own in by_system.values()]
            if any(value == value for value in medians):
                cells = [f"{value:.{digits}f}" if value == value else "" for value in medians]
                lines.append(f"| {name}, {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _seconds(starts: pd.DataFrame) -> list[float]:
    """Seconds of all rounds after the warm-up of each start."""
    return [
        float(word)
        for words, warm_up in zip(starts["seconds"], starts["warm_up"], strict=True)
        for word in words.split()[warm_up:]
    ]


def _cell(seconds: list[float], floor: float, *, bare: bool) -> str:
    if not seconds:
        return ""
    median = statistics.median(seconds)
    ratio = "" if bare else f", {median / floor:.2f}x"
    return f"{median:.3g} ({min(seconds):.3g} to {max(seconds):.3g}){ratio}"
