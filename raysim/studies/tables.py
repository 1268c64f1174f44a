"""A study's finished cells as a table: mean ± standard deviation over seeds, every measure in its unit."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from raysim.comparison import building, csv_files, latex, markdown
from raysim.comparison.outcomes import HEAD, Heads, Outcomes, Values, lines_of_heads
from raysim.comparison.table import Page
from raysim.config.privacy import NEIGHBORS
from raysim.errors import ConfigError
from raysim.results.measures import Measure
from raysim.schedule import planned_intervals
from raysim.storage.atomic_files import write_atomically
from raysim.storage.claims import alone
from raysim.studies import accuracies, choosing, curves, failures, gains, pictures
from raysim.studies.cell_run import proof_of
from raysim.studies.pictures import Found
from raysim.studies.places import cell_table, text_of
from raysim.studies.study_file import Cell, Study

if TYPE_CHECKING:
    import pandas as pd

KeptRuns: TypeAlias = "list[tuple[Cell, pd.DataFrame]]"
BEGIN, END = "<!-- table: written by raysim.study -->", "<!-- end of table -->"
MADE_BY = "Made by `python -m raysim.study "
BACKENDS = {".png": "agg", ".svg": "svg", ".pdf": "pdf"}
"""How a picture's name ends → the part of matplotlib that writes it."""


def finished(study: Study, measures: Iterable[Measure]) -> Found:
    """The values that are there so far."""
    return {key: list(seeds.values()) for key, seeds in values(study, measures).items()}


def kept_runs(study: Study) -> KeptRuns:
    """The cells that are there so far, each with its rounds table."""
    return [(cell, cell_table(cell.path)) for cell in study.cells() if cell.path.exists()]


def values(study: Study, measures: Iterable[Measure], kept: KeptRuns | None = None) -> Values:
    """The values that are there so far, each with its seed.

    Args:
        kept: the study's cells that are there; None reads them.

    Raises:
        ConfigError: the study chooses, and a run has no column by which to choose it.
    """
    wanted, found = list(measures), dict[tuple[str, str, str], dict[int, float]]()
    if not wanted:
        return found
    kept = kept_runs(study) if kept is None else kept
    has_gains = any(measure.how == "gain" for measure in (*wanted, *study.shown.values()))
    alone_in = gains.local_runs(study, kept) if has_gains else {}
    for cell, run in kept:
        local = alone_in.get((cell.column, cell.seed))
        if study.choice is not None:
            choosing.check_judged(f"{study.path}: choose: measure", study.choice.measure, cell.name, run.columns)
        for measure in wanted:
            if (value := study.shown.get((cell.row, measure.name), measure).of(run, local)) is not None:
                found.setdefault((cell.row, cell.column, measure.name), {})[cell.seed] = value
    return found


def by_place(kept: KeptRuns) -> curves.Runs:
    """(row, column) → the rounds tables of its seeds."""
    found: dict[tuple[str, str], list[pd.DataFrame]] = {}
    for cell, run in kept:
        found.setdefault((cell.row, cell.column), []).append(run)
    return found


def tables(study: Study) -> str:
    """All that stands between the markers of the study's page."""
    return markdown.page(page_of(study))


def page_of(study: Study) -> Page:
    """The study's tables (of means, differences, tests, failed cells), its runs, and the command that makes them."""
    failed, kept = failures.failures(study), kept_runs(study)
    found = outcomes(study, Counter((failure.cell.row, failure.cell.column) for failure in failed), kept)
    shown, notes = found, list[str]()
    if study.choice is not None:
        shown, notes = choosing.chosen(found, study.choice, study.seeds)
        notes.append(_budget(study))
    made = building.tables(shown)
    made[0] = replace(made[0], notes=(*made[0].notes, *gains.notes(study), *notes))
    if failed:
        made.append(failures.table(failed))
    return Page(
        study.title,
        tuple(made),
        tuple(filter(None, [*about_accuracies(study, found, kept), about_epsilon(study, kept), about_costs(study)])),
        tuple(building.runs(found)),
        (_made_by(study), *lines_of_heads(found)),
    )


