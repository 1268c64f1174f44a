"""A study's finished cells as a table: mean ± standard deviation over seeds, every measure in its unit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from raysim.config.privacy import NEIGHBORS
from raysim.errors import ConfigError
from raysim.report.measures import Measure
from raysim.storage.atomic_files import write_atomically
from raysim.storage.claims import alone
from raysim.studies import curves, differences, failures, paired_tests, pictures
from raysim.studies.differences import Values
from raysim.studies.entries import heading
from raysim.studies.pictures import Found, scale_of
from raysim.studies.places import cell_table, text_of
from raysim.studies.study_file import Study

if TYPE_CHECKING:
    import pandas as pd

BEGIN, END = "<!-- table: written by raysim.study -->", "<!-- end of table -->"


def finished(study: Study, measures: Iterable[Measure]) -> Found:
    """The values that are there so far."""
    return _without_seeds(values(study, measures))


def values(study: Study, measures: Iterable[Measure]) -> Values:
    """The values that are there so far, each with its seed."""
    wanted, found = list(measures), dict[tuple[str, str, str], dict[int, float]]()
    for cell in study.cells() if wanted else ():
        if not cell.path.exists():
            continue
        run = cell_table(cell.path)
        for measure in wanted:
            if (value := study.shown.get((cell.row, measure.name), measure).of(run)) is not None:
                found.setdefault((cell.row, cell.column, measure.name), {})[cell.seed] = value
    return found


def _without_seeds(found: Values) -> Found:
    return {key: list(seeds.values()) for key, seeds in found.items()}


def finished_runs(study: Study) -> curves.Runs:
    """The rounds tables that are there so far."""
    found: dict[tuple[str, str], list[pd.DataFrame]] = {}
    for cell in study.cells():
        if cell.path.exists():
            found.setdefault((cell.row, cell.column), []).append(cell_table(cell.path))
    return found


def tables(study: Study) -> str:
    """All that stands between the markers: the table of means, that of differences, and that of failed cells."""
    failed = failures.failures(study)
    counts = Counter((failure.cell.row, failure.cell.column) for failure in failed)
    found, columns = values(study, dict.fromkeys((*study.measures, *study.compared))), [*study.columns]
    made = [
        about_epsilon(study),
        table(study, found, counts),
        differences.table(study.compare, found, study.measures, columns),
        paired_tests.table(study.compare, found, study.measures, columns) if study.statistics else "",
        failures.table(failed),
    ]
    return "\n\n".join(text for text in made if text)


def about_epsilon(study: Study) -> str:
    """The line over a table with ε that says what each is about; empty without such a measure."""
    if not any(measure.column == "epsilon" for measure in study.measures):
        return ""
    rows: dict[str, dict[str, None]] = {}
    for key, runs in finished_runs(study).items():
        for run in runs:
            if NEIGHBORS in run:
                rows.setdefault(str(run[NEIGHBORS].iloc[-1]), {})[key[0]] = None
    parts = [f"{words} ({', '.join(own)})" if len(rows) > 1 else words for words, own in rows.items()]
    return f"ε: {'; '.join(parts)}." if parts else ""


def table(study: Study, found: Values, failed: Mapping[tuple[str, str], int]) -> str:
    """The Markdown table of means. The unit stands in the corner if all measures share it, else in each heading.

    Args:
        failed: (row, column) → its number of cells that failed, which stands beside that of the others.
    """
    marks = paired_tests.marks(found, [*study.rows], [*study.columns], [*study.measures]) if study.statistics else {}
    runs = _without_seeds(found)
    scales = {measure: scale_of(measure, runs) for measure in study.measures}
    symbols = {scale.symbol for scale in scales.values()}
    corner = symbols.pop() if len(symbols) == 1 else ""
    heads = [
        heading(column, text) if corner else scales[measure].heading(heading(column, text))
        for column in study.columns
        for measure, text in study.measures.items()
    ]
    lines = [f"| {corner} | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for row in study.rows:
        cells = []
        for column in study.columns:
            for measure, scale in scales.items():
                own, lost = runs.get((row, column, measure.name), []), failed.get((row, column), 0)
                count = f"({len(own)}, {lost} failed)" if lost else f"({len(own)})"
                text = _marked(scale.text(own), marks.get((row, column, measure.name), ""))
                cells.append(f"{text} {count}".strip() if own or lost else "")
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, *(["", paired_tests.ABOUT_MARKS] if marks else [])])


def _marked(text: str, mark: str) -> str:
    """A mean as it stands in its cell: the best in bold, those that are not told from it behind ≈."""
    return f"**{text}**" if mark == "best" else f"≈ {text}" if mark == "near" else text


def unmeasured(study: Study, found: Found) -> list[str]:
    """Measures of which no finished cell has a value, if there is a finished cell."""
    if not any(cell.path.exists() for cell in study.cells()):
        return []
    seen = {name for _, _, name in found}
    return [measure.name for measure in study.measures if measure.name not in seen]


def place_of_table(study: Study) -> tuple[str, str]:
    """The text of the study's page before and after the table.

    Raises:
        ConfigError: the page has no markers for it, or is no regular file.
    """
    text = text_of(study.table) or f"# {study.title}\n\n{BEGIN}\n{END}\n"
    named = BEGIN.replace("table:", f"table {study.name}:")
    begin = named if named in text else BEGIN
    if begin not in text or END not in text[text.index(begin) :]:
        raise ConfigError(f"{study.table} has no place for the table: add the lines {named} and {END}")
    start = text.index(begin) + len(begin)
    return text[:start], text[text.index(END, start) :]


def write_table(study: Study) -> None:
    """Put the table between the markers of the study's page (a new page gets title and markers), and draw the pictures.

    A page with tables of several studies names the study in each first marker: ``<!-- table NAME: written …``.
    """
    import matplotlib

    with alone(study.table):  # another process may be at the same study, or at another of the same page
        before, after = place_of_table(study)
        write_atomically(study.table, f"{before}\n{tables(study)}\n{after}".encode())
        with matplotlib.rc_context({"text.parse_math": False}):  # a $ in a name is a $
            for path, png in _pictures(study):
                write_atomically(path, png)


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
        runs = finished_runs(study)
        if runs:
            yield study.curves.path, curves.draw(study.curves, runs, [*study.columns], study.title)
