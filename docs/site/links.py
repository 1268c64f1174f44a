"""Links inside a built site, and what a page would fetch from elsewhere."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
"""Elements whose address a browser fetches without a click."""


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value}
        self.ids.update(values[name] for name in ("id", "name") if name in values)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif FETCHED.get(tag, "") in values:
            self.fetched.append(values[FETCHED[tag]])


def faults(folder: Path) -> list[str]:
    """Links to files or places that are not there, and addresses that a page fetches from the network."""
    files = [path for path in folder.rglob("*.html") if path.relative_to(folder).parts[0] != "_static"]
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in files}
    found = []
    for path, page in pages.items():
        name = path.relative_to(folder)
        found += [f"{name} fetches {address}" for address in page.fetched if urlsplit(address).netloc]
        for address in (*page.links, *page.fetched):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            if not target.exists():
                found.append(f"{name} links to {address}, which is not there")
            elif anchor and target in pages and anchor not in pages[target].ids:
                found.append(f"{name} links to {address}, which has no such place")
    return sorted(set(found))
