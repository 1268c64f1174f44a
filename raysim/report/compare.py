"""A page that compares runs: curves over each other, and figures as mean ± spread over the seeds of a setting.

Runs of one setting differ in their seed alone.
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

from raysim import units
from raysim.config.options import show
from raysim.config.run_config import flatten, options_of
from raysim.errors import ResultsError
from raysim.report.figures import figures, text_of
from raysim.report.html import Cell, Link, Number, Table, in_both_forms, render
from raysim.report.plots import comparison_picture, cost_picture, drawn_costs
from raysim.results.result import RunResult, load_result
from raysim.storage.atomic_files import write_atomically
from raysim.storage.run_record import is_synthetic, part_name
from raysim.workloads.naming import synthetic_mark

SEED = "seed"


@dataclass(frozen=True)
class Setting:
    """One setting: what its runs have in common, and the runs, one for each seed."""

    label: str
    """The options in which it differs from the other settings, in a few words."""
    differing: Mapping[str, str]
    """Option → its value as text, empty where the setting has no such option; the same options for each setting."""
    runs: tuple[RunResult, ...]
    repeated: tuple[RunResult, ...]
    """Runs with a seed that another of its runs has: they say nothing new."""

    @property
    def seeds(self) -> list[str]:
        """The seeds of its runs."""
        return [str(run.config.get(SEED, "?")) for run in self.runs]


def compare(folders: Sequence[Path], target: Path, differences: Table | None = None) -> list[Path]:
    """Writes a page with curves and a table of several runs' results, and the table as CSV beside it.

    Runs that differ in their seed alone are one line: its mean, and a band of one standard deviation over seeds.

    Args:
        folders: the runs'.
        target: the page.
        differences: of two runs by client, for a table of its own.

    Raises:
        ResultsError: a folder holds no run, or the page cannot be written.
    """
    if target.suffix == ".csv":
        raise ResultsError(f"--out {target}: this is the name of the table beside the page; end it in .html.")
    results = [load_result(folder) for folder in folders]
    settings = group(results)
    title = _title(results, len(settings))
    runs = [(setting.label + _mark(setting.runs[0]), [run.rounds for run in setting.runs]) for setting in settings]
    judged = [run for run in runs if all("accuracy" in rounds for rounds in run[1])]
    content: dict[str, object] = {
        "title": title,
        "notes": _notes(results, settings),
        "curves": in_both_forms(lambda form: comparison_picture(runs, title, form), "curves of all runs"),
        "costs": in_both_forms(lambda form: cost_picture(judged, title, form), "accuracy against costs")
        if judged and drawn_costs(rounds for _, tables in judged for rounds in tables)
        else None,
        "results": _results(settings),
        "differences": differences,
        "runs": _runs(settings, target),
    }
    table = target.with_suffix(".csv")
    write_atomically(table, _csv(settings).encode())
    write_atomically(target, render("compare.html", content, sorts=True))
    return [target, table]


def _title(results: Sequence[RunResult], settings: int) -> str:
    kinds = {is_synthetic(result.config, result.summary) for result in results}
    what = f" of {units.counted(settings, 'setting')}" if settings < len(results) else ""
    return f"Comparison of {len(results)} runs{what}{synthetic_mark(True in kinds, partly=len(kinds) > 1)}"


def _notes(results: Sequence[RunResult], settings: Sequence[Setting]) -> list[str]:
    """Notes that a reader needs before the figures are compared."""
    notes = []
    workloads = sorted({part_name("workload", result.config, result.summary) for result in results})
    if len(workloads) > 1:
        notes.append(f"The runs have different workloads ({', '.join(workloads)}): their accuracies do not compare.")
    lengths = sorted({len(result.rounds) for result in results})
    if len(lengths) > 1:
        notes.append(f"The runs have {', '.join(map(str, lengths))} rounds: their last values do not compare.")
    repeated = [run.folder.name for setting in settings for run in setting.repeated]
    if repeated:
        notes.append(f"Not counted, as another run has the same settings and seed: {', '.join(repeated)}.")
    if any(len(setting.runs) > 1 for setting in settings):
        notes.append("Lines and figures are means over seeds; bands and ± are one standard deviation.")
    return notes


def _mark(run: RunResult) -> str:
    return synthetic_mark(is_synthetic(run.config, run.summary))


def _values(settings: Sequence[Setting]) -> dict[str, tuple[units.Unit, list[list[float]]]]:
    """Figure → its unit, and for each setting its values in the setting's runs."""
    found: dict[str, tuple[units.Unit, list[list[float]]]] = {}
    for place, setting in enumerate(settings):
        for run in setting.runs:
            for figure in figures(run.rounds):
                found.setdefault(figure.name, (figure.unit, [[] for _ in settings]))[1][place].append(figure.value)
    return found


