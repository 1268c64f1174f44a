"""status.json: what goes on just now, by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from raysim.engine.observer import ChunkReturned
from raysim.errors import ResultsError
from raysim.exchange.pool_protocol import Seat
from raysim.monitor.status_file import FAULTS, Recorder, load, read, settle


def returned(
    *clients: int, failed: tuple[int, ...] = (), sends: int = 1, process: int = 11, slot: int = 0
) -> ChunkReturned:
    return ChunkReturned(clients, failed, 0.5, Seat(slot, "10.0.0.7", process, "cpu"), sends)


def test_a_round_by_hand(tmp_path: Path) -> None:
    with Recorder(tmp_path, (2,) * 9) as recorder:
        recorder.begins()
        recorder.placed("2 client actors")
        recorder.round_started(3, 2, 5)
        recorder.tasks_started((1, 4, 6, 7, 9))
        recorder.chunk_returned(returned(1, 4))
        recorder.fault("client-actor-01 died")
        recorder.chunk_returned(returned(6, 7, failed=(7,), sends=3, process=12, slot=1))
    found = read(tmp_path)
    assert (found["state"], found["round"], found["rounds"], found["plan"]) == ("running", 3, 9, "2 client actors")
    assert found["current"]["done"] == 4 and found["current"]["participants"] == 5
    assert found["out"] == [9] and found["out_count"] == 1
    assert found["counts"] == {"done": 3, "failed": 1, "requeued": 4, "faults": 1}
    assert found["lost"] == {"7": 3, "6": 2}  # 7 failed once and was sent twice more
    assert [(fault["round"], fault["text"]) for fault in found["faults"]] == [(3, "client-actor-01 died")]
    assert [(s["slot"], s["tasks"], s["busy"], s["lives"], s["process"]) for s in found["slots"]] == [
        (0, 2, 0.5, 1, 11),
        (1, 2, 0.5, 1, 12),
    ]


def test_an_actor_in_the_place_of_another_is_a_new_life(tmp_path: Path) -> None:
    with Recorder(tmp_path) as recorder:
        for process in (11, 11, 12, 13):
            recorder.chunk_returned(returned(0, process=process))
    assert [slot["lives"] for slot in read(tmp_path)["slots"]] == [3]


@pytest.mark.parametrize("state", ["finished", "stopped"])
def test_how_it_ended(tmp_path: Path, state: str) -> None:
    with Recorder(tmp_path) as recorder:
        recorder.round_started(1, 1, 2)
        recorder.ends(state)  # type: ignore[arg-type]
    assert read(tmp_path)["state"] == state and read(tmp_path)["current"] is None


def test_an_exception_is_a_failure_and_says_why(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such thing"), Recorder(tmp_path):
        raise ValueError("no such thing")
    assert (read(tmp_path)["state"], read(tmp_path)["message"]) == ("failed", "no such thing")
    with pytest.raises(KeyboardInterrupt), Recorder(tmp_path):
        raise KeyboardInterrupt
    assert (read(tmp_path)["state"], read(tmp_path)["message"]) == ("stopped", "")


def test_a_later_sitting_carries_on_and_tells_of_a_death(tmp_path: Path) -> None:
    with Recorder(tmp_path) as recorder:
        recorder.begins()
        recorder.round_started(4, 1, 1)
        recorder.chunk_returned(returned(2, sends=2))
        recorder.fault("first")  # and then, without a word, no more
    with Recorder(tmp_path) as recorder:
        recorder.ends("finished")
    found = read(tmp_path)
    assert [(fault["round"], fault["text"].partition(";")[0]) for fault in found["faults"]] == [
        (4, "first"),
        (4, "the process that drove this run died"),
    ]
    assert found["counts"]["faults"] == 2 and found["counts"]["done"] == 1 and found["lost"] == {"2": 1}
    with Recorder(tmp_path):
        pass
    assert len(read(tmp_path)["faults"]) == 2  # a run that ended did not die


def test_it_stays_small(tmp_path: Path) -> None:
    with Recorder(tmp_path) as recorder:
        recorder.round_started(1, 1, 100_000)
        recorder.tasks_started(range(100_000))
        recorder.chunk_returned(returned(*range(50_000), failed=tuple(range(50_000))))
        for number in range(300):
            recorder.fault(f"fault {number}")
    found = read(tmp_path)
    assert found["out_count"] == 50_000 and found["counts"]["faults"] == 300
    assert len(found["faults"]) == FAULTS and found["faults"][-1]["text"] == "fault 299"
    assert (tmp_path / "status.json").stat().st_size < 20_000


@pytest.mark.parametrize(
    ("section", "key"),
    [
        *((("faults", 0), key) for key in ("time", "round", "text")),
        *((("slots", 0), key) for key in ("slot", "node", "device", "process", "tasks", "busy", "lives", "last")),
        *((("preparing",), key) for key in ("label", "done", "total")),
        *((("current",), key) for key in ("local_epochs", "participants", "done", "started")),
        *(((), key) for key in ("started", "updated", "round")),
    ],
)
def test_a_file_without_a_key_that_the_page_shows_is_no_status(
    tmp_path: Path, section: tuple[str | int, ...], key: str
) -> None:
    """It was a KeyError where the page was drawn. Such a file is as unreadable as one that is cut off."""
    with Recorder(tmp_path) as recorder:
        recorder.round_started(3, 2, 5)
        recorder.chunk_returned(returned(1, 4))
        recorder.fault("client-actor-01 died")
        recorder.preparing("loading", 1, 3)
    whole = load(tmp_path)
    inner = whole
    for name in section:
        inner = inner[name]  # type: ignore[index]
    value = inner.pop(key)
    (tmp_path / "status.json").write_text(json.dumps(whole))
    with pytest.raises(ResultsError, match=rf"status\.json: {section[0] if section else 'it'} holds no {key}$"):
        load(tmp_path)
    assert read(tmp_path) == {}
    inner[key] = [] if isinstance(value, str) else "text"
    (tmp_path / "status.json").write_text(json.dumps(whole))
    with pytest.raises(ResultsError, match=rf"status\.json: {key} is .* is expected"):
        load(tmp_path)


def test_a_folder_that_cannot_be_written_disturbs_nothing(tmp_path: Path) -> None:
    with Recorder(tmp_path / "gone") as recorder:
        recorder.fault("something")
    assert read(tmp_path / "gone") == {}


def test_an_outcome_is_written_where_the_driver_could_not(tmp_path: Path) -> None:
    settle(tmp_path, "failed", "no cluster")
    found = read(tmp_path)
    assert (found["state"], found["message"]) == ("failed", "no cluster")
    with Recorder(tmp_path, (1,)) as recorder:
        recorder.fault("lost")
    settle(tmp_path, "stopped", "")
    found = read(tmp_path)
    assert (found["state"], found["current"], found["counts"]["faults"]) == ("stopped", None, 1)
