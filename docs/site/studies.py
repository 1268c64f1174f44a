"""The gallery: a card and a page for each study of docs/studies, sorted by the question that it answers."""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from docs.site.markdown import heads_as_lines, plain
from docs.site.options import toctree
from raysim.studies import study_file, tables
from raysim.studies.study_file import Study
from raysim.studies.tables import place_of_table
from raysim.units import time_unit

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "Which method with skewed labels?": ("image-methods", "comparing", "fedrad-cifar10"),
    "Attacks against defenses: which rule holds?": ("attacks-defenses", "attack-success"),
    "Async against sync: wait for slow clients, or go on without them?": ("virtual-time-cifar10",),
    "Who should take part in a round?": ("client-selection",),
    "What does privacy cost?": ("privacy",),
    "What do fewer bytes cost?": ("compression",),
    "Which method for hospitals whose images differ?": (
        *("fedld-medical", "fedld-xrays", "fedld-steps", "fedld-pretrained", "fedld-retina", "fedld-cifar10"),
    ),
    "Which method for graphs of different kinds?": (
        *("fedssp-baselines", "fedssp-baselines-cv", "fedssp-folds", "fedssp-width", "fedssp-settings"),
        *("fedssp-features", "fedssp-scan"),
    ),
    "Which method for parts of one graph?": (
        *("subgraphs-fedpub", "subgraphs-fedtad", "subgraphs-fedavg"),
        *("subgraphs-datasets", "subgraphs-datasets-fedpub"),
    ),
    "What do the parts of FedRAD do?": (
        *("fedrad-table1", "fedrad-table2", "fedrad-iterations", "fedrad-table2-iterations"),
        *("fedrad-joins", "fedrad-whole"),
        *("fedrad-clients", "fedrad-constant", "fedrad-even", "fedrad-even-intervals", "fedrad-even-clients"),
        "fedrad-even-amounts",
        *("fedrad-neunet", "fedrad-eta", "fedrad-pilot"),
    ),
    "What may a first run expect?": ("fedavg-datasets",),
}
"""Question → the studies that answer it."""
OTHERS = "Further studies"


@cache
def by_question() -> Mapping[str, tuple[str, ...]]:
    """Question → its studies; those of docs/studies that no question names stand at the end."""
    named = {name for names in QUESTIONS.values() for name in names}
    others = sorted({path.stem for path in (DOCS / "studies").glob("*.yaml")} - named)
    return {**QUESTIONS, OTHERS: tuple(others)} if others else QUESTIONS


def names() -> list[str]:
    """All studies, in the order of their questions."""
    return [name for names in by_question().values() for name in names]


def question_of(name: str) -> str:
    """The question that a study answers."""
    return next(question for question, names in by_question().items() if name in names)


@cache
def study(name: str) -> Study:
    """A study of docs/studies."""
    return study_file.read(DOCS / "studies" / f"{name}.yaml")


