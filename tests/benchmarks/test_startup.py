"""The stages of a start, by hand from marks; no run is started."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from benchmarks import startup
from tests.processes import within

LINES = """sent 1 100.5
sent 1 103
received 2 103.5
sent 2 104
sent 2 104.5
received 3 105
received 4 105.5
server 2 106
message 2 106.25
train 4 107
train 3 107.5
aggregated 2 110
aggregated 2 112""".splitlines()


def test_stages_by_hand() -> None:
    """The launching process (1) also pickles the config before it starts Ray; 2 is the driver, 3 and 4 are actors."""
    found = startup.stages(100.0, 113.0, 113.5, LINES)
    assert found == {
        "launching": 3.0,
        "driver up": 0.5,
        "data": 2.5,
        "round 1": 0.25,
        "first step": 0.75,
        "start to first step": 7.0,
        "(start to actors up)": 5.5,
        "results": 1.0,
        "exit": 0.5,
        "last round to exit": 1.5,
        "whole run": 13.5,
    }
    assert sum(found[stage] for stage in startup.STAGES) == found["start to first step"]


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("ray::driver of run", "driver"),
        ("ray::client-actor-00", "client actors"),
        ("ray::train[round 1]", "client actors"),
        ("ray::DashboardAgent", "Ray's agents"),
        ("/x/ray/dashboard/dashboard.py", startup.OTHERS),
        ("/x/raylet/raylet", "raylet and control store"),
        ("python /x/raysim/actors/fork_server.py", "fork server"),
    ],
)
def test_processes_are_told_apart_by_their_titles(title: str, kind: str) -> None:
    program = "import sys; sys.stdin.read()"
    process = subprocess.Popen([title, "-S", "-E", "-c", program], executable=sys.executable, stdin=subprocess.PIPE)
    try:
        assert within(120, lambda: startup.kind(process.pid, os.getpid()) == kind)
        assert startup.kind(process.pid, process.pid) == "launching process"
    finally:
        process.communicate()
