"""Frozen parameters stay put with every method, bit for bit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

import raysim
from raysim.config import registry
from raysim.errors import RaysimError
from raysim.results.result import RunResult
from tests.made_subgraphs import NODE_METHODS, kept_rings
from tests.own_data import QUICK, three_clients

OF_OTHER_MODELS = ("fedssp", "fedstar")
"""Methods that ask for a model of raysim's own, which nothing freezes."""
ON_ARRAYS = [name for name in registry.known("method") if name not in (*NODE_METHODS, *OF_OTHER_MODELS)]
ON_NODES: Mapping[str, Mapping[str, Any]] = {
    "adafgl": {"federated_rounds": 1, "width": 8},
    "fedgcn": {},
    "fedgta": {},
    "fedpub": {"proxies": 1},
    "fedsageplus": {"width": 8, "generator_epochs": 2},
    "fedtad": {"nodes": 8, "epochs": 1},
}
"""Options of methods for nodes."""


def own(inputs: Any) -> torch.nn.Module:
    """A model for arrays, whose first layer is frozen."""
    layers = (torch.nn.Linear(inputs.input_shape[0], 6), torch.nn.BatchNorm1d(6), torch.nn.ReLU())
    model = torch.nn.Sequential(OrderedDict(body=torch.nn.Sequential(*layers), head=torch.nn.Linear(6, inputs.classes)))
    return frozen(model, "body.0.")


def gcn(inputs: Any) -> torch.nn.Module:
    """A GCN, whose body is frozen."""
    built: torch.nn.Module = registry.resolve("model", "gcn")(hidden=8).build(inputs)
    return frozen(built, "body.")


def frozen(model: torch.nn.Module, prefix: str) -> torch.nn.Module:
    for name, parameter in model.named_parameters():
        if name.startswith(prefix):
            parameter.requires_grad_(False).copy_(kept(parameter))
    return model


def kept(parameter: torch.Tensor) -> torch.Tensor:
    """The values of a frozen parameter: many, as a sum of shares of one may be that very one by luck."""
    return torch.linspace(0.1, 0.9, parameter.numel()).view(parameter.shape)


def moved(result: RunResult, prefix: str) -> list[str]:
    """Frozen parameters of clients' models that are no longer what they were."""
    clients = range(1 if result.config["method"]["name"] == "centralized" else 3)
    of_all = [(client, *each) for client in clients for each in result.client_model(client).named_parameters()]
    found = [(client, name, value) for client, name, value in of_all if name.startswith(prefix)]
    assert found
    return [f"{name} of client {client}" for client, name, value in found if not torch.equal(value, kept(value))]


@pytest.mark.slow
@pytest.mark.parametrize("method", ON_ARRAYS)
@pytest.mark.filterwarnings("ignore")
def test_of_clients_with_arrays(tmp_path: Path, method: str) -> None:
    data, quick = three_clients(), QUICK | {"rounds": 4}
    result = raysim.run(method, model=own, clients=data, test=data, output=str(tmp_path / "run"), **quick)
    assert not moved(result, "body.0.")


@pytest.mark.slow
@pytest.mark.parametrize("method", ON_NODES)
def test_of_clients_with_nodes(tmp_path: Path, method: str) -> None:
    options = {"name": "nodes", "path": kept_rings()[1], "exchange": "none", "clients": 3}
    given: dict[str, Any] = {f"workload.{name}": value for name, value in options.items()} | QUICK | {"rounds": 4}
    given |= {f"method.{name}": value for name, value in ON_NODES[method].items()} | {"output": str(tmp_path / "run")}
    if method == "fedtad":
        with pytest.raises(RaysimError, match=r"trains the whole model on the server too, and body\..* is frozen"):
            raysim.run(method, model=gcn, **given)
    else:
        assert not moved(raysim.run(method, model=gcn, **given), "body.")


def test_every_method_is_here() -> None:
    assert set(ON_NODES) == set(NODE_METHODS)
