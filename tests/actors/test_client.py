"""What an actor has ready before its first client task."""

from __future__ import annotations

import pytest
import ray

from raysim.actors.client import Client
from raysim.config.run_config import build
from raysim.engine.load_federation import load_federation
from raysim.exchange.profile_marks import clock
from raysim.workloads.parallel_map import Sequential


@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize(("model", "built"), [("logistic", 1), ("alexnet", 0)])
def test_the_model_is_built_beside_the_drivers(model: str, built: int) -> None:
    """And one that cannot be built (AlexNet for images of 8x8) is the driver's to tell."""
    config = build([{"method.name": "fedavg", "workload.name": "digits", "model.name": model}])
    client = Client(1, 0, clock())  # in this process: another would take longer to import torch than all of this
    assert client.prepare(config, load_federation(config, Sequential())) == ray.get_runtime_context().get_node_id()
    assert len(client._worker._models) == built
