"""One cell of a study as a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch

from raysim.engine.observer import Silent
from raysim.errors import DiskFullError
from raysim.storage import checkpoint
from raysim.studies import cell_run, failures, study_file
from raysim.studies.cell_run import End
from tests.raysim.studies.test_side_by_side import Rounds


def test_a_cell_is_a_real_run(small: Path) -> None:
    cell = next(study_file.read(small).cells())
    assert cell_run.run_cell(cell, Silent(), lambda: False) == End("finished")
    frame = pd.read_csv(cell.path)
    assert frame["round"].tolist() == [1, 2]
    assert frame["accuracy"].between(0, 1).all()
    assert not [column for column in frame.columns if column.startswith("seconds")]
    assert sorted(entry.name for entry in cell.path.parent.iterdir()) == [
        "fedavg-seed0.csv",
        "fedavg-seed0.proof",
        "fedavg-seed0.yaml",
    ]


@pytest.mark.parametrize(("asked", "kind"), [(True, "stopped"), (False, "failed")])
def test_an_error_of_a_cell_that_is_to_stop_is_no_failure(
    small: Path, monkeypatch: pytest.MonkeyPatch, asked: bool, kind: str
) -> None:
    """Python's locks answer KeyboardInterrupt so, and a kept failure would be a seed that the table has lost."""

    def fails(*_: object) -> None:
        raise RuntimeError("release unlocked lock")

    monkeypatch.setattr(cell_run, "_run", fails)
    cell = next(study_file.read(small).cells())
    assert cell_run.run_cell(cell, Silent(), lambda: asked).kind == kind
    assert bool(failures.made_at(cell)) == (not asked)


def test_a_cell_that_finds_no_room_on_the_disk_keeps_its_rounds(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = next(study_file.read(small).cells())
    watch = Rounds()
    assert cell_run.run_cell(cell, watch, lambda: len(watch.begun) > 1) == End("stopped")

    def full(*_: object, **__: object) -> None:
        raise DiskFullError("Cannot write config.yaml: No space left on device.")

    with monkeypatch.context() as patch:
        patch.setattr("raysim.running.open_run.prepare", full)
        assert cell_run.run_cell(cell, Silent(), lambda: False).kind == "failed"
    with monkeypatch.context() as patch:  # the last checkpoint, within the run
        patch.setattr(checkpoint, "save", full)
        assert cell_run.run_cell(cell, Silent(), lambda: False).kind == "failed"
    assert not failures.made_at(cell)  # no failure of the method's
    rounds = Rounds()
    assert cell_run.run_cell(cell, rounds, lambda: False) == End("finished")
    assert rounds.begun == [2]


def test_cells_that_share_a_gpu_have_their_share_of_its_memory(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[float] = []
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", told.append)
    found = replace(study_file.read(small), placed={"engine.gpus_per_client": 0.125})
    assert cell_run.run_cell(next(found.cells()), Silent(), lambda: False).kind == "failed"  # no GPU here
    assert told == [0.125]