def _made_by(study: Study) -> str:
    """The sentence under the tables with the command that makes them."""
    file = shlex.quote(os.path.relpath(study.path.resolve(), study.table.parent))
    return f"{MADE_BY}{file}` in the folder of this page."


def outcomes(study: Study, failed: Mapping[tuple[str, str], int], kept: KeptRuns | None = None) -> Outcomes:
    """The measured values of all cells that are there, and what the study asks to be made of them.

    Args:
        failed: (row, column) → its number of cells that failed.
        kept: the study's cells that are there; None reads them.
    """
    chooses = [study.choice.measure] if study.choice else []
    found = values(study, dict.fromkeys((*study.measures, *study.compared, *chooses)), kept)
    return Outcomes(
        study.title,
        tuple(study.rows),
        tuple(study.columns),
        study.measures,
        found,
        study.compare,
        study.statistics,
        failed,
        study.paper,
        heads(study),
        study.resampled,
        study.folds,
    )


def heads(study: Study) -> Heads:
    """The heads of the proofs of all cells that are there, as far as they were kept."""
    cells = sorted(study.cells(), key=lambda cell: [*study.columns].index(cell.column))
    texts = {(c.row, c.column, c.seed): (text_of(proof_of(c)) or "").strip() for c in cells if c.path.exists()}
    return {place: text for place, text in texts.items() if HEAD.fullmatch(text)}


def _budget(study: Study) -> str:
    """The sentence on how much was tried for each row, where the best of several is chosen."""
    planned: dict[str, list[int]] = {}
    for cell in study.cells():
        planned.setdefault(cell.row, []).append(len(planned_intervals(cell.config())))
    rows = {group: [planned[row] for row in own] for group, own in (study.choice.rows if study.choice else {}).items()}
    return choosing.budget(rows, len(study.columns))


def about_costs(study: Study) -> str:
    """The line over a table with costs of an accuracy; empty without such a measure."""
    if not any(measure.how == "cost" for measure in study.measures):
        return ""
    return building.ABOUT_COSTS


def about_accuracies(study: Study, found: Outcomes, kept: KeptRuns) -> list[str]:
    """The sentences over a table that say where accuracies of two kinds of test sets are in one column."""
    if not any(measure.column == "accuracy" for measure in study.measures):
        return []
    return accuracies.notes(study, _of_table(study, by_place(kept), found))


def about_epsilon(study: Study, kept: KeptRuns) -> str:
    """The line over a table with ε that says what each is about; empty without such a measure."""
    if not any(measure.column == "epsilon" for measure in study.measures):
        return ""
    rows: dict[str, dict[str, None]] = {}
    for cell, run in kept:
        if NEIGHBORS in run:
            rows.setdefault(str(run[NEIGHBORS].iloc[-1]), {})[cell.row] = None
    parts = [f"{words} ({', '.join(own)})" if len(rows) > 1 else words for words, own in rows.items()]
    return f"ε: {'; '.join(parts)}." if parts else ""


def unmeasured(study: Study, found: Iterable[tuple[str, str, str]]) -> list[str]:
    """Measures of which no finished cell has a value, if there is a finished cell.

    Args:
        found: (row, column, measure) of every value of what tables and pictures show.
    """
    if not any(cell.path.exists() for cell in study.cells()):
        return []
    seen = {name for _, _, name in found}
    return [name for name in dict.fromkeys(measure.name for _, measure in study.asked_for) if name not in seen]


def place_of_table(study: Study) -> tuple[str, str]:
    """The text of the study's page before and after the table.

    Raises:
        ConfigError: the page has no markers for it, has another study's table between those without a name, or is no
            regular file.
    """
    text = text_of(study.table) or f"# {markdown.as_text(study.title)}\n\n{BEGIN}\n{END}\n"
    named = BEGIN.replace("table:", f"table {study.name}:")
    begin = named if named in text else BEGIN
    if begin not in text or END not in text[text.index(begin) :]:
        raise ConfigError(f"{study.table} has no place for the table: add the lines {named} and {END}")
    start = text.index(begin) + len(begin)
    end = text.index(END, start)
    there = " ".join(text[start:end].split())
    if begin == BEGIN and MADE_BY in there and " ".join(markdown.as_text(_made_by(study)).split()) not in there:
        other = there.partition(MADE_BY)[2].partition("`")[0]
        raise ConfigError(
            f"{study.table} has the table of another study, made by {other}, where this one's would stand. Add the "
            f"lines {named} and {END} to the page, or empty the table that is there if it was this study's."
        )
    return text[:start], text[end:]


