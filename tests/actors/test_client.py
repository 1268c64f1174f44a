"""What an actor has ready before its first client task."""

from __future__ import annotations

from typing import Any

import pytest
import ray

from actors.client import ClientActor
from raysim.config.run_config import build
from raysim.driver import load_federation
from workloads.parallel_map import Sequential


@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize(("model", "built"), [("logistic", 1), ("alexnet", 0)])
def test_the_model_is_built_beside_the_drivers(model: str, built: int) -> None:
    """And one that cannot be built (AlexNet for images of 8x8) is the driver's to tell."""
    config = build([{"method.name": "fedavg", "workload.name": "digits", "model.name": model}])
    federation = ray.put(load_federation(config, Sequential()))
    actor: Any = ClientActor.options(num_cpus=1).remote(1, 0)
    assert ray.get(actor.prepare.remote(config, federation)) == ray.get_runtime_context().get_node_id()
    assert ray.get(actor.__ray_call__.remote(lambda client: len(client._worker._models))) == built
    ray.kill(actor)