def about(name: str) -> str:
    """The comment at the head of its file: data, clients, cost."""
    lines = (DOCS / "studies" / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
    comment = []
    for line in lines:
        if not line.startswith("#"):
            break
        comment.append(line.removeprefix("#").strip())
    return " ".join(comment)


def table_of(name: str) -> str:
    """The table of its page, as the study wrote it."""
    before, after = place_of_table(study(name))
    text = study(name).table.read_text(encoding="utf-8")
    return text.removeprefix(before).removesuffix(after).strip()


def picture_of(name: str) -> Path | None:
    """The first picture that it draws and that is there."""
    asked = study(name)
    drawn = [part.path for part in (asked.picture, asked.heat_map) if part is not None]
    drawn += asked.curves.path if asked.curves is not None else []
    return next((path for path in drawn if path.suffix == ".png" and path.exists()), None)


def command(name: str) -> str:
    """The command that computes it, or those of its cells that are not kept."""
    return f"RAYSIM_DATA=/path/to/data python -m raysim.study docs/studies/{name}.yaml"


def kept(name: str) -> tuple[int, int]:
    """The number of its cells whose results are kept, and of all."""
    cells = list(study(name).cells())
    return sum(cell.path.exists() for cell in cells), len(cells)


@cache
def _costs() -> dict[str, float]:
    with (DOCS / "results" / "study-costs.csv").open(encoding="utf-8", newline="") as rows:
        return {row["study"]: float(row["processor_seconds"]) for row in csv.DictReader(rows)}


def time_of(name: str) -> str:
    """The estimate of its time on two cores (benchmarks/study_costs.py)."""
    if name not in _costs():
        return "its time has not been estimated"
    return f"about {two_cores(_costs()[name])} on two cores"


def two_cores(processor_seconds: float) -> str:
    """Half of these seconds of a processor, in a unit that is easily read."""
    factor, unit = time_unit(processor_seconds / 2)
    return f"{max(1, round(processor_seconds / 2 / factor))} {unit}"


def proof_of(name: str) -> str:
    """The digest of the heads of its runs' proofs, as far as they were kept."""
    heads = tables.heads(study(name)).values()
    if not heads:
        return "made before heads of proofs were kept"
    digest = hashlib.sha256("".join(f"{head}\n" for head in heads).encode()).hexdigest()[:16]
    return f"heads of {len(heads)} proofs: `{digest}`"


def method_of_row(name: str, row: str) -> str:
    """The method that the runs of a row use."""
    asked = study(name)
    return str(asked.rows[row].get("method.name", asked.base.get("method.name", "fedavg")))


def lines_of_method(method: str) -> Iterator[tuple[str, str]]:
    """Study and lines of its first table (with the head) whose rows are runs of one method."""
    for name in names():
        rows = [row for row in study(name).rows if method_of_row(name, row) == method]
        lines = re.split(r"\n\s*\n", table_of(name))
        first = next((block.splitlines() for block in lines if block.startswith("|")), [])
        own = [line for line in first if line.split("|")[1].strip() in rows]
        if own:
            yield name, "\n".join([*first[:2], *own])


def page(name: str) -> str:
    """The page of one study: its setting, its tables, its picture, its file."""
    asked, (there, cells) = study(name), kept(name)
    picture = picture_of(name)
    parts = [
        f"# {plain(asked.title)}",
        f"*{question_of(name)}* This is one of the studies behind [that question](../results.md).",
        plain(about(name)),
        f"{there} of {cells} cells are kept in `{asked.results.relative_to(ROOT)}`. What the numbers say, and how far "
        f"they reach, is told on [its page](../{asked.table.name}).",
        f"```sh\n{command(name)}\n```",
        f"It takes {time_of(name)}; {proof_of(name)}." if name in _costs() else f"{proof_of(name).capitalize()}.",
        f"![{plain(asked.title)}](../{picture.relative_to(DOCS)})" if picture else "",
        heads_as_lines(table_of(name)),
        "## The study's file",
        f"```yaml\n{(DOCS / 'studies' / f'{name}.yaml').read_text(encoding='utf-8').strip()}\n```",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def gallery() -> str:
    """The page of cards."""
    parts = [
        "# Results",
        "Each card is a study: a table of runs that is kept with its settings, so that any cell can be computed again. "
        "A comparison of two rows is told with its paired difference and interval on the study's page; the numbers "
        "of the table alone are no ranking. A picture of dots shows the first measure of every row, mean and standard "
        "deviation over seeds, in a color for each column. Times are estimates from the beginning of one run "
        "(`python -m benchmarks.study_costs`); heads of proofs are given as the first digits of the SHA-256 of all of "
        "them, a line each.",
    ]
    for question, own in by_question().items():
        parts += [f"## {question}", "\n".join([":::::{grid} 1 1 2 2", ":gutter: 3", "", *map(_card, own), ":::::"])]
    parts.append(toctree(f"results/{name}" for name in names()))
    return "\n\n".join(parts) + "\n"


def _card(name: str) -> str:
    picture, (there, cells) = picture_of(name), kept(name)
    place = str(picture.relative_to(DOCS)) if picture else f"pictures/cards/{name}.png" if there else ""
    shown = f":img-top: {place}\n:img-alt: {study(name).title}\n" if place else ""
    return (
        f"::::{{grid-item-card}} {plain(study(name).title)}\n:link: results/{name}\n:link-type: doc\n{shown}\n"
        f"{_first_sentences(about(name))}\n\n{there} of {cells} runs kept, {time_of(name)}\\\n{proof_of(name)}\n\n"
        f":::{{card-footer}}\n`python -m raysim.study docs/studies/{name}.yaml`\n:::\n::::\n"
    )


def _first_sentences(text: str) -> str:
    return plain(" ".join(re.split(r"(?<=\.) (?=[A-Z])", text)[:2]))
