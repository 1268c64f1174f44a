"""One self-contained HTML page from a run's folder, and a page that compares several.

``python -m raysim.report FOLDER [FOLDER ...]``
"""

from __future__ import annotations

import argparse
import base64
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim import profile_table
from raysim.curves import comparison_picture, run_picture
from raysim.curves import curve as curve
from raysim.errors import RaysimError
from raysim.results import RunResult, load_result
from raysim.writing import write_atomically

if TYPE_CHECKING:
    from pandas import DataFrame

_LAST_ROUNDS = 20
_CLIENTS = 60  # more are cut in the middle: the worst and the best matter for fairness
_TEXT_COLUMNS = ("run", "method", "workload", "name", "who", "stage", "phase")
_STYLE = """
:root{color-scheme:light dark;--ink:#1f2328;--muted:#5d6672;--ground:#f5f6f8;--card:#fff;--line:#dde1e6;--bar:#0072b2}
@media(prefers-color-scheme:dark){:root{--ink:#e6e6e6;--muted:#9aa4b0;--ground:#121417;--card:#1b1e23;--line:#31363e;
--bar:#56b4e9}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:62rem;margin:auto;padding:1rem}
h1{font-size:1.5rem;line-height:1.25;margin:.5rem 0;overflow-wrap:anywhere}h2{font-size:1.1rem;margin:0 0 .6rem}
section{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:1rem;margin:1rem 0}
.note{color:var(--muted);margin:.3rem 0;overflow-wrap:anywhere}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(9rem,1fr));gap:.6rem;margin:1rem 0}
.tile{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:.5rem .8rem}
.tile span{display:block;color:var(--muted);font-size:.82rem}
.tile b{font-size:1.25rem;font-variant-numeric:tabular-nums}
img{display:block;max-width:min(100%,44rem);height:auto;margin:auto;border-radius:.3rem}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.86rem;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .6rem;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line)}
th{color:var(--muted);font-weight:600}.text{text-align:left}
.bar{display:inline-block;width:6rem;height:.6rem;background:var(--line);border-radius:.3rem;overflow:hidden}
.bar i{display:block;height:100%;background:var(--bar)}
pre{overflow-x:auto;font-size:.82rem;margin:0}summary{cursor:pointer;font-weight:600}details pre{margin-top:.6rem}
a{color:inherit}
"""


def page(folder: Path) -> Path:
    """Writes ``report.html`` into a run's folder, finished or not: one file without any outer resource.

    Raises:
        ResultsError: the folder holds no run, or cannot be written.
    """
    result = load_result(folder)
    title = _title(result)
    rounds, clients = result.rounds, result.clients
    state = "" if result.summary else "This run is not finished; the numbers are those of its rounds so far."
    parts = [f"<h1>{escape(title)}</h1>", _note(folder.resolve().name), _note(state), _tiles(result)]
    if len(rounds):
        parts.append(
            _section("Accuracy and loss", _two_grounds(lambda dark: run_picture(rounds, title, dark), "curves"))
        )
    partition = folder / "partition.png"
    if partition.is_file():
        parts.append(_section("Partition of the data", f'<img src="{_data(partition.read_bytes())}" alt="partition">'))
    if len(clients) and "accuracy" in clients and clients["accuracy"].notna().any():
        parts.append(_section("Clients, worst accuracy first", _fairness(clients)))
    if len(rounds):
        heading = f"Last {_LAST_ROUNDS} rounds" if len(rounds) > _LAST_ROUNDS else "Rounds"
        parts.append(
            _section(heading, _table(rounds.columns, rounds.iloc[::-1].head(_LAST_ROUNDS).itertuples(index=False)))
        )
    profile = folder / "profile.csv"
    if profile.is_file():
        title_of_profile, lines = profile_table.read(profile)
        table = _table(profile_table.HEADER, (line.texts() for line in lines))
        parts.append(_section("Profile", _note(title_of_profile) + table))
    if result.summary:
        parts.append(_folded("summary.json", _table(("name", "value"), result.summary.items())))
    for name in ("config.yaml", "environment.json"):
        if (folder / name).is_file():
            text = escape((folder / name).read_text(encoding="utf-8", errors="replace"))
            parts.append(_folded(name, f"<pre>{text}</pre>"))
    target = folder / "report.html"
    write_atomically(target, _document(title, parts))
    return target


