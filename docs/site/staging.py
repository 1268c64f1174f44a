"""The folder that Sphinx reads: pages of docs/ with links that lead to pages of the site, and pages from the code."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping
from os.path import relpath
from pathlib import Path

from docs.site import cards, catalog, interface, methods, notebook, options, studies
from docs.site.markdown import heads_as_lines
from raysim.config import registry

ROOT, DOCS = studies.ROOT, studies.DOCS
OWN = Path(__file__).parent / "pages"
LINK = re.compile(r"(!?\[(?:[^\]\[]|\[[^\]]*\])*\])\(([^)\s]+)\)")
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
ELSEWHERE: Mapping[str, str] = {
    "README.md": "index.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "AGENTS.md": "agents.md",
    "benchmarks/README.md": "speed.md",
    "docs/methods.md": "reference/methods.md",
    "examples/own_data.ipynb": "notebook.md",
}
"""Page of the repository, outside docs/ or with a place of its own → page of the site."""
PICTURES = (".png", ".svg", ".webp")
HIDDEN_TABLES = re.compile(r"<!--.*?-->\n?")


def pages_of_the_site() -> dict[str, str]:
    """File of the repository → the page of the site that shows it."""
    found = {f"docs/{path.name}": path.name for path in DOCS.glob("*.md")} | dict(ELSEWHERE)
    found |= {methods.file_of(name): f"reference/methods/{name}.md" for name in methods.names()}
    return found | {f"docs/studies/{path.stem}.yaml": f"results/{path.stem}.md" for path in DOCS.glob("studies/*.yaml")}


def stage(folder: Path, *, run: bool) -> None:
    """Write all that Sphinx reads into a new folder; ``run``: with the outputs of the notebook."""
    shown = pages_of_the_site()
    shutil.copytree(DOCS / "pictures", folder / "pictures")
    shutil.copy2(DOCS / "fedrad-digits.png", folder)
    for source, page in shown.items():
        if source.endswith(".md"):
            _write(folder, page, rewritten(source, page, shown, folder))
    _write(folder, "notebook.md", notebook.page(ROOT / "examples" / "own_data.ipynb", folder / "pictures", run=run))
    own = {path.name: path.read_text(encoding="utf-8") for path in OWN.glob("*.md")}
    own["index.md"] = own["index.md"].replace("%README%", _first_screen(folder))
    own["explanation.md"] += f"\n{options.toctree(_unlisted(own.values()))}\n"
    for page, text in own.items():
        _write(folder, page, text)
    for page, text in made().items():
        _write(folder, page, text)
    (folder / "pictures" / "cards").mkdir()
    for name in studies.names():
        if studies.picture_of(name) is None and (drawn := cards.picture(name)) is not None:
            (folder / "pictures" / "cards" / f"{name}.png").write_bytes(drawn)
    for name in methods.names():
        _keep(folder, methods.file_of(name))


def _unlisted(own: Iterable[str]) -> list[str]:
    """Pages of docs/ that no part of the site names yet: they stand at the end of the explanations."""
    named = {line for text in own for line in text.splitlines()}
    return sorted(path.stem for path in DOCS.glob("*.md") if path.stem not in named and path.stem != "methods")


def made() -> dict[str, str]:
    """The pages from the code, without those of studies' own pages."""
    found = {
        "reference/options.md": options.overview(),
        "reference/api.md": interface.api(),
        "reference/commands.md": interface.commands(),
        "reference/columns.md": interface.columns(),
        "reference/workloads.md": catalog.overview("workload", "Data sets", DATA),
        "reference/models.md": catalog.overview("model", "Models", MODELS),
        "results.md": studies.gallery(),
    }
    found |= {f"reference/options/{name}.md": text for name, text in options.section_pages()}
    found |= {f"reference/methods/{name}.md": text for name, text in methods.pages()}
    for kind in ("workload", "model"):
        found |= {f"reference/{kind}s/{name}.md": text for name, text in catalog.pages(kind)}
    return found | {f"results/{name}.md": studies.page(name) for name in studies.names()}


def rewritten(source: str, page: str, shown: Mapping[str, str], folder: Path) -> str:
    """The text of a page of the repository, as a page of the site.

    Args:
        source: its file, from the top of the repository.
        page: its place in the site.
        shown: file → page of the site.
        folder: where files are kept that a link leads to and that are no page.
    """
    text = (ROOT / source).read_text(encoding="utf-8")
    if page == "reference/methods.md":
        text += f"\n{methods.overview_links()}\n"
    parts = FENCE.split(heads_as_lines(HIDDEN_TABLES.sub("", text)))

    def leads(match: re.Match[str]) -> str:
        return _link(match, (ROOT / source).parent, page, shown, folder)

    return "".join(part if number % 2 else LINK.sub(leads, part) for number, part in enumerate(parts))


def _link(match: re.Match[str], base: Path, page: str, shown: Mapping[str, str], folder: Path) -> str:
    text, target = match.groups()
    path, _, anchor = target.partition("#")
    if "://" in target or not path:
        return match.group()
    found = (base / path).resolve().relative_to(ROOT)
    if found.as_posix() in shown:
        place = shown[found.as_posix()]
    elif (ROOT / found).is_dir():
        return text[1:-1]
    elif found.suffix in PICTURES:
        place = found.relative_to("docs").as_posix()
        dark = found.with_name(f"{found.stem}-dark{found.suffix}")
        if (ROOT / dark).is_file():
            both = ((place, "only-light"), (dark.relative_to("docs").as_posix(), "only-dark"))
            return "\n".join(f"{text}({_from(page, picture)}){{.{shown_in}}}" for picture, shown_in in both)
        if found.suffix == ".svg":  # it has a ground of its own
            return f"{text}({_from(page, place)}){{.dark-light}}"
    else:
        place = _keep(folder, found.as_posix())
    return f"{text}({_from(page, place)}{'#' * bool(anchor)}{anchor})"


def _from(page: str, place: str) -> str:
    """The way from one page of the site to a file of it."""
    return relpath(place, Path(page).parent.as_posix() or ".")


def _keep(folder: Path, file: str) -> str:
    """Copy a file of the repository to where the site shows it from; its place in the site."""
    place = folder / "files" / file
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(ROOT / file, place)
    return f"files/{file}"


def _first_screen(folder: Path) -> str:
    """The README without its table of pages, which the site has as its navigation."""
    text = rewritten("README.md", "index.md", pages_of_the_site(), folder)
    return text.partition("\n## Documentation")[0]


def _write(folder: Path, page: str, text: str) -> None:
    place = folder / page
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")


DATA = (
    "Every workload is a data set, or a kind of file, that is split over clients. Its options say how: "
    "[data and models](../data.md) explains the splits, [your own data](../own-data.md) how to bring data by Python. "
    "Six ways to split the same digits over ten clients:\n\n"
    "![Samples of each digit at ten clients, in six ways to split them](../pictures/partitions.png){.only-light}\n"
    "![Samples of each digit at ten clients, in six ways to split them](../pictures/partitions-dark.png){.only-dark}"
)
MODELS = (
    f"The {len(registry.known('model'))} models that come with raysim, by what they read. Any `torch.nn.Module` of "
    "your own will do too ([your own model](../own-data.md))."
)
