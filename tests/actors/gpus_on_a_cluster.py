"""Run as a process by test_gpus.py: client actors on a cluster of three nodes whose GPUs are only counted.

Prints where each actor was put, and what was said to requests that cannot be met, as one line of JSON.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from functools import partial
from types import SimpleNamespace
from typing import Any

import ray
from ray import cloudpickle
from ray.cluster_utils import Cluster

from actors.client import Client, Starter
from actors.early_actors import EarlyActors
from actors.start_retry import patiently
from raysim.config.run_config import RunConfig, build
from raysim.engine.backend import Job
from raysim.errors import PlacementError
from tests.actors.light import Light


class Counted(Light):
    """A client actor as Ray places it, without torch, which would find no GPU here."""

    def place(self) -> tuple[str, list[Any], str]:
        node = ray.get_runtime_context().get_node_id()
        return node, ray.get_gpu_ids(), os.environ["CUDA_VISIBLE_DEVICES"]


def config(**engine: Any) -> RunConfig:
    given = {f"engine.{name}": value for name, value in engine.items()}
    return build([{"model.name": "logistic", "workload.clients": 100} | given])


def refusal(**engine: Any) -> str:
    try:
        EarlyActors(config(**engine))
    except PlacementError as error:
        return str(error)
    return ""


def early_actors_of(cls: type[Any]) -> None:
    """Client actors are from now on of this class."""
    Starter.actor = ray.remote(cls)


def without_torchs_consent() -> str:
    """What a real client actor says on a GPU that is only counted."""
    early_actors_of(Client)
    pool = EarlyActors(config(gpus_per_client=0.5, actors=1)).pool(SimpleNamespace(clients=1), 1)
    try:
        list(pool.run([Job(None, ())], print))  # type: ignore[arg-type]
    except PlacementError as error:
        return str(error)
    finally:
        pool.close()
    return ""


def main() -> None:
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    early_actors_of(Counted)
    head = {"num_cpus": 1, "include_dashboard": False}
    cluster = patiently(lambda: Cluster(initialize_head=True, head_node_args=head))
    nodes = [patiently(partial(cluster.add_node, num_cpus=1, num_gpus=gpus)) for gpus in (2, 1)]
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
    try:
        half = {"gpus_per_client": 0.5, "cpus_per_client": 0.0}
        pool = EarlyActors(config(**half)).pool(SimpleNamespace(clients=100), 100)
        places = ray.get([slot.actor.place.remote() for slot in pool._slots])
        print(
            json.dumps(
                {
                    "plan": pool.plan,
                    "nodes": [node.node_id for node in nodes],
                    "places": places,
                    "too many": refusal(**half, actors=7),
                    "too large": refusal(gpus_per_client=3.0),
                    "cores": refusal(gpus_per_client=0.5, actors=3),
                }
            )
        )
        pool.close()
        print(json.dumps(without_torchs_consent()), flush=True)
    finally:
        ray.shutdown()
        cluster.shutdown()


if __name__ == "__main__":
    main()
