"""A start of Ray's that fails in passing: what it leaves behind ends before the next try, and nothing else does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import ray

from raysim.actors import start_retry
from raysim.actors.start_retry import patiently
from tests.processes import within

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]
OF_RAY = [*SLEEP, f"{Path(ray.__file__).parent}/core/src/ray/gcs/gcs_server"]


def test_what_a_failed_start_leaves_behind_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_retry, "PAUSE", 0.0)
    left: list[subprocess.Popen[bytes]] = []

    def start() -> str:
        if len(left) == 2:
            return "started"
        left.append(subprocess.Popen(OF_RAY))
        assert within(120, Path(f"/proc/{left[-1].pid}/cmdline").read_bytes)  # for an instant it has no name yet
        raise RuntimeError("The current node timed out during startup")

    other, earlier = subprocess.Popen(SLEEP), subprocess.Popen(OF_RAY)
    try:
        assert patiently(start) == "started"
        for process in left:
            assert process.wait(120) != 0
        assert other.poll() is None and earlier.poll() is None
    finally:
        for process in (other, earlier, *left):
            process.kill()
            process.wait()
