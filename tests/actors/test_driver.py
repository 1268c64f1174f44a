"""What the driver has to tell, and how it reaches the process that shows it."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from raysim.actors import driver as driver_module
from raysim.actors.driver import EventLog
from raysim.config.run_config import build
from raysim.engine.observer import COSTLY, ChunkReturned, Named, Several, Silent, heard_by


def test_events_come_in_order_and_once() -> None:
    log = EventLog()
    log.note("a")
    log.round_started(1, 2, 3)
    assert log.since(0, 0.0) == [("note", ("a",)), ("round_started", (1, 2, 3))]
    assert log.since(2, 0.0) == []
    log.note("b")
    assert log.since(2, 0.0) == [("note", ("b",))]
    assert log.since(2, 0.0) == [("note", ("b",))]  # until its receipt is acknowledged by the next position


def test_progress_within_a_round_wakes_nobody_and_only_the_last_is_kept() -> None:
    log = EventLog()
    log.clients_done(1, 9)
    assert log.since(0, 0.0) == [("clients_done", (1, 9))]
    for done in range(2, 9):
        log.clients_done(done, 9)
    # What was handed out stays as it is: its receiver counts positions.
    assert log.since(0, 0.0) == [("clients_done", (1, 9)), ("clients_done", (8, 9))]
    log.clients_done(9, 9)
    log.round_finished({"round": 1})
    assert [name for name, _ in log.since(2, 0.0)] == ["clients_done", "round_finished"]
    waiting = threading.Thread(target=log.since, args=(4, 30.0))
    waiting.start()
    log.clients_done(1, 9)
    time.sleep(0.05)
    assert waiting.is_alive()
    log.note("wakes it")
    waiting.join(5.0)
    assert not waiting.is_alive()


class Listener(Silent):
    def clients_finished(self, rows: Sequence[Mapping[str, Any]]) -> None:
        pass


class OfChunks(Silent):
    def chunk_returned(self, chunk: ChunkReturned) -> None:
        pass


def test_what_is_much_is_kept_only_for_who_listens() -> None:
    """An observer's own ``chunk_returned`` was never called by a run on Ray."""
    assert heard_by(Several(Silent(), Silent())) == set()
    assert heard_by(Several(Silent(), Listener())) == {"clients_finished"}
    assert heard_by(Several(Listener(), Named(OfChunks()))) == {"clients_finished", "chunk_returned"}
    for heard in (set[str](), {"clients_finished"}, {"chunk_returned"}, set(COSTLY)):
        log = EventLog(heard)
        for name in COSTLY:
            log.tell(name, 1)
        log.note("said")
        assert [name for name, _ in log.since(0, 0.0)] == [*(name for name in COSTLY if name in heard), "note"]


@pytest.mark.parametrize("begins", [True, False])
def test_client_actors_that_began_before_the_config_was_read_are_the_runs(
    begins: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And where that failed the run starts them itself, so that its error is told."""
    made: list[EarlyActors] = []

    class EarlyActors:
        def __init__(self, *early: Any) -> None:
            made.append(self)
            self.early = early
            if not begins and len(made) == 1:
                raise RuntimeError("not this time")

        def pool(self, *_: Any) -> EarlyActors:
            return self

        def dismiss(self) -> None:
            pass

    def drive(config: Any, folder: Path, pool: Any, *_: Any) -> Any:
        return pool(None, 1)

    monkeypatch.setattr("raysim.actors.early_actors.EarlyActors", EarlyActors)
    monkeypatch.setattr("raysim.driver.drive.drive", drive)
    monkeypatch.setattr("raysim.actors.metrics.Metrics", lambda _: Silent())
    config = build([{"method.name": "fedavg"}])
    actor: Any = vars(driver_module)["DriverActor"]  # as Ray's decorator leaves it
    driver = actor.__ray_metadata__.modified_class((config.engine, 3, ()), str(tmp_path))
    driver.begin()
    assert driver._drive(config) is made[-1] and len(made) == (1 if begins else 2)
    assert made[-1].early == (config.engine, 3, ())
