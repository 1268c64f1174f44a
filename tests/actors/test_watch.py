"""What counts as silence, with a clock turned by hand."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from raysim.actors import own_ray
from raysim.actors.own_ray import MARK, OwnRay, marked, processor_time, state
from raysim.actors.watch import BUSY, START, Watch
from tests.processes import within


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def silent(watch: Watch, clock: Clock, seconds: float) -> str:
    """What the watch says at the end of so long a silence, looked at every second."""
    said = ""
    for _ in range(round(seconds)):
        clock.now += 1.0
        said = watch.look()
    return said


def test_a_silence_as_long_as_the_limit_is_the_end() -> None:
    clock = Clock()
    watch = Watch(10.0, clock)
    watch.driver_starts()
    assert silent(watch, clock, START - 1) == ""
    assert "has not brought up the run's driver" in silent(watch, clock, 1)
    watch.heard()
    assert silent(watch, clock, 10) == ""  # the first of these looks hears it
    assert silent(watch, clock, 1) == "neither the driver nor Ray has answered for 10 s"
    watch.heard()
    assert silent(watch, clock, 5) == ""


def test_a_cluster_that_is_joined_has_no_longer_than_an_answer() -> None:
    """A hostile or broken head answers the first question, and then lets Ray try for minutes."""
    clock = Clock()
    watch = Watch(10.0, clock)
    watch.joins("host:6379")
    assert silent(watch, clock, 9) == ""
    said = silent(watch, clock, 1)
    assert said.startswith(
        "the Ray cluster at host:6379 has answered, and has not let this process join for 10 s. Next"
    )
    watch.driver_starts()  # joined: its driver may take longer
    assert silent(watch, clock, START - 1) == ""


def test_a_head_that_falls_silent_is_the_end_even_while_the_driver_starts() -> None:
    clock = Clock()
    watch = Watch(10.0, clock)
    watch.driver_starts()
    watch.head = "host:6379"
    watch.head_heard()
    assert silent(watch, clock, 10) == ""  # the first of these looks hears it
    watch.heard()
    assert silent(watch, clock, 1) == "the head of the Ray cluster at host:6379 has not answered for 10 s"
    watch.head_heard()
    assert silent(watch, clock, 5) == ""


def test_no_limit() -> None:
    clock = Clock()
    watch = Watch(0.0, clock)
    watch.heard()
    assert silent(watch, clock, 10_000) == ""


def test_time_in_which_this_process_was_suspended_does_not_count() -> None:
    clock = Clock()
    watch = Watch(10.0, clock)
    watch.heard()
    watch.look()
    clock.now += 3600
    assert watch.look() == ""


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process
    process.kill()
    process.wait()


def test_a_driver_that_uses_the_processor_is_not_frozen(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one does whose method holds Python's lock in a long call."""
    from raysim.actors import watch as module

    clock, used = Clock(), [0]
    monkeypatch.setattr(module, "processor_time", lambda number: used[0])
    watch = Watch(10.0, clock)
    watch.driver = sleeper.pid
    watch.heard()
    watch.look()
    used[0] = 1
    assert silent(watch, clock, 10 * BUSY - 1) == ""
    assert "has answered for 100 s" in silent(watch, clock, 1)
    os.kill(sleeper.pid, signal.SIGSTOP)
    assert within(120, lambda: state(sleeper.pid) == "T")
    assert f"the driver (process {sleeper.pid}) has been frozen" in watch.look()


def test_states_and_times_of_processes(sleeper: subprocess.Popen[bytes]) -> None:
    assert state(os.getpid()) == "R" and processor_time(os.getpid()) > 0
    sleeper.kill()
    sleeper.wait()
    assert state(sleeper.pid) == "" and processor_time(sleeper.pid) == 0


def test_what_carries_the_mark_ends_with_who_set_it() -> None:
    """However that one ends; and nothing else does."""
    program = (
        "import subprocess, sys, time; from raysim.actors.own_ray import OwnRay; own = OwnRay(); "
        "child = subprocess.Popen(['sleep', '60'], start_new_session=True); own.started(); "
        "other = subprocess.Popen(['sleep', '60'], start_new_session=True); "
        "print(child.pid, other.pid, flush=True); time.sleep(60)"
    )
    launcher = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert launcher.stdout is not None
    child, other = map(int, launcher.stdout.readline().split())
    try:
        assert state(child) not in ("", "Z")
        launcher.kill()
        launcher.wait()
        assert within(120, lambda: state(child) in ("", "Z"))
        assert state(other) not in ("", "Z")
    finally:
        os.kill(other, signal.SIGKILL)


def test_objects_that_were_spilled_go_with_a_killed_launcher(tmp_path: Path) -> None:
    session = tmp_path / "session_1"
    for name in ("ray_spilled_objects_7", "logs"):
        (session / name).mkdir(parents=True)
        (session / name / "file").write_bytes(b"1")
    program = (
        "import subprocess, time; from raysim.actors.own_ray import OwnRay; own = OwnRay(); "
        f"subprocess.Popen(['raylet', '-c', 'sleep 60; :', '--session_dir={session}'], executable='/bin/sh'); "
        "time.sleep(0.2); own.started(); print(own.dead(), flush=True); time.sleep(60)"
    )
    launcher = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert launcher.stdout is not None
    assert launcher.stdout.readline() == "\n"
    launcher.kill()
    launcher.wait()
    assert within(120, lambda: not (session / "ray_spilled_objects_7").exists())
    assert (session / "logs" / "file").exists()


def test_what_shows_its_mark_late_is_ended_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process in the middle of its start, which the first look does not find."""
    child = subprocess.Popen(["sleep", "60"])
    looks = iter([[], [child.pid]])
    monkeypatch.setattr(own_ray, "marked", lambda mark: next(looks, []))
    own_ray._end_marked("1.1")
    assert child.wait(60) == -signal.SIGKILL


def test_its_end_ends_all_of_it(tmp_path: Path) -> None:
    """Also what has no mark any more, as Ray's agents and actors, but a file of the session; not what is older."""
    session = tmp_path / f"session_2026-11-22_13-41-37_000001_{os.getpid()}"
    session.mkdir()
    with (session / "old.out").open("w") as file:
        old = subprocess.Popen(["sleep", "60"], stdout=file)
    time.sleep(0.05)  # the clock of processes ticks a hundred times a second
    own = OwnRay()
    child = subprocess.Popen(["sleep", "60"])
    own.started()
    assert MARK not in os.environ
    with (session / "agent.out").open("w") as file:
        agent = subprocess.Popen(["sleep", "60"], stdout=file)
    assert sorted(marked(own.mark)) == sorted([child.pid, agent.pid])
    own.end()
    assert child.wait(60) == agent.wait(60) == -signal.SIGKILL and marked(own.mark) == []
    assert old.poll() is None
    old.kill()
    old.wait()
