"""One self-contained HTML page from a run's folder, and a page that compares several.

``python -m raysim.report FOLDER [FOLDER ...]``
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim import units
from raysim.costs import costs_to_accuracies
from raysim.errors import RaysimError
from raysim.exit_codes import FINISHED, REFUSED
from raysim.monitor import profile_table
from raysim.report.compare import compare
from raysim.report.figures import cell, figures, text_of
from raysim.report.html import Bar, Cell, Picture, Table, on_both_grounds, render
from raysim.report.plots import cost_picture, drawn_costs, run_picture
from raysim.run_result import load_result
from raysim.storage.atomic_files import write_atomically
from raysim.storage.run_record import run_title

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
    rounds, title = result.rounds, run_title(result.config, result.summary)
    state = "" if result.summary else "This run is not finished; the numbers are those of its rounds so far."
    partition, devices = folder / "partition.png", folder / "devices.png"
    clients, clients_note = _fairness(result.clients)
    profile, profile_note = _profile(folder)
    content: dict[str, object] = {
        "title": title,
        "notes": [note for note in (folder.resolve().name, state) if note],
        "tiles": [(figure.name, text_of(figure.unit, figure.value)) for figure in figures(result)],
        "curves": on_both_grounds(lambda dark: run_picture(rounds, title, dark), "curves") if len(rounds) else None,
        "costs": _costs(rounds, title),
        "costs_table": _costs_table(rounds),
        "partition": Picture("partition", partition.read_bytes()) if partition.is_file() else None,
        "devices": Picture("devices", devices.read_bytes()) if devices.is_file() else None,
        "clients": clients,
        "clients_note": clients_note,
        "rounds": _table(rounds.iloc[::-1].head(_LAST_ROUNDS)) if len(rounds) else None,
        "rounds_heading": f"Last {_LAST_ROUNDS} rounds" if len(rounds) > _LAST_ROUNDS else "Rounds",
        "profile": profile,
        "profile_note": profile_note,
        "summary": _summary(result.summary) if result.summary else None,
        "files": [
            (name, (folder / name).read_text(encoding="utf-8", errors="replace"))
            for name in ("config.yaml", "environment.json")
            if (folder / name).is_file()
        ],
    }
    target = folder / PAGE
    write_atomically(target, render("run.html", **content))
    return target


def is_drawn(folder: Path) -> bool:
    """Whether a finished run has its page, made after its last round."""
    target, summary = folder / PAGE, folder / "summary.json"
    return target.is_file() and summary.is_file() and target.stat().st_mtime >= summary.stat().st_mtime


def _costs(rounds: DataFrame, title: str) -> Any:
    """The picture of accuracy against traffic and virtual time; None of a run that was judged less than twice."""
    if not drawn_costs([rounds]) or rounds["accuracy"].notna().sum() < 2:
        return None
    return on_both_grounds(lambda dark: cost_picture([("", [rounds])], title, dark), "accuracy against costs")


def _costs_table(rounds: DataFrame) -> Table | None:
    """What each accuracy cost that the run reached."""
    import pandas as pd

    costs = pd.DataFrame(costs_to_accuracies(rounds))
    if costs.empty:
        return None
    return _table(costs.assign(bytes=[units.byte_count(sent, units.THIN) for sent in costs["bytes"]]))


def _table(frame: DataFrame) -> Table:
    """A frame with its columns in their units."""
    names = [str(name) for name in frame.columns]
    rows = (
        [cell(name, value) for name, value in zip(names, row, strict=True)] for row in frame.itertuples(index=False)
    )
    return Table([name.replace("_", " ") for name in names], rows, _places_of_words(names))


def _profile(folder: Path) -> tuple[Table | None, str]:
    """The table of where the time went, if the run measured it, and what it counts."""
    path = folder / "profile.csv"
    if not path.is_file():
        return None, ""
    note, lines = profile_table.read(path)
    header = profile_table.HEADER
    return Table(header, lines, _places_of_words(header)), note


def _summary(summary: Mapping[str, Any]) -> Table:
    return Table(("name", "value"), ((name, _summary_text(name, value)) for name, value in summary.items()), words=(0,))


def _summary_text(name: str, value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, (dict, list)):
        return json.dumps(value)
    return cell(name.removeprefix("best_").removeprefix("validated_"), value)


def _fairness(clients: DataFrame) -> tuple[Table | None, str]:
    """Each client's last known accuracy, sorted, and their range in words; nothing where no client has one."""
    if not len(clients) or "accuracy" not in clients or clients["accuracy"].isna().all():
        return None, ""
    judged = clients[clients["accuracy"].notna()].sort_values("round", kind="stable").groupby("client").tail(1)
    judged = judged.sort_values(["accuracy", "client"], kind="stable")
    low, middle, high = (
        units.percent(float(value), units.THIN)
        for value in (judged["accuracy"].min(), judged["accuracy"].median(), judged["accuracy"].max())
    )
    note = f"{units.counted(len(judged), 'client')}: {low} to {high}, median {middle}"
    columns = [name for name in ("client", "name", "accuracy", "samples", "round", "loss", "weight") if name in judged]
    hidden = max(0, len(judged) - _CLIENTS)
    if hidden:
        note += f"; {hidden} in the middle are not shown"
        judged = judged.drop(judged.index[_CLIENTS // 2 : _CLIENTS // 2 + hidden])
    rows = []
    for row in judged.to_dict("records"):
        cells: dict[str, Cell] = {str(name): cell(str(name), value) for name, value in row.items()}
        share = min(1.0, max(0.0, float(row["accuracy"])))
        cells["accuracy"] = Bar(cell("accuracy", row["accuracy"]), share)
        rows.append([cells[name] for name in columns])
    return Table(columns, rows, _places_of_words(columns)), note


def _places_of_words(names: Sequence[str]) -> list[int]:
    return [place for place, name in enumerate(names) if name in _WORDS]


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
        print(f"raysim.report: {error}", file=sys.stderr)
        return REFUSED
    return FINISHED
