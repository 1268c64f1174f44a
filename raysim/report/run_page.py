"""One self-contained HTML page from a run's folder, and a page that compares several.

``python -m raysim.report FOLDER [FOLDER ...]``
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim import columns
from raysim.comparison.runs import compare
from raysim.config.answering import Answer, answered
from raysim.errors import ConfigError, ResultsError
from raysim.monitor import profile_table
from raysim.remote.address import local_path
from raysim.remote.places import tables_only
from raysim.report.clients import Clients
from raysim.report.compare import write_page
from raysim.report.figures import cell, figures, text_of
from raysim.report.html import Photo, Picture, Table, in_both_forms, render
from raysim.report.partition_map import heat_map
from raysim.report.plots import chart_picture, cost_picture, drawn_costs, run_picture
from raysim.report.settings_line import repeat_command, settings_line
from raysim.results import measures
from raysim.results.costs import costs_to_accuracies
from raysim.results.result import load_result
from raysim.storage.atomic_files import write_atomically
from raysim.storage.folder_files import printable, read_bytes
from raysim.storage.run_record import run_title

if TYPE_CHECKING:
    from pandas import DataFrame

    from raysim.results.result import RunResult

PAGE = "report.html"
TABLES = (".csv", ".md", ".tex")
"""Forms of the tables beside a comparison's page."""
_LAST_ROUNDS = 20


def page(folder: Path, found: RunResult | None = None, ready: Callable[[], None] = lambda: None) -> Path:
    """Writes ``report.html`` into a run's folder, finished or not: one file without any outer resource.

    Args:
        found: the run, where it has been read.
        ready: waits until the folder's other files are there; called when all pictures are drawn.

    Raises:
        ResultsError: the folder holds no run, or cannot be written.
    """
    result = load_result(folder) if found is None else found
    rounds, clients = result.rounds, Clients()
    if len(result.clients):
        clients.add_frame(result.clients)
    heading = of_config(folder, result.config, result.summary)
    title = str(heading["title"])
    content: dict[str, object] = {
        **heading,
        **of_rounds(rounds),
        "clients": clients.view(),
        "curves": in_both_forms(lambda form: run_picture(rounds, title, form), "curves") if len(rounds) else None,
        "costs": _costs(rounds, title),
        "further": [_further(rounds, name) for name in ("phases", "utilization") if _is_drawn(rounds, name)],
    }
    ready()
    target = folder / PAGE
    write_atomically(target, render("run.html", content | of_files(folder, result.summary)))
    return target


def of_config(folder: Path, config: Mapping[str, Any], summary: Mapping[str, Any]) -> dict[str, object]:
    """Texts of the page about a run's settings."""
    state = "" if summary else "This run is not finished; the numbers are those of its rounds so far."
    return {
        "title": run_title(config, summary),
        "line": settings_line(config, summary),
        "command": repeat_command(config),
        "notes": [note for note in (folder.resolve().name, state) if note],
    }


def of_rounds(rounds: DataFrame) -> dict[str, object]:
    """Parts of the page made of the table of rounds, but for charts."""
    return {
        "tiles": [(figure.name, text_of(figure.unit, figure.value)) for figure in figures(rounds)],
        "costs_table": _costs_table(rounds),
        "rounds": _table(rounds.iloc[::-1].head(_LAST_ROUNDS)) if len(rounds) else None,
        "rounds_heading": f"Last {_LAST_ROUNDS} rounds" if len(rounds) > _LAST_ROUNDS else "Rounds",
    }


def of_files(folder: Path, summary: Mapping[str, Any]) -> dict[str, object]:
    """Parts of the page made of the folder's other files."""
    profile, profile_note = _profile(folder)
    partition, partition_note = heat_map(folder)
    return {
        "partition": partition,
        "partition_note": partition_note,
        "devices": Photo("devices of the clients", data) if (data := _content(folder / "devices.png")) else None,
        "profile": profile,
        "profile_note": profile_note,
        "summary": Table(("name", "value"), map(_summary_line, summary.items())) if summary else None,
        "files": [
            (name, data.decode(errors="replace"))
            for name in ("config.yaml", "environment.json")
            if (data := _content(folder / name))
        ],
    }


def _is_drawn(rounds: DataFrame, chart: str) -> bool:
    """Whether there are values of a chart."""
    return any(name in rounds and rounds[name].notna().any() for name in columns.curves(chart))


def _further(rounds: DataFrame, name: str) -> tuple[str, Picture]:
    """The heading and the picture of one chart."""
    title = columns.CHARTS[name].title
    return title, in_both_forms(lambda form: chart_picture(rounds, name, form), title)


def _content(path: Path) -> bytes:
    """A file that the page shows; empty where there is none, or where it is no regular file of the folder's own."""
    try:
        return read_bytes(path)
    except OSError:
        return b""


def is_drawn(folder: Path) -> bool:
    """Whether a finished run has its page, made after its last round."""
    target, summary = folder / PAGE, folder / "summary.json"
    return target.is_file() and summary.is_file() and target.stat().st_mtime >= summary.stat().st_mtime


