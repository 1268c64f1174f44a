"""What W&B's offline files have of a run that was stopped and resumed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.raysim.monitor.trackers.tracked_run import cells, curves, head, resumed

pytest.importorskip("wandb")
BLOCK = 32768
"""Size of the blocks of a ``.wandb`` file, a log of LevelDB's form after a header of 7 bytes."""


def records(path: Path) -> Iterator[Any]:
    """The records of a ``.wandb`` file."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, place, whole = path.read_bytes(), 7, b""
    while place + 7 <= len(data):
        if BLOCK - place % BLOCK < 7:  # what is left of a block is empty
            place += BLOCK - place % BLOCK
            continue
        length, kind = int.from_bytes(data[place + 4 : place + 6], "little"), data[place + 6]
        whole += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # a whole record, or its last part
            yield Record.FromString(whole)
            whole = b""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_MODE", "offline")


def test_a_study_is_a_project_with_its_cells_as_runs(tmp_path: Path) -> None:
    heads = cells(tmp_path / "study", "wandb")
    found = {}
    for file in (tmp_path / "wandb").glob("offline-run-*/run-*.wandb"):
        last = [record.run for record in records(file) if record.HasField("run")][-1]
        assert last.project == "A table- of runs"
        found[last.display_name] = [*last.tags]
    assert found == {
        name: ["fedavg", "digits", f"seed {name[-1]}", f"proof {proof[:16]}"] for name, proof in heads.items()
    }


def test_the_files_have_every_round_once(tmp_path: Path) -> None:
    result = resumed(tmp_path / "run", "wandb")
    (file,) = (tmp_path / "wandb").glob("offline-run-*/run-*.wandb")
    found = [*records(file)]
    begun, *_, ended = [record.run for record in found if record.HasField("run")]
    tags = ["fedavg", "digits", "seed 3"]
    assert (begun.project, begun.display_name, [*begun.tags]) == ("A table- of runs", "run", tags)
    assert [*ended.tags] == [*tags, f"proof {head(tmp_path / 'run')[:16]}"]
    configs = [begun.config, *(record.config for record in found if record.HasField("config"))]
    config = {item.key: json.loads(item.value_json) for each in configs for item in each.update if item.key}
    assert (config["method"], config["status"], config["proof"]) == ("fedavg", "finished", head(tmp_path / "run"))
    rows = [
        {item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.history.item}
        for record in found
        if record.HasField("history")
    ]
    for name, curve in curves(result).items():
        assert [(row["_step"], row[name]) for row in rows if name in row] == curve
