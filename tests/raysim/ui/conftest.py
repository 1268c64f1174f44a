"""A run's folder as a run leaves it, written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from raysim.monitor.status_file import Recorder
from raysim.storage.run_folder import RunFolder

EVIL = "<img src=x onerror=document.title='owned'>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two rounds of two clients, finished, with texts in it that would be markup on a careless page."""
    path = tmp_path / "run"
    yaml = "method: {name: fedavg}\nworkload: {name: digits}\nmodel: {name: cnn}\nseed: 3\nengine: {backend: ray}\n"
    made = RunFolder.create(path, yaml, {})
    for number in (1, 2):
        times = {"seconds_train": 1.0, "seconds_aggregate": 0.1, "seconds_evaluate": 0.2, "seconds_round": 1.3}
        values = {"accuracy": 0.4 * number, "loss": 1 / number, "local_epochs": 1, "bytes_down": 10, "bytes_up": 20}
        made.append_round({"round": number} | values | times)
        for client in (0, 1):
            name = EVIL if client else "client 0"
            made.append_clients(
                [{"round": number, "client": client, "name": name, "samples": 5, "accuracy": 0.5, "seconds_task": 1.0}]
            )
    made.log(EVIL)
    with Recorder(path, (1, 1)) as recorder:
        recorder.begins()
        recorder.placed(EVIL)
        recorder.fault(EVIL)
        recorder.ends("finished")
    return path
