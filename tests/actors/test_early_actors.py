"""Client actors that start before the data is there: how many, and what becomes of those that are too many."""

from __future__ import annotations

from typing import Any

import pytest
import ray
from ray.exceptions import RayActorError

from raysim.actors import early_actors
from raysim.actors.capacity import UNKNOWN, useful_actors
from raysim.actors.early_actors import EarlyActors
from raysim.actors.parallel_map import RayParallel
from raysim.config.run_config import RunConfig, build
from raysim.engine.load_federation import load_federation
from raysim.workloads.parallel_map import sequential
from tests.actors.light import LightStarter, processes


def config(**options: Any) -> RunConfig:
    return build([{name.replace("__", "."): value for name, value in options.items()}])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"workload__clients": 7}, 7),
        ({"workload__clients": 7, "schedule__sampling_rate": 0.3}, 2),
        ({"workload__clients": 7, "schedule__sampling_rate": 0.01}, 1),
        ({"workload__clients": 7, "method__name": "centralized"}, 1),  # pooled into one client
        ({"workload__name": "covid-xray"}, UNKNOWN),  # the clients are the sites that the file names
        ({"method__name": "fedssp", "workload__name": "tudataset", "workload__setting": "SM"}, UNKNOWN),
    ],
)
def test_how_many_are_useful_as_far_as_the_config_tells(options: dict[str, Any], expected: int) -> None:
    assert useful_actors(config(**options)) == expected


def dead(actor: Any) -> bool:
    try:
        ray.get(actor.process.remote(), timeout=300)
    except RayActorError:
        return True
    return False


@pytest.fixture
def light(ray_session: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_actors, "Starter", LightStarter)


@pytest.mark.usefixtures("light")
def test_the_pool_takes_what_it_needs_and_the_rest_ends() -> None:
    # Three cores, three clients in a round: three actors. The data then has two.
    three = config(model__name="logistic", workload__clients=3)
    two = config(model__name="logistic", workload__clients=2)
    early = EarlyActors(three.engine, useful=3)
    started = list(early._actors)
    pool = early.pool(two, load_federation(two, sequential), useful=2)
    try:
        assert len(started) == 3 and [slot.actor for slot in pool._slots] == started[:2]
        assert dead(started[2]) and len(set(processes(pool))) == 2
    finally:
        pool.close()


@pytest.mark.usefixtures("light")
def test_they_make_room_for_tasks_and_are_started_again() -> None:
    """They hold every core; tasks that the data needs would wait for ever."""
    three = config(model__name="logistic", workload__clients=3)
    early = EarlyActors(three.engine, useful=3)
    before = list(early._actors)
    assert RayParallel(make_room=early.dismiss)(lambda number: number + 1, [1, 2], "numbers") == [2, 3]
    pool = early.pool(three, load_federation(three, sequential), useful=3)
    try:
        assert pool.slots == 3 and all(dead(actor) for actor in before)
    finally:
        pool.close()