def _costs(rounds: DataFrame, title: str) -> Any:
    """The picture of accuracy against traffic and virtual time; None of a run that was judged less than twice."""
    if not drawn_costs([rounds]) or rounds["accuracy"].notna().sum() < 2:
        return None
    return in_both_forms(lambda form: cost_picture([("", [rounds])], title, form), "accuracy against costs")


def _costs_table(rounds: DataFrame) -> Table | None:
    """Table of the cost of each accuracy that the run reached."""
    import pandas as pd

    costs = pd.DataFrame(costs_to_accuracies(rounds))
    return None if costs.empty else _table(costs)


def _table(frame: DataFrame) -> Table:
    """A frame with its columns in their units."""
    names = [str(name) for name in frame.columns]
    rows = (
        [cell(name, value) for name, value in zip(names, row, strict=True)] for row in frame.itertuples(index=False)
    )
    return Table([name.replace("_", " ") for name in names], rows)


def _profile(folder: Path) -> tuple[Table | None, str]:
    """The table of where the time went, if the run measured it, and what it counts."""
    path = folder / "profile.csv"
    if not path.is_file():
        return None, ""
    note, lines = profile_table.read(path)
    return Table(profile_table.HEADER, lines), note


def _summary_line(entry: tuple[str, Any]) -> tuple[str, str]:
    name, value = entry
    if isinstance(value, (dict, list)):
        return name, json.dumps(value)
    return name, cell(measures.column_of(name), value)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m raysim.report",
        description="Write HTML reports of finished or running runs; of several runs also a page that compares them, "
        "runs that differ in their seed alone as one line with its spread, differences over equal seeds and their "
        "tests, and its tables as CSV, Markdown and LaTeX.",
    )
    parser.add_argument("folders", nargs="+", metavar="FOLDER", help="a run's folder, or its remote address")
    parser.add_argument(
        "--out",
        type=local_path,
        help="comparison page of several runs (default: compare.html beside the first); its tables lie beside it",
    )
    parser.add_argument(
        "--measure",
        action="append",
        default=[],
        metavar="NAME",
        help="a measure that runs are compared by, as in a study: accuracy (the default), best_accuracy, "
        "rounds_to_0.8, bytes_to_0.8, virtual_seconds_to_0.8, local_gain …",
    )
    parser.add_argument(
        "--against", metavar="ROW", help="the row that the others are compared with (default: that of the first run)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object: the files that were written")
    return answered(parser, arguments, _pages)


def _pages(options: argparse.Namespace) -> Answer:
    if len(options.folders) == 1 and (options.out or options.measure or options.against):
        raise ConfigError(
            "--out, --measure and --against are for the comparison of several folders; the page of one run is its "
            "report.html"
        )
    given = [tables_only(folder) for folder in options.folders]
    target = options.out or given[0].absolute().parent / "compare.html"
    if target.suffix in TABLES:
        raise ResultsError(f"--out {target}: this is the name of a table beside the page; end it in .html.")
    folders = [folder for folder in given if not _is_made(folder, target)]  # among runs/*, say
    found = None
    if len(folders) > 1:
        _check_place(target)
        found = compare(folders, options.measure, against=options.against, command=_command(options))
    # Who asks for one page gets it anew; a comparison only adds those that are missing.
    pages = [folder / PAGE if len(folders) > 1 and is_drawn(folder) else page(folder) for folder in folders]
    compared = list[Path]()
    if found is not None:
        compared = [
            write_page(found, target),
            *(path for end in TABLES for path in found.write(target.with_suffix(end))),
        ]
    told = {"pages": [*map(str, pages)], "comparison": [*map(str, compared)]}
    return Answer("\n".join(map(str, [*pages, *compared])), told)


def _check_place(target: Path) -> None:
    """ResultsError for a place where no page can be written, before any is drawn."""
    if target.is_dir():
        raise ResultsError(f"--out {target}: it is a folder. Name a page in it, {target / 'compare.html'} say.")
    if not target.parent.is_dir():
        raise ResultsError(f"--out {target}: there is no folder {target.parent}. Make it, or name another page.")
    if not os.access(target.parent, os.W_OK):
        raise ResultsError(f"--out {target}: {target.parent} cannot be written. Name a page in another folder.")


def _is_made(path: Path, target: Path) -> bool:
    """Whether it is the page of an earlier comparison, or one of the tables beside it."""
    beside = path.absolute().parent == target.absolute().parent and not path.is_dir()
    return beside and path.stem.startswith(target.stem) and path.suffix in (target.suffix, *TABLES)


def _command(options: argparse.Namespace) -> str:
    """The command line that makes the tables again."""
    words = ["python", "-m", "raysim.report", *options.folders]
    words += [word for name in options.measure for word in ("--measure", name)]
    words += ["--against", options.against] if options.against else []
    return " ".join(printable(shlex.join(words)).split())
