"""One self-contained HTML page from a run's folder, and a page that compares several.

``python -m raysim.report FOLDER [FOLDER ...]``
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim import units
from raysim.errors import RaysimError
from raysim.exit_codes import FINISHED, REFUSED
from raysim.monitor import profile_table
from raysim.report import html as html
from raysim.report.compare import compare
from raysim.report.figures import cell, figures, text_of, title_of
from raysim.report.plots import run_picture
from raysim.storage.atomic_files import write_atomically
from raysim.storage.run_folder import RunResult, load_result

if TYPE_CHECKING:
    from pandas import DataFrame

PAGE = "report.html"
_LAST_ROUNDS = 20
_CLIENTS = 60  # more are cut in the middle: the worst and the best matter for fairness
_WORDS = ("name", "who", "stage", "phase")
"""Columns that hold text."""


def page(folder: Path) -> Path:
    """Writes ``report.html`` into a run's folder, finished or not: one file without any outer resource.

    Raises:
        ResultsError: the folder holds no run, or cannot be written.
    """
    result = load_result(folder)
    title = title_of(result)
    rounds, clients = result.rounds, result.clients
    state = "" if result.summary else "This run is not finished; the numbers are those of its rounds so far."
    parts = [html.heading(title), html.note(folder.resolve().name), html.note(state), _tiles(result)]
    if len(rounds):
        curves = html.two_grounds(lambda dark: run_picture(rounds, title, dark), "curves")
        parts.append(html.section("Accuracy and loss", curves))
    partition = folder / "partition.png"
    if partition.is_file():
        picture = html.picture(partition.read_bytes(), "partition")
        parts.append(html.section("Partition of the data", picture))
    if len(clients) and "accuracy" in clients and clients["accuracy"].notna().any():
        parts.append(html.section("Clients, worst accuracy first", _fairness(clients)))
    if len(rounds):
        heading = f"Last {_LAST_ROUNDS} rounds" if len(rounds) > _LAST_ROUNDS else "Rounds"
        parts.append(html.section(heading, _table(rounds.iloc[::-1].head(_LAST_ROUNDS))))
    profile = folder / "profile.csv"
    if profile.is_file():
        title_of_profile, lines = profile_table.read(profile)
        words = [place for place, name in enumerate(profile_table.HEADER) if name in _WORDS]
        table = html.table(profile_table.HEADER, (line.texts() for line in lines), words)
        parts.append(html.section("Profile", html.note(title_of_profile) + table))
    if result.summary:
        rows = ((name, _summary_text(name, value)) for name, value in result.summary.items())
        parts.append(html.folded("summary.json", html.table(("name", "value"), rows, left=(0,))))
    for name in ("config.yaml", "environment.json"):
        if (folder / name).is_file():
            parts.append(html.folded(name, html.code((folder / name).read_text(encoding="utf-8", errors="replace"))))
    target = folder / PAGE
    write_atomically(target, html.document(title, parts))
    return target


def is_drawn(folder: Path) -> bool:
    """Whether a finished run has its page, made after its last round."""
    target, summary = folder / PAGE, folder / "summary.json"
    return target.is_file() and summary.is_file() and target.stat().st_mtime >= summary.stat().st_mtime


def _tiles(result: RunResult) -> str:
    return html.tiles((figure.name, text_of(figure.unit, figure.value)) for figure in figures(result))


def _table(frame: DataFrame) -> str:
    """A frame with its columns in their units."""
    names = [str(name) for name in frame.columns]
    rows = (
        [cell(name, value) for name, value in zip(names, row, strict=True)] for row in frame.itertuples(index=False)
    )
    words = [place for place, name in enumerate(names) if name in _WORDS]
    return html.table([name.replace("_", " ") for name in names], rows, words)


def _summary_text(name: str, value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, (dict, list)):
        return json.dumps(value)
    return cell(name.removeprefix("best_").removeprefix("validated_"), value)


def _fairness(clients: DataFrame) -> str:
    """Each client's last known accuracy, sorted."""
    judged = clients[clients["accuracy"].notna()].sort_values("round", kind="stable").groupby("client").tail(1)
    judged = judged.sort_values(["accuracy", "client"], kind="stable")
    low, middle, high = (
        units.percent(float(value), units.THIN)
        for value in (judged["accuracy"].min(), judged["accuracy"].median(), judged["accuracy"].max())
    )
    text = f"{len(judged)} clients: {low} to {high}, median {middle}"
    columns = [name for name in ("client", "name", "accuracy", "samples", "round", "loss", "weight") if name in judged]
    hidden = max(0, len(judged) - _CLIENTS)
    if hidden:
        text += f"; {hidden} in the middle are not shown"
        judged = judged.drop(judged.index[_CLIENTS // 2 : _CLIENTS // 2 + hidden])
    rows = []
    for row in judged.to_dict("records"):
        width = 100 * min(1.0, max(0.0, float(row["accuracy"])))
        texts = {str(name): cell(str(name), value) for name, value in row.items()}
        bar = f'<span class="bar"><i style="width:{width:.1f}%"></i></span>'
        texts["accuracy"] = html.Html(f"{texts['accuracy']} {bar}")
        rows.append([texts[name] for name in columns])
    words = [place for place, name in enumerate(columns) if name in _WORDS]
    return html.note(text) + html.table(columns, rows, words)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m raysim.report",
        description="Write HTML reports of finished or running runs; of several runs also a page that compares them, "
        "runs that differ in their seed alone as one line with its spread, and its table as CSV.",
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="a run's folder")
    parser.add_argument(
        "--out",
        type=Path,
        help="comparison page of several runs (default: compare.html beside the first); its table lies beside it, "
        "as .csv",
    )
    options = parser.parse_args(arguments)
    if options.out and len(options.folders) == 1:
        parser.error("--out is for the comparison of several folders; the page of one run is its report.html")
    target = options.out or options.folders[0].absolute().parent / "compare.html"
    own = (target.absolute(), target.with_suffix(".csv").absolute())  # among runs/*, say
    folders = [folder for folder in options.folders if folder.absolute() not in own]
    try:
        for folder in folders:
            # Who asks for one page gets it anew; a comparison only adds those that are missing.
            print(folder / PAGE if len(folders) > 1 and is_drawn(folder) else page(folder))
        if len(folders) > 1:
            for path in compare(folders, target):
                print(path)
    except RaysimError as error:
        print(f"raysim.report.run_page: {error}", file=sys.stderr)
        return REFUSED
    return FINISHED


if __name__ == "__main__":
    sys.exit(main())
