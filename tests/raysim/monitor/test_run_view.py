"""The state in which a run is found by its folder."""

from __future__ import annotations

from pathlib import Path

from raysim.monitor.run_view import live_status
from raysim.monitor.status_file import Recorder
from raysim.storage import process_lock
from raysim.storage.run_folder import RunFolder

YAML = "method: {name: fedavg}\nworkload: {name: synthetic}\nmodel: {name: cnn}\nseed: 3\n"


def test_what_an_earlier_launch_left_is_not_taken_for_the_present_one(tmp_path: Path) -> None:
    folder = tmp_path / "one"
    RunFolder.create(folder, YAML, {})
    with Recorder(folder, (1, 1)) as recorder:
        recorder.begins()
        recorder.ends("stopped")
    assert live_status(folder)["state"] == "stopped"
    with process_lock.launching(folder):
        assert live_status(folder)["state"] == "preparing"
        with Recorder(folder, (1, 1)) as recorder:
            recorder.begins()
            recorder.ends("finished")
        assert live_status(folder)["state"] == "finished"
