"""Processes that look like Ray's side processes are held, ended and let go on; no Ray is started."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from ray._private import ray_constants
from ray.experimental import internal_kv

from raysim.actors import own_ray
from raysim.actors.own_ray import AUTOSCALER, DASHBOARD, LOGS, OwnRay, side_processes, state
from raysim.actors.side_processes import AFTER, NICENESS, PATIENCE, SideProcesses
from tests.processes import within

STOPPED = ("", "T", "Z")
"""States of a process that is gone or stands still; one that starts may be in any other."""
SLEEP = [sys.executable, "-S", "-E", "-c", "import time; time.sleep(100)"]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Processes of this one, by the end of the path of the program that they seem to run."""
    monkeypatch.delenv(NICENESS, raising=False)
    found: dict[str, subprocess.Popen[bytes]] = {}
    yield found
    for process in found.values():
        process.kill()
        process.wait()


def start(started: dict[str, subprocess.Popen[bytes]]) -> None:
    home = Path(ray.__file__).parent
    for program in (DASHBOARD, AUTOSCALER, LOGS, "raylet/raylet"):
        started[program] = subprocess.Popen([*SLEEP, f"{home}/some/{program.lstrip('/')}"])


def test_dashboard_and_autoscaler_wait_until_they_are_let_go(
    started: dict[str, subprocess.Popen[bytes]],
) -> None:
    side, patience = SideProcesses(dashboard=True), getattr(ray_constants, PATIENCE)
    options: dict[str, Any] = {"include_dashboard": True}
    with side.held(options):
        assert options == {"include_dashboard": None} and getattr(ray_constants, PATIENCE) == 0
        start(started)
        held = [started[DASHBOARD].pid, started[AUTOSCALER].pid]
        assert within(120, lambda: [state(number) for number in held] == ["T", "T"])
        assert started[LOGS].wait(60) == -9
    assert getattr(ray_constants, PATIENCE) == patience
    assert [os.getpriority(os.PRIO_PROCESS, number) for number in held] == [15, 15]
    assert state(started["raylet/raylet"].pid) not in STOPPED
    side.go_on()
    assert within(120, lambda: all(state(number) not in STOPPED for number in held))
    assert started["raylet/raylet"].poll() is None


def test_a_run_that_ends_within_seconds_never_lets_them_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first clients that are done start the clock, later ones do not start it again."""
    side, begun = SideProcesses(dashboard=True), list[float]()

    class Timer(threading.Timer):
        def start(self) -> None:
            begun.append(self.interval)

    monkeypatch.setattr(threading, "Timer", Timer)
    side.go_on_soon()
    side.go_on_soon()
    assert begun == [AFTER]


def test_one_that_yields_more_already_is_let_go_too(
    started: dict[str, subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a run under ``nice -n 19``, whose user may not have anything yield less."""

    def refuse(*_: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "setpriority", refuse)
    side = SideProcesses(dashboard=True)
    with side.held({}):
        start(started)
        held = [started[DASHBOARD].pid, started[AUTOSCALER].pid]
        assert within(120, lambda: [state(number) for number in held] == ["T", "T"])
    side.go_on()
    assert within(120, lambda: all(state(number) not in STOPPED for number in held))


def test_side_processes_are_ended_by_force_with_their_ray(
    started: dict[str, subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = OwnRay()
    start(started)
    names = (DASHBOARD, AUTOSCALER, LOGS)
    assert within(120, lambda: {started[name].pid for name in names} <= side_processes().keys())
    monkeypatch.setattr(own_ray, "side_processes", lambda: {started[name].pid: name for name in names})
    own.started()
    own.end_side()
    assert [started[name].wait(60) for name in names] == [-9, -9, -9]
    assert started["raylet/raylet"].poll() is None
    own.end()


def test_none_is_left_where_no_dashboard_is_wanted(
    started: dict[str, subprocess.Popen[bytes]],
) -> None:
    options: dict[str, Any] = {}
    with SideProcesses(dashboard=False).held(options):
        assert options == {"include_dashboard": False}
        start(started)
        assert [started[name].wait(60) for name in (DASHBOARD, AUTOSCALER, LOGS)] == [-9, -9, -9]


def test_none_is_left_of_a_ray_that_cannot_start(started: dict[str, subprocess.Popen[bytes]]) -> None:
    def fail() -> None:
        start(started)
        assert within(120, lambda: started[DASHBOARD].pid in side_processes())
        raise OSError("no port")

    with pytest.raises(OSError, match="no port"), SideProcesses(dashboard=True).held({}):
        fail()
    assert [started[name].wait(60) for name in (DASHBOARD, AUTOSCALER)] == [-9, -9]


def test_the_address_is_told_once_the_dashboard_has_left_it(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[bytes | None] = [None, b"127.0.0.1:8266"]
    put: list[object] = []
    monkeypatch.setattr(internal_kv, "_internal_kv_get", lambda *_, **__: left.pop(0))
    monkeypatch.setattr(internal_kv, "_internal_kv_put", lambda *words, **_: put.append(words))
    told: list[str] = []
    side = SideProcesses(dashboard=True)
    side.introduce(told.append)
    assert side.address == ""
    side.go_on()
    assert within(120, lambda: told == ["127.0.0.1:8266"])
    assert (side.address, put) == ("127.0.0.1:8266", [("webui:url", b"127.0.0.1:8266")])
    side.introduce(told.append)  # as the next run of this process asks
    assert told == ["127.0.0.1:8266"] * 2
    SideProcesses(dashboard=False).introduce(told.append)
    assert len(told) == 2
