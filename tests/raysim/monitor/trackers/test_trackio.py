"""What trackio's local store has of a run that was stopped and resumed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.raysim.monitor.trackers.tracked_run import cells, curves, head, resumed

trackio = pytest.importorskip("trackio")


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trackio import sqlite_storage, utils

    for module in (sqlite_storage, utils):
        monkeypatch.setattr(module, "TRACKIO_DIR", tmp_path / "store")  # which it reads from the environment on import


def test_a_study_is_a_project_with_its_cells_as_runs(tmp_path: Path) -> None:
    from trackio.sqlite_storage import SQLiteStorage

    heads = cells(tmp_path / "study", "trackio")
    runs = [*trackio.Api().runs("A table- of runs")]
    assert {run.name: run.config["seed"] for run in runs} == {"fedavg-seed0": "0", "fedavg-seed1": "1"}
    found = {run.name: SQLiteStorage.get_logs("A table- of runs", run.name, run_id=run.id)[-1]["proof"] for run in runs}
    assert found == heads


def test_the_store_has_every_round_once(tmp_path: Path) -> None:
    from trackio import sqlite_storage

    result = resumed(tmp_path / "run", "trackio")
    (found,) = trackio.Api().runs("A table- of runs")
    assert found.name == "run"
    assert found.config is not None and {"method": "fedavg", "seed": "3"}.items() <= found.config.items()
    rows = sqlite_storage.SQLiteStorage.get_logs("A table- of runs", "run", run_id=found.id)
    for name, curve in curves(result).items():
        assert [(row["step"], row[name]) for row in rows if name in row] == curve
    assert (rows[-1]["status"], rows[-1]["proof"]) == ("finished", head(tmp_path / "run"))
