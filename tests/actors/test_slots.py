"""What a run says that waits for nodes, and when: with made-up places and a made-up clock."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from raysim.actors import slots as module
from raysim.actors.slots import FACTOR, FIRST, START, Patience


def test_it_is_said_soon_and_then_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = {"head": {"CPU": 0.0}, "other": {"CPU": 3.0, "GPU": 1.0}}
    monkeypatch.setattr(module, "alive_nodes", lambda: nodes)
    slots: list[Any] = [SimpleNamespace(up=False), SimpleNamespace(up=False)]
    clock, said = SimpleNamespace(time=0.0), list[tuple[float, str]]()
    watch = Patience(slots, "4 CPU", lambda: clock.time)  # type: ignore[arg-type]

    def pass_time(seconds: int) -> list[tuple[float, str]]:
        before = len(said)
        for _ in range(seconds):
            watch.look(lambda text: said.append((clock.time, text)))
            clock.time += 1.0
        return said[before:]

    # Before any was up it may take long.
    assert not pass_time(int(START))
    ((when, text),) = pass_time(10)
    assert when == START
    assert "on a node with room for 4 CPU (the cluster has 2 nodes with 3 CPU and 1 GPU in all)" in text
    slots[0].up = True
    ((_, text),) = pass_time(100)
    assert text == "goes on with 1 client actor"
    slots[0].up = False
    gone = clock.time
    found = pass_time(1000)
    assert [when - gone for when, _ in found] == [FIRST, FACTOR * FIRST, FACTOR * FACTOR * FIRST]