def compare(folders: Sequence[Path], target: Path) -> Path:
    """Writes a page with the curves of several runs over each other and a table of their results to ``target``."""
    results = [load_result(folder) for folder in folders]
    # As far as they differ, so that runs of one name in two places can be told apart.
    common = os.path.commonpath([folder.resolve().parent for folder in folders])
    labels = [os.path.relpath(result.folder.resolve(), common) + _mark(_synthetic(result)) for result in results]
    kinds = {_synthetic(result) for result in results}
    title = f"Comparison of {len(results)} runs" + ("" if kinds == {False} else _mark(True, partly=len(kinds) > 1))
    runs = [(label, result.rounds) for label, result in zip(labels, results, strict=True)]
    workloads = sorted({_name(result, "workload") for result in results})
    differ = f"The runs have different workloads ({', '.join(workloads)}): their accuracies do not compare."
    parts = [f"<h1>{escape(title)}</h1>", _note(differ if len(workloads) > 1 else "")]
    picture = _two_grounds(lambda dark: comparison_picture(runs, title, dark), "curves of all runs")
    parts.append(_section("Accuracy and loss", picture))
    columns = [
        "run",
        "method",
        "workload",
        *dict.fromkeys(name for result in results for name, _ in _numbers(result)),
    ]
    rows = []
    for label, result in zip(labels, results, strict=True):
        link = os.path.relpath(result.folder / "report.html", target.parent).replace(os.sep, "/")
        shown = dict(_numbers(result))
        first = _Html(f'<a href="{escape(link)}">{escape(label)}</a>')
        rows.append(
            (first, _name(result, "method"), _name(result, "workload"), *(shown.get(c, "") for c in columns[3:]))
        )
    parts.append(_section("Results", _table(columns, rows)))
    write_atomically(target, _document(title, parts))
    return target


class _Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def _name(result: RunResult, part: str) -> str:
    section = result.config.get(part) if isinstance(result.config, dict) else None
    fallback = section.get("name", "?") if isinstance(section, dict) else section
    return str(result.summary.get(part, fallback or "?"))


def _synthetic(result: RunResult) -> bool:
    """As the summary says; before there is one, by the workload's name."""
    return bool(result.summary.get("synthetic", "synthetic" in _name(result, "workload")))


def _mark(synthetic: bool, partly: bool = False) -> str:
    return f" ({'partly ' if partly else ''}synthetic data)" if synthetic else ""


def _title(result: RunResult) -> str:
    return f"{_name(result, 'method')} on {_name(result, 'workload')}{_mark(_synthetic(result))}"


def _last(rounds: DataFrame, column: str) -> float:
    found = rounds[column].dropna().tolist() if column in rounds else []
    return float(found[-1]) if found else math.nan


def _numbers(result: RunResult) -> list[tuple[str, str]]:
    """Name and text of the figures that matter, from the table of rounds; what is not known is left out."""
    rounds = result.rounds
    best = float(rounds["accuracy"].max()) if "accuracy" in rounds else math.nan
    traffic = sum(float(rounds[name].sum()) for name in ("bytes_down", "bytes_up") if name in rounds)
    figures: list[tuple[str, float, Callable[[float], str]]] = [
        ("accuracy", _last(rounds, "accuracy"), _percent),
        ("best accuracy", best, _percent),
        ("balanced accuracy", _last(rounds, "balanced_accuracy"), _percent),
        ("loss", _last(rounds, "loss"), _text),
        ("mean of clients", _last(rounds, "client_accuracy_mean"), _percent),
        ("std over clients", _last(rounds, "client_accuracy_std"), _percent),
        ("worst 10 % of clients", _last(rounds, "client_accuracy_worst_decile"), _percent),
        ("rounds", float(len(rounds)), _text),
        ("local epochs", _last(rounds, "epochs_total"), _text),
        ("sent and received", traffic or math.nan, _bytes),
        ("seconds", float(rounds["seconds_round"].sum()) if "seconds_round" in rounds else math.nan, _text),
    ]
    return [(name, show(value)) for name, value, show in figures if not math.isnan(value)]


