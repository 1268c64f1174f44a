"""A notebook as a page: its text, its code, and the output that the code gives now."""

from __future__ import annotations

import base64
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat

LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]+\)")
"""Links of the notebook to files beside it, which the site has elsewhere."""


def page(path: Path, pictures: Path, *, run: bool) -> str:
    """The notebook's cells as Markdown.

    Args:
        path: the notebook.
        pictures: folder for the pictures of its outputs, beside the page.
        run: whether it is run, in a kernel as Jupyter's; each code cell is then followed by its output.
    """
    notebook: Any = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)  # type: ignore[no-untyped-call]
    if run:
        from nbclient import NotebookClient

        with tempfile.TemporaryDirectory() as place:
            NotebookClient(notebook, timeout=120, resources={"metadata": {"path": place}}).execute()
    return "\n\n".join(part for cell in notebook.cells for part in _parts(cell, pictures)) + "\n"


def _parts(cell: Any, pictures: Path) -> Iterator[str]:
    if cell.cell_type == "markdown":
        yield LINK.sub(r"\1", cell.source)
        return
    yield f"```python\n{cell.source}\n```"
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        if output.get("name") == "stderr":
            continue  # progress of the run
        if "image/png" in data:
            picture = pictures / f"notebook-{cell.id}.png"
            picture.write_bytes(base64.b64decode(data["image/png"]))
            yield f"![The picture that this cell draws]({pictures.name}/{picture.name})"
        elif text := output.get("text") or data.get("text/plain", ""):
            yield f"```text\n{text.rstrip()}\n```"
