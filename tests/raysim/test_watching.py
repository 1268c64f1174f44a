"""The state in which a run is found by its folder."""

from __future__ import annotations

from pathlib import Path

from raysim import sitting
from raysim.results import RunFolder
from raysim.status import Recorder
from raysim.watching import Watched

YAML = "method: {name: fedavg}\nworkload: {name: synthetic}\nmodel: {name: cnn}\nseed: 3\n"


def test_what_an_earlier_launch_left_is_not_taken_for_the_present_one(tmp_path: Path) -> None:
    folder = tmp_path / "one"
    RunFolder.create(folder, YAML, {})
    with Recorder(folder, (1, 1)) as recorder:
        recorder.begins()
        recorder.ends("stopped")
    watched = Watched(folder)
    assert watched.live()["state"] == "stopped"
    with sitting.sitting(folder):
        assert watched.live()["state"] == "preparing"
        with Recorder(folder, (1, 1)) as recorder:
            recorder.begins()
            recorder.ends("finished")
        assert watched.live()["state"] == "finished"
