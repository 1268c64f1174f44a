"""A page that compares runs: curves over each other, and figures as mean ± spread over the seeds of a setting."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from pathlib import Path

from raysim import units
from raysim.errors import ResultsError
from raysim.report.figures import Figure, figures, text_of
from raysim.report.html import Cell, Link, Table, on_both_grounds, render
from raysim.report.plots import comparison_picture, cost_picture, drawn_costs
from raysim.report.setting_groups import Setting, group
from raysim.run_result import RunResult, load_result
from raysim.storage.atomic_files import write_atomically
from raysim.storage.run_record import is_synthetic, part_name
from workloads.naming import synthetic_mark


def compare(folders: Sequence[Path], target: Path) -> list[Path]:
    """Writes a page with curves and a table of several runs' results, and the table as CSV beside it.

    Runs that differ in their seed alone are one line: its mean, and a band of one standard deviation over seeds.

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
        "curves": on_both_grounds(lambda dark: comparison_picture(runs, title, dark), "curves of all runs"),
        "costs": on_both_grounds(lambda dark: cost_picture(judged, title, dark), "accuracy against costs")
        if judged and drawn_costs(rounds for _, tables in judged for rounds in tables)
        else None,
        "results": _results(settings),
        "runs": _runs(settings, target),
    }
    table = target.with_suffix(".csv")
    write_atomically(table, _csv(settings).encode())
    write_atomically(target, render("compare.html", **content))
    return [target, table]


def _title(results: Sequence[RunResult], settings: int) -> str:
    kinds = {is_synthetic(result.config, result.summary) for result in results}
    what = f" of {units.counted(settings, 'setting')}" if settings < len(results) else ""
    return f"Comparison of {len(results)} runs{what}{synthetic_mark(True in kinds, partly=len(kinds) > 1)}"


def _notes(results: Sequence[RunResult], settings: Sequence[Setting]) -> list[str]:
    """What a reader has to know before the figures are compared."""
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


def _by_name(setting: Setting) -> dict[str, tuple[units.Unit, list[float]]]:
    """Figure → unit, and its values in the setting's runs."""
    found: dict[str, tuple[units.Unit, list[float]]] = {}
    for run in setting.runs:
        for figure in figures(run):
            found.setdefault(figure.name, (figure.unit, []))[1].append(figure.value)
    return found


def _columns(settings: Sequence[Setting]) -> dict[str, units.Scale]:
    """Figure → the scale of its column."""
    found = [_by_name(setting) for setting in settings]
    scales = {}
    for name, unit in {name: unit for own in found for name, (unit, _) in own.items()}.items():
        scales[name] = units.scale(unit, [value for own in found for value in own.get(name, (unit, []))[1]])
    return scales


def _results(settings: Sequence[Setting]) -> Table:
    """One row a setting."""
    scales, options = _columns(settings), list(settings[0].differing)
    headings = [*(options or ["setting"]), "seeds", *(scale.heading(name) for name, scale in scales.items())]
    rows = []
    for setting in settings:
        found = _by_name(setting)
        values = (scale.text(found[name][1]) if name in found else "–" for name, scale in scales.items())
        rows.append([*(setting.differing.values() or [setting.label]), ", ".join(setting.seeds), *values])
    words = range(len(options) or 1)
    return Table(headings, rows, words)


def _runs(settings: Sequence[Setting], target: Path) -> Table:
    """One row a run, with a link to its page."""
    every = [(setting, run) for setting in settings for run in (*setting.runs, *setting.repeated)]
    # Names as far as they differ, so that runs of one name in two places can be told apart.
    common = os.path.commonpath([run.folder.resolve().parent for _, run in every])
    names = list(dict.fromkeys(figure.name for _, run in every for figure in figures(run)))
    rows: list[list[Cell]] = []
    for setting, run in every:
        address = os.path.relpath(run.folder / "report.html", target.parent).replace(os.sep, "/")
        label = os.path.relpath(run.folder.resolve(), common) + _mark(run)
        known: dict[str, Figure] = {figure.name: figure for figure in figures(run)}
        texts = (text_of(known[name].unit, known[name].value) if name in known else "–" for name in names)
        rows.append([Link(label, address), setting.label, *texts])
    return Table(["run", "setting", *names], rows, words=(0, 1))


def _csv(settings: Sequence[Setting]) -> str:
    """The results without rounding: shares of one, bytes, seconds; ``… std`` over the seeds, empty for one."""
    from pandas import DataFrame

    rows = []
    for setting in settings:
        row: dict[str, object] = {"setting": setting.label, **setting.differing, "seeds": " ".join(setting.seeds)}
        for name, (_, values) in _by_name(setting).items():
            row[name] = statistics.fmean(values)
            row[f"{name} std"] = statistics.stdev(values) if len(values) > 1 else None
        rows.append(row)
    return DataFrame(rows).to_csv(index=False, lineterminator="\n")
