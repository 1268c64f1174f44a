"""Pages of the data and the models that come with raysim, by kind, from their classes and the catalog of data sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from docs.site import options
from docs.site.markdown import docstring, plain, table
from raysim.config import registry
from raysim.config.registry import Kind
from raysim.workloads.data_sets.catalog import DATA_SETS, DataSet

TITLES: Mapping[str, str] = {
    "images": "Images",
    "graphs": "Graphs and nodes",
    "tables": "Tables",
    "text": "Text",
    "signals": "Signals",
    "huggingface": "Data sets of the Hugging Face hub",
    "image_specs": "Models of images and tables",
    "sequence_specs": "Models of signals and text",
    "graph_specs": "Models of graphs",
    "node_specs": "Models of nodes",
    "pretrained_specs": "Pretrained models",
}
"""Room of a workload, or module of a model → the title of its page."""


def title_of(group: str) -> str:
    """The title of a page; a room or module that is new has its own name."""
    return TITLES.get(group, group.replace("_specs", " models").replace("_", " ").capitalize())


def groups(kind: Kind) -> dict[str, list[str]]:
    """Page → the workloads or models on it, in the order of their registry."""
    found: dict[str, list[str]] = {}
    for name, location in registry.known(kind).items():
        module = location.partition(":")[0].split(".")
        found.setdefault(module[-2] if kind == "workload" else module[-1], []).append(name)
    return found


def pages(kind: Kind) -> Iterator[tuple[str, str]]:
    """Name and text of every page of one kind."""
    for group, names in groups(kind).items():
        entries = [f"# {title_of(group)}"]
        for name in names:
            cls = registry.resolve(kind, name)
            entries += [f"## {name}", f"```sh\npython -m raysim.launch --{kind} {name}\n```", docstring(cls)]
            entries += [_origin(data) for data in DATA_SETS if kind == "workload" and data.name == name]
            entries += [options.of_class(kind, cls)]
        yield group, _unique(entries, kind, names)


def _unique(entries: list[str], kind: Kind, names: list[str]) -> str:
    """The page's text; an option's place has its owner's name in it, as many owners of a page have the same option."""
    current, parts = "", []
    for entry in entries:
        if entry.startswith("## ") and entry[3:] in names:
            current = entry[3:]
        parts.append(entry.replace(f"{{#option-{kind}-", f"{{#option-{kind}-{current}-"))
    return "\n\n".join(parts) + "\n"


def _origin(data: DataSet) -> str:
    get = f"`python -m raysim.data fetch {data.name}`, {data.megabytes:g} MB" if data.files else plain(data.how)
    return f"Origin: {plain(data.title)}, <{data.source}>. License: {plain(data.license)}. To get it: {get}."


def data_sets() -> str:
    """The table of published data sets."""
    rows = [
        [f"`{data.name}`", plain(data.title), f"<{data.source}>", plain(data.license), f"{data.megabytes:g} MB"]
        for data in DATA_SETS
    ]
    return table(("name", "data", "source", "license", "download"), rows)


def overview(kind: Kind, title: str, about: str) -> str:
    """The page that lists the pages of one kind."""
    made = groups(kind)
    lines = [f"- [{title_of(group)}]({kind}s/{group}.md): {', '.join(names)}" for group, names in made.items()]
    parts = [f"# {title}", about, "\n".join(lines)]
    parts += ["## Published data sets", data_sets()] if kind == "workload" else []
    return "\n\n".join([*parts, options.toctree(f"{kind}s/{group}" for group in made)]) + "\n"
