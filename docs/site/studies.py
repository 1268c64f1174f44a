"""The gallery: a card and a page for each study of docs/studies, sorted by the question that it answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from docs.site.markdown import plain
from docs.site.options import toctree
from raysim.studies import study_file
from raysim.studies.study_file import Study
from raysim.studies.tables import place_of_table

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "Which method with skewed labels?": ("image-methods", "fedrad-cifar10", "fedrad-eta"),
    "Which method for hospitals whose images differ?": ("fedld-medical", "fedld-xrays", "fedld-steps"),
    "Which method for graphs of different kinds?": (
        *("fedssp-baselines", "fedssp-ablation", "fedssp-features", "fedssp-scan"),
    ),
    "Attacks against defenses: which rule holds?": ("attacks-defenses", "attack-success"),
    "Wait for slow clients, or go on without them?": ("virtual-time-cifar10",),
    "What do fewer bytes cost?": ("compression",),
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


def lines_of_method(method: str) -> Iterator[tuple[str, str]]:
    """Study and lines of its first table (with the head) whose rows are runs of one method."""
    for name in names():
        asked = study(name)
        rows = [row for row, layer in asked.rows.items() if layer.get("method.name") == method]
        if not rows and asked.base.get("method.name") == method:
            rows = list(asked.rows)
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
        plain(about(name)),
        f"{there} of {cells} cells are kept in `{asked.results.relative_to(ROOT)}`. What the numbers say, and how far "
        f"they reach, is told on [its page](../{asked.table.name}).",
        f"```sh\n{command(name)}\n```",
        f"![{plain(asked.title)}](../{picture.relative_to(DOCS)})" if picture else "",
        table_of(name),
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
        "of the table alone are no ranking.",
    ]
    for question, own in by_question().items():
        parts += [f"## {question}", "\n".join([":::::{grid} 1 1 2 2", ":gutter: 3", "", *map(_card, own), ":::::"])]
    parts.append(toctree(f"results/{name}" for name in names()))
    return "\n\n".join(parts) + "\n"


def _card(name: str) -> str:
    picture, (there, cells) = picture_of(name), kept(name)
    shown = f":img-top: {picture.relative_to(DOCS)}\n:img-alt: {study(name).title}\n" if picture else ""
    return (
        f"::::{{grid-item-card}} {plain(study(name).title)}\n:link: results/{name}\n:link-type: doc\n{shown}\n"
        f"{_first_sentences(about(name))}\n\n{there} of {cells} cells kept\n\n"
        f":::{{card-footer}}\n`python -m raysim.study docs/studies/{name}.yaml`\n:::\n::::\n"
    )


def _first_sentences(text: str) -> str:
    return plain(" ".join(re.split(r"(?<=\.) (?=[A-Z])", text)[:2]))
