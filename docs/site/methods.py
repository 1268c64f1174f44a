"""A page of one form for every method, from its docstring, its options, its traits and the rows of docs/results."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from docs.site import options, studies
from docs.site.markdown import docstring, plain, table, words
from docs.site.purposes import purpose
from raysim.config import registry
from raysim.config.help_text import summary
from raysim.traits import Traits
from raysim.units import byte_count

CONDITIONS = {
    "personal": "Every client has a model of its own, and is judged by it on its own test set.",
    "pooled": "It trains on the union of all clients' data: a bound, no federated method.",
    "same_task": "All clients must have the same inputs and classes.",
    "local_tests": "Every client must have a test set of its own.",
    "classification": "The data must have classes.",
    "weighted_mean": "The server needs only the weighted mean of updates, which are added up where clients train.",
    "uses_rounds": "It is planned for its number of rounds: a finished run cannot be trained longer.",
}
"""Trait → the sentence for it."""


def names() -> list[str]:
    """The methods, in the order of docs/methods.md."""
    return list(dict.fromkeys([*departures(), *registry.known("method")]))


@cache
def departures() -> dict[str, str]:
    """Method → its departures from the print, as the table of docs/methods.md has them."""
    found = {}
    for line in (studies.DOCS / "methods.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 5 and cells[0].startswith("`"):
            found.update(dict.fromkeys(re.findall(r"`([\w-]+)`", cells[0]), cells[4]))
    return found


def file_of(name: str) -> str:
    """The method's file, from the top of the repository."""
    return registry.known("method")[name].partition(":")[0].replace(".", "/") + ".py"


def page(name: str) -> str:
    """The page of one method."""
    cls = registry.resolve("method", name)
    parts = [
        f"# {name}",
        purpose(name),
        words(summary(cls)),
        "## Run it",
        f"```sh\npython -m raysim.launch --method {name}\n```",
        "## Paper, equations and departures",
        docstring(cls).removeprefix(words(summary(cls))).strip(),
        f"Departures from the print, in short: {departures().get(name, 'see above')}.",
        "## Options",
        options.of_class("method", cls),
        "## What it needs and sends",
        _needs(cls().traits),
        "## The same numbers as other programs",
        _agreement(name),
        "## Measured",
        _measured(name),
        "## Cost",
        _cost(name),
        "## The whole method",
        f"```{{literalinclude}} ../../files/{file_of(name)}\n:language: python\n```",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _needs(traits: Traits) -> str:
    found = [f"- {text}" for trait, text in CONDITIONS.items() if getattr(traits, trait)]
    for text, why in ((traits.needs_sgd, "Local training must be SGD"), (traits.needs_several, "No `async` steps")):
        found += [f"- {why}: it is a method {plain(text)}."] if text else []
    if traits.model_parts:
        parts = ", ".join(f"`{part}*`" for part in traits.model_parts)
        found.append(f"- The model must have parameters whose names begin with {parts}.")
    stale = {
        "any": "It can take stale updates, one at a time too: every `--timing.mode` will do.",
        "several": "It can take stale updates of several clients at a time (`--timing.mode buffered`).",
        "none": "It takes no stale updates: `--timing.mode` must have rounds.",
    }
    return "\n".join([*found, f"- {stale[traits.stale]}"])


@cache
def _rows(file: str) -> list[dict[str, str]]:
    with (studies.DOCS / "results" / file).open(encoding="utf-8", newline="") as rows:
        return list(csv.DictReader(rows))


def _agreement(name: str) -> str:
    rows = [row for row in _rows("agreement.csv") if row["method"] == name]
    if not rows:
        return "It has not been compared with another program's numbers; tests hold it against numbers made by hand."
    head = ("program", "as it is", "changed", "what is changed there")
    lines = [[row["program"], row["as_it_is"], row["changed"], plain(row["changes"])] for row in rows]
    note = "Largest difference of a value after three rounds, by the model's largest value ([how](../../agreement.md))."
    return f"{note}\n\n{table(head, lines)}"


def _measured(name: str) -> str:
    found = [
        f"[{plain(studies.study(study).title)}](../../results/{study}.md):\n\n{lines}"
        for study, lines in studies.lines_of_method(name)
    ]
    if not found:
        return "No study of docs/studies has it among its rows."
    about = "Mean ± standard deviation over seeds (their number). Rows are compared by paired differences on each page."
    return "\n\n".join([about, *found])


def _cost(name: str) -> str:
    return "\n\n".join(filter(None, (_seconds(name), _bytes(name)))) or "It has not been measured."


def _seconds(name: str) -> str:
    study = studies.study("image-methods")
    own = [row for row, layer in study.rows.items() if layer.get("method.name") == name]
    rows = [row for row in _rows("image-methods-cost.csv") if row["row"] in own]
    if not rows:
        return "Its seconds a round have not been measured ([image methods](../../image-methods.md))."
    lines = [[plain(row["row"]), f"{float(row['seconds_round']):.2f}", f"{float(row['ratio']):.2f}"] for row in rows]
    head = ("row", "CPU seconds a round of ten clients", "ratio to FedAvg, run right before")
    return f"In the setting of [image methods](../../image-methods.md):\n\n{table(head, lines)}"


def _bytes(name: str) -> str:
    """Bytes of a round in the studies that measured it, from the kept rows of its first column and seed."""
    lines = []
    for study in studies.names():
        sent = {cell.row: cell.path for cell in reversed(list(studies.study(study).cells())) if cell.path.exists()}
        for row, path in sent.items():
            if studies.method_of_row(study, row) == name and (each := _sent(path)):
                title = plain(studies.study(study).title)
                lines.append([plain(row), f"[{title}](../../results/{study}.md)", *map(byte_count, each)])
    if not lines:
        return ""
    head = ("row", "study", "bytes to clients in a round", "bytes from clients")
    return f"What it sends, in the studies above (mean over the rounds of one run):\n\n{table(head, lines)}"


@cache
def _sent(path: Path) -> tuple[float, ...]:
    with path.open(encoding="utf-8", newline="") as rows:
        found = [
            [float(row[f"bytes_{way}"]) for way in ("down", "up")] for row in csv.DictReader(rows) if "bytes_up" in row
        ]
    return tuple(sum(column) / len(found) for column in zip(*found, strict=True))


def overview_links() -> str:
    """The table of contents of all methods."""
    return options.toctree(f"methods/{name}" for name in names())


def pages() -> Iterator[tuple[str, str]]:
    """Name and text of every method's page."""
    for name in names():
        yield name, page(name)
