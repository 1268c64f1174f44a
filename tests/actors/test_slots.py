"""Client actors that do not come up, and what a run says that waits for nodes: with a made-up clock."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import ray
from ray.exceptions import OutOfMemoryError

from raysim.actors import slots as module
from raysim.actors.client import Starter
from raysim.actors.slots import FACTOR, FIRST, START, Patience, Slots
from raysim.errors import PlacementError
from tests.small_runs import with_engine


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


class Calls:
    """A method of an actor that gives a reference of its own for every call."""

    def __init__(self, name: str) -> None:
        self._name = name

    def remote(self, *_: Any) -> str:
        return self._name


class NeverUp(Starter):
    """Starts actors that are there and whose ``prepare`` does not come back."""

    started = 0

    def start(self, place: int, life: int = 1) -> Any:
        self.started += 1
        return SimpleNamespace(__ray_ready__=Calls(f"here {life}"), prepare=Calls(f"coming {life}"))


@pytest.fixture
def never_up(monkeypatch: pytest.MonkeyPatch) -> tuple[Slots, SimpleNamespace]:
    """One slot, with three actors to lose; and Ray: which references have come, and what one of them raises."""
    here = SimpleNamespace(come=set(), raises=None, time=100.0)

    def get(reference: str) -> str:
        raise here.raises

    def wait(references: list[str], timeout: float) -> tuple[list[str], list[str]]:
        return [reference for reference in references if reference in here.come], []

    for name, function in {"get": get, "wait": wait, "put": lambda _: "data", "kill": lambda _: None}.items():
        monkeypatch.setattr(ray, name, function)
    monkeypatch.setattr(module, "now", lambda: here.time)
    config = with_engine(actor_attempts=3)
    return Slots(config, SimpleNamespace(name="mine"), NeverUp(config.engine), 1), here


def test_an_actor_that_freezes_in_its_start_is_replaced(never_up: tuple[Slots, SimpleNamespace]) -> None:
    slots, here = never_up
    notes: list[str] = []
    here.time += 1000.0
    slots.look(30.0, notes.append)
    assert notes == [] and [*slots.coming] == ["coming 1"]  # it may wait for a node
    for life in (1, 2, 3):
        here.come.add(f"here {life}")
        slots.look(30.0, notes.append)
        here.time += 30.0
        slots.look(30.0, notes.append)
        assert [*slots.coming] == [f"coming {life}"]
        here.time += 1.0
        if life < 3:
            slots.look(30.0, notes.append)
    assert notes == ["client-actor-00 did not come up within 30 s; another one is started"] * 2
    here.come.add("coming 3")  # it came up, while the driver was busy with something else
    slots.look(30.0, notes.append)
    here.come.remove("coming 3")
    with pytest.raises(
        PlacementError, match=r"3 in a row did not come up within 30 s\. .* raise --engine\.task_deadline"
    ):
        slots.look(30.0, notes.append)


def test_an_actor_that_the_memory_monitor_killed_in_its_start_is_replaced(
    never_up: tuple[Slots, SimpleNamespace],
) -> None:
    slots, here = never_up
    notes: list[str] = []
    here.raises = OutOfMemoryError("the node runs low on memory\nTop 10 memory users: ...")
    for life in (1, 2):
        slots.settle(f"coming {life}", notes.append)
    assert notes == ["client-actor-00 died before it was up; another one is started"] * 2
    with pytest.raises(
        PlacementError, match=r"3 in a row died .* want of memory \(the node runs low on memory\): lower"
    ):
        slots.settle("coming 3", notes.append)