def _tiles(result: RunResult) -> str:
    tiles = (
        f'<div class="tile"><span>{escape(name)}</span><b>{escape(text)}</b></div>' for name, text in _numbers(result)
    )
    return f'<div class="tiles">{"".join(tiles)}</div>'


def _fairness(clients: DataFrame) -> str:
    """Each client's last known accuracy, sorted."""
    judged = clients[clients["accuracy"].notna()].sort_values("round", kind="stable").groupby("client").tail(1)
    judged = judged.sort_values(["accuracy", "client"], kind="stable")
    values = judged["accuracy"]
    columns = [name for name in ("client", "name", "accuracy", "samples", "round", "loss", "weight") if name in judged]
    hidden = max(0, len(judged) - _CLIENTS)
    spread = f"{_percent(values.min())} to {_percent(values.max())}, median {_percent(values.median())}"
    note = f"{len(judged)} clients: {spread}"
    if hidden:
        note += f"; {hidden} in the middle are not shown"
        judged = judged.drop(judged.index[_CLIENTS // 2 : _CLIENTS // 2 + hidden])
    rows = []
    for row in judged.to_dict("records"):
        width = 100 * min(1.0, max(0.0, float(row["accuracy"])))
        bar = _Html(f'{_percent(row["accuracy"])} <span class="bar"><i style="width:{width:.1f}%"></i></span>')
        rows.append([bar if name == "accuracy" else row[name] for name in columns])
    return _note(note) + _table(columns, rows)


def _table(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    names = list(columns)
    align = [' class="text"' if name in _TEXT_COLUMNS else "" for name in names]

    def line(tag: str, values: Iterable[Any]) -> str:
        cells = (value if isinstance(value, _Html) else escape(_text(value)) for value in values)
        joined = (f"<{tag}{place}>{cell}</{tag}>" for place, cell in zip(align, cells, strict=True))
        return f"<tr>{''.join(joined)}</tr>"

    head = line("th", (str(name).replace("_", " ") for name in names))
    body = "".join(line("td", row) for row in rows)
    return f'<div class="scroll"><table><thead>{head}</thead><tbody>{body}</tbody></table></div>'


def _text(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, (str, bool)):
        return str(value)
    if isinstance(value, (dict, list)):
        return json.dumps(value)
    number = float(value)
    return f"{number:,.0f}".replace(",", "\u202f") if number.is_integer() and abs(number) < 1e15 else f"{number:.4g}"


def _percent(value: float) -> str:
    return f"{100 * value:.2f}\u202f%"


def _bytes(value: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} TiB"


def _note(text: str) -> str:
    return f'<p class="note">{escape(text)}</p>' if text else ""


def _section(heading: str, content: str) -> str:
    return f"<section><h2>{escape(heading)}</h2>{content}</section>"


def _folded(heading: str, content: str) -> str:
    return f"<section><details><summary>{escape(heading)}</summary>{content}</details></section>"


def _two_grounds(draw: Callable[[bool], bytes], description: str) -> str:
    """A picture for light and one for dark; the browser takes the one that fits."""
    dark = f'<source media="(prefers-color-scheme: dark)" srcset="{_data(draw(True))}">'
    return f'<picture>{dark}<img src="{_data(draw(False))}" alt="{escape(description)}"></picture>'


def _data(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def _document(title: str, parts: Iterable[str]) -> bytes:
    # The policy makes a browser refuse whatever a slip in escaping might still let in.
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style>"
    )
    body = "\n".join(parts)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body><main>{body}</main></body></html>\n'.encode()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m raysim.report", description="Write HTML reports of finished or running runs."
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="a run's folder")
    parser.add_argument(
        "--out", type=Path, help="comparison page of several runs (default: compare.html beside the first)"
    )
    options = parser.parse_args(arguments)
    if options.out and len(options.folders) == 1:
        parser.error("--out is for the comparison of several folders; the page of one run is its report.html")
    target = options.out or options.folders[0].absolute().parent / "compare.html"
    folders = [folder for folder in options.folders if folder.absolute() != target.absolute()]  # among runs/*, say
    try:
        for folder in folders:
            print(page(folder))
        if len(folders) > 1:
            print(compare(folders, target))
    except RaysimError as error:
        print(f"raysim.report: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
