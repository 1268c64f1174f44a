"""The profile on a clock made by hand: parts that add up to the round, the trace's format, nothing when it is off."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Hashable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from raysim.exchange.pool_protocol import Done, Job, Seat
from raysim.exchange.profile_marks import Mark, Marks
from raysim.monitor import profile_table
from raysim.monitor.chrome_trace import Trace
from raysim.monitor.profiler import Profile
from raysim.running.simulation import run
from raysim.storage.run_folder import RunFolder
from tests.fingerprint import fingerprint
from tests.small_runs import LOGISTIC, small_run


class Clock:
    """Shows the time that it was set to."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def one_round(profile: Profile, clock: Clock, number: int = 1) -> None:
    """12 s: train 8 (serialize 1, wait 6, of its own 1), aggregate 2, write 1, and 1 between them.

    Slot 0 works in seconds 1.5 to 4 and 5 to 7.5 of it, slot 1 in 2 to 6.
    """
    begin = clock.time

    def at(second: float) -> None:
        clock.time = begin + second

    def done(slot: int, sent: float, start: float, stop: float, marks: tuple[Mark, ...] = ()) -> None:
        result = SimpleNamespace(marks=marks)
        found = Done(0, result, (), stop - start, begin + start, begin + sent, Seat(slot, "here", 1, "cpu"))
        profile.job(Job(None, (), label=f"clients of slot {slot}"), found)  # type: ignore[arg-type]

    with profile.round(number, slots=2):
        with profile.phase("train"):
            with profile.phase("serialize"):
                at(1.0)
            with profile.phase("wait"):
                at(7.0)
            loaded = (Mark("load", begin + 1.6, 7), Mark("train", begin + 2.0, 7), Mark("sum", begin + 3.5))
            done(0, 1.0, 1.5, 4.0, loaded)
            done(1, 1.25, 2.0, 6.0)  # no marks: one part with the name of the stage
            done(0, 2.0, 5.0, 7.5)  # sent while its slot was still busy: free from 4 on
            at(8.0)
        at(8.5)
        with profile.phase("aggregate"):
            at(10.5)
        with profile.phase("write"):
            at(11.5)
        at(12.0)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run", "method: {name: fedavg}\nworkload: {name: digits}\n", {})


def rows(folder: RunFolder) -> list[dict[Hashable, Any]]:
    import pandas

    return pandas.read_csv(folder.path / "profile.csv").to_dict("records")


def test_every_moment_of_driver_and_slots_is_counted_once(clock: Clock, folder: RunFolder) -> None:
    one_round(Profile(folder, Trace(folder.path / "trace.json"), clock), clock)
    found = {(row["lane"], row["stage"], row["phase"]): row["seconds"] for row in rows(folder)}
    assert {key[1:]: seconds for key, seconds in found.items() if key[0] == "driver"} == pytest.approx(
        {
            ("train", "serialize"): 1.0,
            ("train", "wait"): 6.0,
            ("train", "other"): 1.0,
            ("aggregate", "aggregate"): 2.0,
            ("write", "write"): 1.0,
            ("other", "other"): 1.0,
        }
    )
    # Of the mean slot: half of what the two have together.
    assert {key[1:]: seconds for key, seconds in found.items() if key[0] == "slots"} == pytest.approx(
        {
            ("train", "load"): 0.5 / 2,
            ("train", "train"): (1.5 + 4.0 + 2.5) / 2,
            ("train", "sum"): 0.5 / 2,
            ("train", "transfer"): (0.5 + 0.75 + 1.0) / 2,
            ("train", "wait"): (16 - 9.0 - 2.25) / 2,
            ("aggregate", "wait"): 2.0,
            ("write", "wait"): 1.0,
            ("other", "wait"): 1.0,
        }
    )
    for lane in ("driver", "slots"):
        assert sum(row["share"] for row in rows(folder) if row["lane"] == lane) == pytest.approx(1.0)


def test_a_round_that_fails_is_not_recorded(clock: Clock, folder: RunFolder) -> None:
    profile = Profile(folder, Trace(folder.path / "trace.json"), clock)
    with pytest.raises(ValueError), profile.round(1, 2), profile.phase("train"):
        raise ValueError
    one_round(profile, clock, number=1)
    assert {row["round"] for row in rows(folder)} == {1}
    assert sum(row["seconds"] for row in rows(folder) if row["lane"] == "driver") == pytest.approx(12.0)


