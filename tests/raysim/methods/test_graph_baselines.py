"""The graph baselines on small generated graphs with a structure of their own for each client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from raysim.config.command_line import given_config
from raysim.config.run_config import default_config
from raysim.workloads.models.graph_specs import Gin, GraphSage, Spectral, StructuralGin

GRAPHS: dict[str, Any] = {"workload__name": "toy-graphs", "workload__clients": 3, "model__hidden": 8}


@pytest.mark.parametrize(
    ("method", "model"), [("gcfl", Gin()), ("fgssl", Gin()), ("fedsage", GraphSage()), ("fedstar", StructuralGin())]
)
def test_their_models_unless_another_is_named(method: str, model: object) -> None:
    """Over what the workload asks for, under what the user says."""
    assert default_config(method).model == default_config(method, "toy-graphs").model == model
    chosen = given_config({"method": method, "workload": "toy-graphs", "model": {"name": "spectral", "hidden": 8}})
    assert chosen.model == Spectral(hidden=8)


def test_fedsage_is_fedavg_on_graphsage(make_local_training: Callable[..., Any]) -> None:
    options = GRAPHS | {"model__name": "graphsage"}
    deltas = [make_local_training(method__name=method, **options).delta() for method in ("fedsage", "fedavg")]
    assert np.array_equal(*deltas) and deltas[0].any()


def test_fedstar_sends_only_the_channel(make_local_training: Callable[..., Any]) -> None:
    local = make_local_training(method__name="fedstar", model__name="gin-star", **GRAPHS)
    model = local.worker.model(0)
    sizes = {name: parameter.numel() for name, parameter in model.module.named_parameters()}
    channel = sum(size for name, size in sizes.items() if name.startswith("body.structure."))
    first = local.method.init_client(model)
    assert local.first_message().parameters.size == channel and first.size == sum(sizes.values()) - channel
    update, _ = local.train(0, local.first_message(), first)
    assert update.delta.size == channel and update.delta.any() and not update.extra
