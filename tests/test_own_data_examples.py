"""The example of own data, as a program and as a notebook: both give the same run."""

from __future__ import annotations

import json
import linecache
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from examples import own_data, own_graphs
from raysim.launch import main
from tests.fingerprint import fingerprint

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


def molecules(folder: Path, count: int = 40) -> None:
    """BONDS.zip in TUDataset's layout: rings of five atoms, whose class is how many of their bonds have type 1."""
    texts: dict[str, list[str]] = {
        part: [] for part in ("A", "graph_indicator", "graph_labels", "node_labels", "edge_labels")
    }
    for number in range(count):
        texts["graph_labels"].append(str(number % 2))
        for atom in range(5):
            one, two = 5 * number + atom + 1, 5 * number + (atom + 1) % 5 + 1
            texts["graph_indicator"].append(str(number + 1))
            texts["node_labels"].append(str((number + atom) % 3))
            texts["A"] += [f"{one}, {two}", f"{two}, {one}"]
            texts["edge_labels"] += 2 * [str(int(atom < 1 + 3 * (number % 2)))]
    with zipfile.ZipFile(folder / "BONDS.zip", "w") as archive:
        for part, lines in texts.items():
            archive.writestr(f"BONDS/BONDS_{part}.txt", "\n".join(lines))


def test_an_own_graph_network_learns_from_bonds_and_goes_on_as_it_was(tmp_path: Path) -> None:
    molecules(tmp_path)
    options: dict[str, Any] = {
        "sets": ("BONDS",),
        "data": str(tmp_path),
        "partition": "iid",
        "parts": 2,
        "engine": {"backend": "inline"},
        "pictures": False,
        "learning_rate": 0.01,
        "training.batch_size": 4,
    }
    straight = own_graphs.main(**options, rounds=6, output=str(tmp_path / "straight"))
    assert straight.rounds["accuracy"].iloc[-1] == 1.0  # by the types of bonds alone: atoms and rings tell nothing
    part = own_graphs.main(**options, rounds=2, output=str(tmp_path / "part"))
    own_graphs.main(**options, rounds=6, resume=part.folder)
    named = ["--method=fedavg", "--workload=tudataset", "--model=examples.own_graphs:Net", "--parts=2", "--sets=BONDS"]
    named += [f"--data={tmp_path}", "--partition=iid", "--learning_rate=0.01", "--training.batch_size=4"]
    named += ["--pictures=false", "--engine.backend=inline", "--rounds=6", f"--output={tmp_path / 'named'}"]
    assert main(named) == 0
    first, *others = (fingerprint(tmp_path / name) for name in ("straight", "part", "named"))
    assert all(other["server"] == first["server"] for other in others)


@pytest.mark.skipif("RAYSIM_DATA" not in os.environ, reason="RAYSIM_DATA is not set")
def test_the_own_graph_network_trains_on_mutag(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"engine": {"backend": "inline"}, "pictures": False, "rounds": 2}
    found = own_graphs.main(**settings, output=str(tmp_path / "run"))
    assert found.rounds["loss"].iloc[-1] < found.rounds["loss"].iloc[0]
    assert found.model.get_parameter("convolutions.0.lin.weight").shape == (32, 4)  # kinds of bonds
