"""Visits of clients that train together: the same updates as alone, failures where they belong, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raysim import seeds
from raysim.config import RunConfig, build
from raysim.errors import ConfigError, RaysimError
from raysim.failure import Failure
from raysim.method import Message, Update
from raysim.methods.fedavg import FedAvg
from raysim.packing import Packed, PackedMessage
from raysim.results import comparable
from raysim.simulation import run
from raysim.together import LocalTraining, Steps, together
from raysim.training import Visit
from raysim.visits import TrainBlock, TrainedBlock
from raysim.worker import Worker

CLIENTS = 6


@pytest.fixture
def make_config(tmp_path: Path) -> Callable[..., RunConfig]:
    def make(name: str = "run", **options: Any) -> RunConfig:
        base: dict[str, Any] = {
            "method.name": "fedavg",
            "workload.clients": CLIENTS,
            "model.name": "mlp",
            "schedule.rounds": 2,
            "schedule.local_epochs": 1,
            "engine.backend": "inline",
            "output": str(tmp_path / name),
        }
        if "workload__name" not in options:
            base["workload.limit"] = 300
        return build([base | {key.replace("__", "."): value for key, value in options.items()}])

    return make


def block(config: RunConfig, clients: tuple[int, ...] = tuple(range(CLIENTS))) -> TrainedBlock:
    """One block of visits from the initial model."""
    worker = Worker(config, config.workload.load(lambda purpose: seeds.numpy_generator(config.seed, purpose)))
    visit = Visit(config.seed, 1, 0, 1, config.training.learning_rate, config.training)
    packed = Packed(tuple(PackedMessage(0) for _ in clients), tuple(None for _ in clients), ())
    samples = tuple(worker.federation.samples(client) for client in clients)
    task = TrainBlock(0, visit, clients, packed, samples, keeps=False, summed=True, sum_stays=False, each=True)
    result, states = task.run(worker, (worker.model(0).take_shared(),))
    assert states == []
    return result


METHODS: dict[str, dict[str, Any]] = {
    "fedavg": {},
    "fedprox": {"method__name": "fedprox", "method__mu": 3.0},
    "fedrad": {"method__name": "fedrad", "method__system_gradient": "exact"},
    "fedrad-plain": {"method__name": "fedrad", "method__aggregation": "plain"},
}


@pytest.mark.parametrize("name", METHODS)
def test_every_method_returns_the_updates_that_it_returns_one_by_one(
    make_config: Callable[..., RunConfig], name: str
) -> None:
    # A group of four and one of two, of clients of unequal size.
    options = METHODS[name] | {"workload__partition": "quantity"}
    alone = block(make_config(**options))
    found = block(make_config(**options, engine__vectorise=4))
    for expected, update in zip(alone.updates, found.updates, strict=True):
        assert isinstance(expected, Update) and isinstance(update, Update)
        assert np.abs(expected.delta).max() > 1e-3
        np.testing.assert_allclose(update.delta, expected.delta, rtol=0, atol=1e-5)
        assert update.metrics == pytest.approx(expected.metrics, rel=1e-3, abs=1e-5)
        assert sorted(update.extra) == sorted(expected.extra)
        for key, value in expected.extra.items():
            np.testing.assert_allclose(update.extra[key], value, rtol=0, atol=1e-5)
    assert [positions for _, positions in found.sums] == [positions for _, positions in alone.sums] == [4, 2]
    for (one, _), (other, _) in zip(found.sums, alone.sums, strict=True):
        assert one is not None and other is not None
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-3)


def test_results_do_not_depend_on_how_many_groups_a_call_holds(make_config: Callable[..., RunConfig]) -> None:
    options = {"engine__vectorise": 2, "method__name": "fedprox"}
    first = run(make_config("first", **options))
    for size in (1, 4, 8):
        again = run(make_config(f"again-{size}", **options, engine__block_size=size))
        assert comparable(again.rounds).to_csv() == comparable(first.rounds).to_csv()
        assert comparable(again.clients).to_csv() == comparable(first.clients).to_csv()


@dataclass(frozen=True)
class Awkward(FedAvg):
    """FedAvg whose client 1 starts from NaN, and whose clients 2 and 3 raise before and after the local training."""

    @together
    def train(self, model: Any, data: Any, message: Message, kept: Any, visit: Visit) -> Steps[None]:
        model.load_shared(message.parameters)
        if visit.client == 1:
            model.buffer[0] = float("nan")
        if visit.client == 2:
            raise ValueError("before")
        trained = yield LocalTraining(data.train)
        if visit.client == 3:
            raise ValueError("after")
        return Update(model.take_shared() - message.parameters, trained.metrics()), None


def test_what_fails_is_the_client_and_not_its_group(make_config: Callable[..., RunConfig]) -> None:
    config = make_config(engine__vectorise=8)
    expected = block(config)
    found = block(replace(config, method=Awkward()))
    for client in (0, 4, 5):
        update, other = found.updates[client], expected.updates[client]
        assert isinstance(update, Update) and isinstance(other, Update)
        np.testing.assert_allclose(update.delta, other.delta, rtol=0, atol=1e-5)
    failures = [update for update in found.updates if isinstance(update, Failure)]
    assert [(failure.client, failure.stage) for failure in failures] == [(1, "update"), (2, "train"), (3, "train")]
    assert "NaN" in failures[0].reason
    assert failures[1].reason == "ValueError: before" and "raise ValueError" in failures[1].traceback
    assert failures[2].reason == "ValueError: after"


def test_a_model_that_cannot_be_batched_fails_every_client_of_the_group(
    make_config: Callable[..., RunConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    def forward(self: Any, inputs: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(inputs)) * (1 if float(inputs.sum()) > 0 else 2)

    monkeypatch.setattr("workloads.models.classifier.Classifier.forward", forward)
    found = block(make_config(engine__vectorise=4), clients=(2, 3))
    assert [(u.client, u.stage) for u in found.updates if isinstance(u, Failure)] == [
        (2, "train together"),
        (3, "train together"),
    ]


def test_a_method_may_train_in_phases(make_config: Callable[..., RunConfig]) -> None:
    config = replace(make_config(engine__vectorise=4), method=TwoPhases())
    alone = block(replace(config, engine=replace(config.engine, vectorise=0)))
    for expected, update in zip(alone.updates, block(config).updates, strict=True):
        assert isinstance(expected, Update) and isinstance(update, Update)
        np.testing.assert_allclose(update.delta, expected.delta, rtol=0, atol=1e-5)
        assert update.metrics["first"] == pytest.approx(expected.metrics["first"], rel=1e-4)


@dataclass(frozen=True)
class TwoPhases(FedAvg):
    """Trains twice with a change between; odd clients only once."""

    @together
    def train(self, model: Any, data: Any, message: Message, kept: Any, visit: Visit) -> Steps[None]:
        model.load_shared(message.parameters)
        trained = first = yield LocalTraining(data.train)
        if visit.client % 2 == 0:
            model.parameters.mul_(0.5)
            trained = yield LocalTraining(data.train)
        return Update(model.take_shared() - message.parameters, trained.metrics() | {"first": first.loss}), None


@dataclass(frozen=True)
class NotTogether(FedAvg):
    def train(self, model: Any, data: Any, message: Message, kept: Any, visit: Visit) -> Any:
        return Update(model.take_shared() - message.parameters), None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method__name": "fedpac"}, r"method fedpac, .* choose one of: .*fedavg, .*fedprox, fedrad"),
        ({"engine__vectorise": 6}, "engine.vectorise: 6 is no power of two.* nearest: 4 and 8"),
        ({"training__precision": "bf16"}, "engine.vectorise: 4 with training.precision bf16"),
        ({"engine__vectorise": -1}, "engine.vectorise: -1"),
    ],
)
def test_options_that_do_not_go_together(
    make_config: Callable[..., RunConfig], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        make_config(**{"engine__vectorise": 4, **options})


def test_a_method_of_ones_own_that_calls_its_training(make_config: Callable[..., RunConfig]) -> None:
    with pytest.raises(ConfigError, match="NotTogether, whose clients can only be trained one after another"):
        replace(make_config(engine__vectorise=4), method=NotTogether())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model__name": "alexnet", "workload__name": "synthetic"}, "drops values at random.* Set model.dropout to 0"),
        ({"workload__name": "toy-graphs", "model__name": "gin"}, "the samples of .* are graphs"),
    ],
)
def test_models_and_data_that_cannot_be_trained_together(
    make_config: Callable[..., RunConfig], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(RaysimError, match=message):
        run(make_config(engine__vectorise=4, **options))
