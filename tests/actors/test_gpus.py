"""Placement by GPUs, on a cluster of three nodes: Ray only counts GPUs, so their number is all that is needed."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import ray
import torch
from ray import cloudpickle

from raysim.actors.capacity import useful_actors
from raysim.actors.client import Starter
from raysim.actors.early_actors import EarlyActors
from raysim.errors import PlacementError
from raysim.exchange.pool_protocol import Job
from tests.actors.clusters import add_node, cluster_here
from tests.actors.light import Light
from tests.small_runs import with_engine

# Actors cannot import this file.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
pytestmark = pytest.mark.slow
HALF = {"gpus_per_client": 0.5, "cpus_per_client": 0.0}


class Counted(Light):
    """A client actor as Ray places it, without torch, which would find no GPU here."""

    def place(self) -> tuple[str, list[Any], str]:
        node = ray.get_runtime_context().get_node_id()
        return node, ray.get_gpu_ids(), os.environ["CUDA_VISIBLE_DEVICES"]


@pytest.fixture(scope="module")
def nodes() -> Iterator[list[str]]:
    """Names of the nodes that have GPUs 0 and 1, and GPU 0; the head has none."""
    with cluster_here(num_cpus=1) as cluster:
        added = [add_node(cluster, num_cpus=1, num_gpus=gpus) for gpus in (2, 1)]
        cluster.wait_for_nodes()
        yield [node.node_id for node in added]


def pool_of(clients: int, **engine: Any) -> Any:
    federation: Any = SimpleNamespace(clients=clients)
    config = with_engine(**engine)
    return EarlyActors(config.engine, useful_actors(config)).pool(config, federation, clients)


def test_two_actors_to_a_gpu_each_with_its_own_in_sight(nodes: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Starter, "actor", ray.remote(Counted))
    pool = pool_of(100, **HALF)
    found = ray.get([slot.actor.place.remote() for slot in pool._slots])
    pool.close()
    large, small = nodes
    assert pool.plan == "6 client actors, 2 to a GPU, serve 100 clients"
    assert Counter((node, *gpus) for node, gpus, _ in found) == {(large, 0): 2, (large, 1): 2, (small, 0): 2}
    assert all(visible == str(gpus[0]) for _, gpus, visible in found)


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ({**HALF, "actors": 7}, "--engine.actors 7 cannot be met, only 6 fit: the cluster has 3 GPU on 3 nodes"),
        ({"gpus_per_client": 3.0}, "asks for 3 GPU, but the cluster's largest node has 2"),
        ({"gpus_per_client": 0.5, "actors": 3}, "--engine.actors 3 cannot be met, only 2 fit"),
    ],
)
@pytest.mark.usefixtures("nodes")
def test_what_can_never_be_given_is_said_at_once(engine: dict[str, Any], message: str) -> None:
    """An actor that waits for a GPU would wait for ever."""
    with pytest.raises(PlacementError, match=message):
        pool_of(100, **engine)


@pytest.mark.skipif(torch.cuda.is_available(), reason="torch finds a GPU here")
@pytest.mark.usefixtures("nodes")
def test_what_was_asked_to_train_on_a_gpu_never_does_on_the_cpu() -> None:
    pool, task = pool_of(1, gpus_per_client=0.5, actors=1), None
    said = r"^a client actor cannot start: --engine.gpus_per_client 0.5: torch .*finds no GPU on"
    with pytest.raises(PlacementError, match=said) as refused:
        list(pool.run([Job(task, ())], print))  # type: ignore[arg-type]
    pool.close()
    assert "Traceback" not in str(refused.value)