def test_the_trace_is_in_the_format_that_viewers_read(clock: Clock, folder: RunFolder) -> None:
    path = folder.path / "trace.json"
    profile = Profile(folder, Trace(path), clock)
    one_round(profile, clock, 1)
    one_round(profile, clock, 2)
    one_round(Profile(folder, Trace(path), clock), clock, 3)  # as after a resume
    events = json.loads(path.read_text())["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert names == {0: "driver", 1: "actor 0", 2: "actor 1"}
    lanes: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
    for event in events:
        assert event["ph"] in ("X", "M") and event["pid"] == 1
        if event["ph"] == "X":
            assert isinstance(event["ts"], int) and event["dur"] >= 0
            lanes[event["tid"]].append((event["ts"], -event["dur"], event["name"]))
    assert [name for _, _, name in sorted(lanes[0])][:3] == ["round 1", "train", "serialize"]
    for lane in lanes.values():
        around: list[int] = []
        for start, length, _ in sorted(lane):  # of one lane, two events lie within each other or apart
            while around and around[-1] <= start:
                around.pop()
            assert not around or start - length <= around[-1]
            around.append(start - length)
    # A slot is at work, waits or is sent something at every moment of the three rounds.
    for tid in (1, 2):
        outer = [
            -length for _, length, name in lanes[tid] if name in ("wait", "transfer") or name.startswith("clients")
        ]
        assert sum(outer) == 36_000_000
    assert [e["args"] for e in events if e["name"] == "load"] == [{"client": 7}] * 3


def test_a_torn_trace_is_mended_and_a_long_one_ends(clock: Clock, folder: RunFolder) -> None:
    path = folder.path / "trace.json"
    one_round(Profile(folder, Trace(path), clock), clock, 1)
    path.write_text(path.read_text()[:-20])  # killed while it was writing
    one_round(Profile(folder, Trace(path), clock), clock, 2)
    events = json.loads(path.read_text())["traceEvents"]
    assert [e["name"] for e in events if e["name"].startswith("round")] == ["round 1", "round 2"]
    limited = Profile(folder, Trace(path, limit=len(events)), clock)
    one_round(limited, clock, 3)
    assert json.loads(path.read_text())["traceEvents"] == events
    assert {row["round"] for row in rows(folder)} == {1, 2, 3}


def test_the_table_leaves_out_the_first_round(clock: Clock, folder: RunFolder) -> None:
    profile = Profile(folder, Trace(folder.path / "trace.json"), clock)
    with profile.round(1, 2):
        clock.time += 1000
    for number in (2, 3):
        one_round(profile, clock, number)
    title, lines = profile_table.read(folder.path / "profile.csv")
    assert title == "where the time of a round went (mean after the first of 3 rounds, 12 s)"
    assert ("driver", "aggregate", "aggregate", "1", "2.0000", "16.7 %") in lines
    folder.go_back(2, {})
    assert {row["round"] for row in rows(folder)} == {1, 2}


def test_marks_that_are_off_note_nothing() -> None:
    off, on = Marks(False), Marks(True)
    for marks in (off, on):
        marks("load", 3)
        marks("sum")
    assert off.found() == ()
    assert [(mark.phase, mark.client) for mark in on.found()] == [("load", 3), ("sum", None)]


def test_a_run_with_a_profile_computes_the_same(tmp_path: Path) -> None:
    off = run(small_run(tmp_path / "off", LOGISTIC))
    on = run(small_run(tmp_path / "on", LOGISTIC, engine__profile=True, pictures=True))
    assert fingerprint(off.folder) == fingerprint(on.folder)
    assert not {"profile.csv", "trace.json"} & {path.name for path in off.folder.iterdir()}
    assert "where the time of a round went" in (on.folder / "report.html").read_text()
    events = json.loads((on.folder / "trace.json").read_text())["traceEvents"]
    phases = {(event["name"], event["cat"]) for event in events if event["ph"] == "X" and event["tid"] == 1}
    assert {("load", "train"), ("train", "train"), ("update", "train"), ("evaluate", "evaluate")} <= phases
    driver = {(event["name"], event["cat"]) for event in events if event["ph"] == "X" and event["tid"] == 0}
    assert {("aggregate", "aggregate"), ("write", "write"), ("checkpoint", "checkpoint")} <= driver
