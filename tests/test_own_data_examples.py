"""The example of own data, as a program and as a notebook: both give the same run."""

from __future__ import annotations

import json
import linecache
from pathlib import Path
from typing import Any

import pytest

from examples import own_data

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the notebook's cells have defined, run one after another as a notebook runs them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    notebook = json.loads((ROOT / "examples" / "own_data.ipynb").read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            source, file = "".join(cell["source"]), f"<cell {number}>"
            linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)  # as IPython does
            exec(compile(source, file, "exec"), names)
    return names


def test_program_and_notebook_give_the_same_run(cells: dict[str, Any], tmp_path: Path) -> None:
    settings: dict[str, Any] = {"engine": {"backend": "inline"}, "pictures": False}
    found = own_data.main(**settings | {"rounds": 10}, output=str(tmp_path / "program"))
    assert found.rounds["accuracy"].iloc[-1] > found.rounds["accuracy"].iloc[0]
    assert type(found.model) is own_data.Net
    notebook = cells["result"]
    assert type(notebook.model) is cells["Net"]
    assert "self.layers" in (notebook.folder / "source.txt").read_text()
    assert notebook.rounds["loss"].tolist() == found.rounds["loss"].tolist()
    assert notebook.config["workload"]["digest"] == found.config["workload"]["digest"]
    assert (cells["predicted"] == cells["y"][:100]).mean() == notebook.rounds["accuracy"].iloc[-1]