def load_packages(study: Study) -> None:
    """Import what :func:`write_table` needs, as long as there is time for it: seconds at the end of all cells else."""
    import matplotlib.figure  # noqa: F401
    import pandas  # noqa: F401

    if study.statistics:
        import scipy.stats  # noqa: F401
    drawn = [entry.path for entry in (study.picture, study.heat_map) if entry is not None]
    for path in (*drawn, *(study.curves.path if study.curves else ())):
        import_module(f"matplotlib.backends.backend_{BACKENDS[path.suffix]}")


def write_table(study: Study) -> None:
    """Put the tables between the markers of the study's page (a new page gets title and markers), and into other files.

    A page with tables of several studies names the study in each first marker: ``<!-- table NAME: written …``.
    """
    import matplotlib

    with alone(study.table):  # another process may be at the same study, or at another of the same page
        before, after = place_of_table(study)
        content = page_of(study)
        write_atomically(study.table, f"{before}\n{markdown.page(content)}\n{after}".encode())
        if study.latex is not None:
            write_atomically(study.latex, latex.page(content, study.name).encode())
        if study.csv is not None:
            csv_files.write(study.csv, content)
        with matplotlib.rc_context({"text.parse_math": False}):  # a $ in a name is a $
            for path, picture in _pictures(study):
                write_atomically(path, picture)


def _pictures(study: Study) -> Iterator[tuple[Path, bytes]]:
    """Each picture that the study asks for and of which something is there."""
    if study.picture is not None:
        found = finished(study, study.picture.measures)
        yield study.picture.path, pictures.draw(study.picture, found, study.title)
    if study.heat_map is not None:
        found = finished(study, [study.heat_map.measure])
        if found:
            squares = pictures.draw_heat_map(study.heat_map, found, [*study.rows], [*study.columns], study.title)
            yield study.heat_map.path, squares
    if study.curves is not None:
        runs = drawn(study, study.curves)
        if runs:
            figure = curves.draw(study.curves, runs, [*study.columns], study.title, study.resampled)
            for path in study.curves.path:
                yield path, curves.content_of(figure, path)


def _of_table(study: Study, runs: curves.Runs, found: Outcomes) -> curves.Runs:
    """Those of the runs that are in the table, by its rows: where a study chooses, each row's best.

    Args:
        found: outcomes of all rows, before the choice.
    """
    if study.choice is None:
        return runs
    picked = choosing.picked(found, study.choice, study.seeds)
    return {place: runs[row, place[1]] for place, row in picked.items() if (row, place[1]) in runs}


def drawn(study: Study, wanted: curves.Curves) -> curves.Runs:
    """The runs that curves show: of a choice those that were chosen; what did not measure it has no line.

    The measure's column holds what the row shows in its place.

    Raises:
        ConfigError: a run has no column of the costs against which it is to be drawn.
    """
    kept, runs = kept_runs(study), dict[tuple[str, str], list["pd.DataFrame"]]()
    for (row, column), own in by_place(kept).items():
        name = study.shown.get((row, wanted.measure.name), wanted.measure).column
        if all(name in run for run in own):
            runs[row, column] = [run.assign(**{wanted.measure.column: run[name]}) for run in own]
    chosen = runs if study.choice is None else _of_table(study, runs, outcomes(study, {}, kept))
    found = {place: own for place, own in chosen.items() if not wanted.rows or place[0] in wanted.rows}
    for (row, column), own in found.items():
        for there in map(curves.costs, own):
            if wanted.against not in there:
                place = " / ".join(filter(None, (column, row)))
                raise curves.without_costs(study.path, wanted, place, [*there])
    return found
