from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from torch import nn

from raysim.config.run_config import RunConfig
from raysim.flat_model import FlatModel
from raysim.methods.fedbn import FedBN
from raysim.running.simulation import run
from tests.raysim.methods.test_graph_baselines import GRAPHS


def flat(*layers: nn.Module) -> FlatModel:
    module = nn.Sequential(*layers)
    return FlatModel(module, FedBN().shared_names(module))


def test_every_batch_norm_stays_with_its_client() -> None:
    model = flat(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(2, 3), nn.BatchNorm1d(3))
    kept = {entry.name for entry in model.entries if not entry.shared}
    names = ("weight", "bias", "running_mean", "running_var")
    assert kept == {f"{layer}.{name}" for layer in (1, 4) for name in names}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert FedBN().init_server(model).size == 18 + 2 + 6 + 3
    assert FedBN().init_client(model).size == 4 * (2 + 3)


def test_a_model_without_batch_norm_is_warned_about() -> None:
    with pytest.warns(UserWarning, match="no BatchNorm layer, so fedbn equals fedavg"):
        FedBN().init_server(flat(nn.Linear(2, 3), nn.GroupNorm(1, 3)))


@pytest.mark.filterwarnings("ignore:the model has no BatchNorm")
def test_without_batch_norm_it_is_fedavg(make_config: Callable[..., RunConfig]) -> None:
    short = {"schedule__rounds": 2}
    own = run(make_config("own", **short)).rounds
    found = run(make_config("fedbn", method__name="fedbn", **short)).rounds
    # FedAvg is judged on the union of tests, FedBN on the mean over clients; this column is the same for both.
    assert found["client_accuracy_mean"].tolist() == own["client_accuracy_mean"].tolist()
    assert found["train_loss"].tolist() == own["train_loss"].tolist()


@pytest.mark.parametrize(
    "options",
    [
        {"method__name": "fedbn", "model__name": "mobilenet", "model__width": 0.1},
        {"method__name": "fedstar", "model__name": "gin-star", **GRAPHS},
    ],
)
def test_a_client_task_goes_on_from_the_clients_own_part(
    make_local_training: Callable[..., Any], options: dict[str, Any]
) -> None:
    local = make_local_training(**options)
    method, message = local.method, local.first_message()
    first = method.init_client(local.worker.model(0))
    _, second = local.train(0, message, first)
    _, other = local.train(1, message, method.init_client(local.worker.model(1)))
    assert not np.array_equal(first, second) and not np.array_equal(second, other)
    again, third = local.train(0, message, second)
    assert np.array_equal(third, local.train(0, message, second)[1])
    assert not np.array_equal(again.delta, local.train(0, message, first)[0].delta)
    model = local.worker.model(0)
    method.deploy(model, message, third)
    assert np.array_equal(model.take_private(), third)
    assert np.array_equal(model.take_shared(), message.parameters)
