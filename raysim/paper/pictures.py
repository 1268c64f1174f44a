"""The tables and the figure of a paper, as files."""

from __future__ import annotations

from pathlib import Path

from raysim.comparison import csv_files, latex, markdown
from raysim.paper.collected import Paper
from raysim.results.measures import WHOLE_RUNS
from raysim.storage.atomic_files import write_atomically
from raysim.studies import curves

CURVES = ("curves.svg", "curves.pdf")


def write_tables(paper: Paper, folder: Path) -> None:
    """``table.md``, ``table.tex`` and ``table.csv``, the last one with its differences, tests and runs beside it."""
    page = paper.page()
    write_atomically(folder / "table.md", f"# {markdown.as_text(paper.title)}\n\n{markdown.page(page)}\n".encode())
    write_atomically(folder / "table.tex", latex.page(page, "runs").encode())
    csv_files.write(folder / "table.csv", page)


def write_curves(paper: Paper, folder: Path) -> bool:
    """The first measure that rounds have, as SVG and PDF: a line a row, in the band of the mean's 95 % interval.

    Returns:
        Whether there is a picture: there is none where no measure is one of rounds, or every row lacks it.
    """
    import matplotlib

    measure = next((one for one in paper.measures if one.how not in WHOLE_RUNS), None)
    if measure is None:
        return False
    wanted = curves.Curves.model_construct(path=[folder / name for name in CURVES], measure=measure, against="round")
    runs = {(row, ""): [run.result.rounds for run in own] for row, own in paper.rows.items()}
    drawn = {key: own for key, own in runs.items() if all(measure.column in rounds for rounds in own)}
    if not drawn:
        return False
    with matplotlib.rc_context({"text.parse_math": False}):  # a $ in a name is a $
        figure = curves.draw(wanted, drawn, [""], paper.title)
        for path in wanted.path:
            write_atomically(Path(path), curves.content_of(figure, Path(path)))
    return True
