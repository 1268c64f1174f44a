"""The example of own data, as a program and as a notebook: both give the same run."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from examples import own_data, own_graphs
from raysim.launch import main
from tests.fingerprint import fingerprint

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = ROOT / "examples" / "own_data.ipynb"
TOLD = """
import json, pathlib
found = {
    "folder": str(result.folder),
    "loss": result.rounds["loss"].tolist(),
    "accuracy": result.rounds["accuracy"].tolist(),
    "digest": result.config["workload"]["digest"],
    "is_net": type(result.model) is Net,
    "predicted": float((predicted == y[:100]).mean()),
}
pathlib.Path("found.json").write_text(json.dumps(found))
"""
"""A last cell, which says what the others have made."""


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the notebook gave when a kernel of Jupyter's ran it in an empty folder."""
    client, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=":")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(TOLD))
    place = {"metadata": {"path": str(tmp_path)}}
    client.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=place).execute()
    read: dict[str, Any] = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in shown), "the plot is shown"
    return read


@pytest.mark.slow
def test_program_and_notebook_give_the_same_run(found: dict[str, Any], tmp_path: Path) -> None:
    settings: dict[str, Any] = {"engine": {"backend": "inline"}, "pictures": False}
    program = own_data.main(**settings | {"rounds": 10}, output=str(tmp_path / "program"))
    assert program.rounds["accuracy"].iloc[-1] > program.rounds["accuracy"].iloc[0]
    assert type(program.model) is own_data.Net and found["is_net"]
    assert "self.layers" in (tmp_path / found["folder"] / "source.txt").read_text(encoding="utf-8")
    assert found["loss"] == program.rounds["loss"].tolist()
    assert found["digest"] == program.config["workload"]["digest"]
    assert found["predicted"] == found["accuracy"][-1]


def test_the_lines_that_docs_count_are_those_of_the_notebook() -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"][:3]
    assert "raysim.run(" in code[2] and not any("raysim.run(" in cell for cell in code[:2])
    lines = [line.strip() for cell in code for line in cell.splitlines()]
    counted = sum(bool(line) and not line.startswith("#") for line in lines)
    [row] = [
        line
        for line in (ROOT / "docs" / "own-data.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| raysim |")
    ]
    assert f"| {counted} |" in row


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
    named += [f"--path={tmp_path}", "--partition=iid", "--learning_rate=0.01", "--training.batch_size=4"]
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