def _results(settings: Sequence[Setting]) -> Table:
    """One row a setting."""
    options = list(settings[0].differing) or ["setting"]
    headings = [*options, "seeds"]
    rows = [[*(setting.differing.values() or [setting.label]), ", ".join(setting.seeds)] for setting in settings]
    for name, (unit, values) in _values(settings).items():
        scale = units.scale(unit, chain(*values))
        headings.append(scale.heading(name))
        for row, own in zip(rows, values, strict=True):
            row.append(scale.text(own) or "–")
    return Table(headings, rows, words=options)


def _runs(settings: Sequence[Setting], target: Path) -> Table:
    """One row a run, with a link to its page."""
    every = [(setting, run) for setting in settings for run in (*setting.runs, *setting.repeated)]
    # Names as far as they differ, so that runs of one name in two places can be told apart.
    common = os.path.commonpath([run.folder.resolve().parent for _, run in every])
    names = list(dict.fromkeys(figure.name for _, run in every for figure in figures(run.rounds)))
    rows: list[list[Cell]] = []
    for setting, run in every:
        # Quoted, with its colons: a folder's name is no address of its own, such as javascript:.
        address = quote(os.path.relpath(os.fsencode(run.folder / "report.html"), os.fsencode(target.parent)))
        label = os.path.relpath(run.folder.resolve(), common) + _mark(run)
        own = {figure.name: Number(text_of(figure.unit, figure.value), figure.value) for figure in figures(run.rounds)}
        rows.append([Link(label, address), setting.label, *(own.get(name, "–") for name in names)])
    return Table(["run", "setting", *names], rows, words=("run", "setting"))


def _csv(settings: Sequence[Setting]) -> str:
    """The results without rounding: shares of one, bytes, seconds; ``… std`` over the seeds, empty for one."""
    from pandas import DataFrame

    rows: list[dict[str, object]] = [
        {"setting": setting.label, **setting.differing, "seeds": " ".join(setting.seeds)} for setting in settings
    ]
    for name, (_, values) in _values(settings).items():
        for row, own in zip(rows, values, strict=True):
            row[name] = statistics.fmean(own) if own else None
            row[f"{name} std"] = statistics.stdev(own) if len(own) > 1 else None
    return DataFrame(rows).to_csv(index=False, lineterminator="\n")


def group(results: Sequence[RunResult]) -> list[Setting]:
    """The settings of several runs, in the order of their first runs.

    Placement (actors, output, pictures …) cannot change a result, so it separates nothing. Only the folders' own text
    is read: none of the classes that a config names is imported.
    """
    ignored = {SEED, *(path for path, option in options_of({}).items() if option.help.placement)}
    groups: dict[str, tuple[dict[str, Any], list[RunResult]]] = {}
    for result in results:
        own = {path: value for path, value in flatten(result.config).items() if path not in ignored}
        groups.setdefault(json.dumps(own, sort_keys=True, default=str), (own, []))[1].append(result)
    paths = _differing([own for own, _ in groups.values()])
    labels = [_label(own, paths) for own, _ in groups.values()]
    settings = []
    for label, (own, runs) in zip(labels, groups.values(), strict=True):
        if not label or labels.count(label) > 1:
            label = ", ".join(filter(None, (label, runs[0].folder.resolve().name)))
        differing = {path: show(own[path]) if path in own else "" for path in paths}
        settings.append(Setting(label, differing, *_one_a_seed(runs)))
    return settings


def _one_a_seed(runs: Sequence[RunResult]) -> tuple[tuple[RunResult, ...], tuple[RunResult, ...]]:
    """The longest run of each seed, in the order of seeds, and those that are left."""
    longest: dict[str, RunResult] = {}
    for run in runs:
        seed = str(run.config.get(SEED))
        if seed not in longest or len(run.rounds) > len(longest[seed].rounds):
            longest[seed] = run
    kept = sorted(longest.values(), key=_seed)
    return tuple(kept), tuple(run for run in runs if not any(run is other for other in kept))


def _differing(options: Sequence[Mapping[str, Any]]) -> list[str]:
    """The options that differ between two settings which both have them.

    Another method brings other options, and its name says enough.
    """
    found = []
    for path in dict.fromkeys(path for own in options for path in own):
        values = [own[path] for own in options if path in own]
        if any(value != values[0] for value in values[1:]):
            found.append(path)
    return found


def _label(own: Mapping[str, Any], paths: Sequence[str]) -> str:
    named = (path for path in paths if path in own)
    return ", ".join(
        show(own[path]) if path.endswith(".name") else f"{path.rpartition('.')[2]} {show(own[path])}" for path in named
    )


def _seed(run: RunResult) -> tuple[bool, float]:
    value = run.config.get(SEED)
    return (False, float(value)) if isinstance(value, (int, float)) else (True, 0.0)
