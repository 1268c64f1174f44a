"""A page that compares runs: curves over each other, figures as mean ± spread over seeds, and paired differences.

Runs of one setting differ in their seed alone. The tables are those of :mod:`raysim.comparison`, as a study has them.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from raysim import units
from raysim.comparison import table
from raysim.comparison.runs import Comparison
from raysim.comparison.settings import Setting
from raysim.report.figures import figures, text_of
from raysim.report.html import Cell, Link, Number, Table, in_both_forms, render
from raysim.report.plots import comparison_picture, cost_picture, drawn_costs
from raysim.results.result import RunResult
from raysim.storage.atomic_files import write_atomically
from raysim.storage.run_record import is_synthetic
from raysim.workloads.naming import synthetic_mark


def write_page(comparison: Comparison, target: Path, differences: Table | None = None) -> Path:
    """Write a page with curves of several runs, their figures, and the tests of their differences.

    Runs that differ in their seed alone are one line: its mean, and a band of one standard deviation over seeds.

    Args:
        target: the page.
        differences: of two runs by client, for a table of its own.

    Raises:
        ResultsError: it cannot be written.
    """
    settings, title = comparison.settings, comparison.page.title
    runs = [(setting.label + _mark(setting.runs[0]), [run.rounds for run in setting.runs]) for setting in settings]
    judged = [(label, own if all("accuracy" in rounds for rounds in own) else []) for label, own in runs]
    bands = "Lines and figures are means over seeds; bands and ± are one standard deviation."
    content: dict[str, object] = {
        "title": title,
        "notes": [*comparison.page.before, *([bands] if any(len(setting.runs) > 1 for setting in settings) else [])],
        "curves": in_both_forms(lambda form: comparison_picture(runs, title, form), "curves of all runs"),
        "costs": in_both_forms(lambda form: cost_picture(judged, title, form), "accuracy against costs")
        if any(own for _, own in judged) and drawn_costs(rounds for _, own in judged for rounds in own)
        else None,
        "results": _results(comparison),
        "tables": [
            (_title(own), _table(own), [_plain(note) for note in own.notes]) for own in comparison.page.tables[1:]
        ],
        "marks": [_plain(note) for own in comparison.page.tables[:1] for note in own.notes],
        "differences": differences,
        "runs": _runs(settings, target),
    }
    write_atomically(target, render("compare.html", content, sorts=True))
    return target


def _mark(run: RunResult) -> str:
    return synthetic_mark(is_synthetic(run.config, run.summary))


def _results(comparison: Comparison) -> Table:
    """One row a setting: its options, the measures that are compared, and what else sums its runs up."""
    settings = comparison.settings
    options = list(settings[0].differing) or ["setting"]
    headings = [*options, "seeds"]
    rows: list[list[Cell]] = [
        [*(setting.differing.values() or [setting.label]), ", ".join(setting.seeds)] for setting in settings
    ]
    for heading, cells in (*_measures(comparison), *_figures(comparison)):
        headings.append(heading)
        for row, cell in zip(rows, cells, strict=True):
            row.append(cell)
    return Table(headings, rows, words=options)


def _measures(comparison: Comparison) -> list[tuple[str, list[Cell]]]:
    """Heading of each measure that is compared, and its cells, the best mean of each column marked."""
    outcomes, found = comparison.outcomes, []
    places = [(column, measure.name) for column in outcomes.columns for measure in outcomes.measures]
    entries = {
        (row, *place): entry
        for means in comparison.page.tables[:1]
        for row, own in means.rows
        for place, entry in zip(places, own, strict=True)
    }
    for measure, heading in outcomes.measures.items():
        cells: list[Cell] = []
        for setting in comparison.settings:
            key = (setting.row, setting.column, measure.name)
            values, entry = outcomes.values.get(key, {}).values(), entries[key]
            near = "≈ " if entry.mark == "near" else ""
            cells.append(Number(near + entry.text, units.mean([*values]), best=entry.mark == "best") if values else "–")
        found.append((outcomes.scale(measure).heading(heading), cells))
    return found


def _figures(comparison: Comparison) -> list[tuple[str, list[Cell]]]:
    """Heading of each figure that is no measure of the comparison, and its cells."""
    found: dict[str, tuple[units.Unit, list[list[float]]]] = {}
    for place, setting in enumerate(comparison.settings):
        for run in setting.runs:
            for figure in figures(run.rounds):
                empty = (figure.unit, [list[float]() for _ in comparison.settings])
                found.setdefault(figure.name, empty)[1][place].append(figure.value)
    told = set(comparison.outcomes.measures.values())
    shown = list[tuple[str, list[Cell]]]()
    for name, (unit, values) in found.items():
        scale = units.scale(unit, itertools.chain(*values))
        if name not in told:
            shown.append((scale.heading(name), [scale.text(own) or "–" for own in values]))
    return shown


def _title(own: table.Table) -> str:
    return {"differences": "Differences over equal seeds", "tests": "Tests of these differences"}[own.name]


def _table(own: table.Table) -> Table:
    """A table of the comparison as one of the page."""
    headings = [own.corner, *(f"{head.group}, {head.words}" if head.group else head.words for head in own.heads)]
    return Table(
        headings, ([name, *(entry.text for entry in entries)] for name, entries in own.rows), (own.corner, "of")
    )


def _plain(note: str) -> str:
    """A sentence without the emphasis of Markdown."""
    return note.replace("*", "")


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
