"""Whose client tasks are merged, and how many: never those of a method that trains in another way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest
import torch
from torch import nn

import raysim
from raysim.client_side.fedsgd import contradiction, group_size, possible, take_one_step, worth_it
from raysim.config.run_config import build
from raysim.flat_model import FlatModel
from raysim.method import ClientTask, Message, Traits, Update
from raysim.methods.fedavg import FedAvg
from raysim.running.open_run import prepare
from raysim.running.simulation import execute
from raysim.training.local_sgd import local_update, train_epochs
from tests.fingerprint import fingerprint
from tests.raysim.client_side.single_steps import SINGLE_STEPS, SharesHead, counted
from tests.small_runs import MakeConfig, worker_of
from tests.watch import Watch


@pytest.fixture
def base() -> dict[str, object]:
    return SINGLE_STEPS


def test_how_many_are_merged() -> None:
    training = build([{"method.name": "fedavg", "training.batch_size": 50}]).training
    sizes = {10: 1, 31: 1, 32: 2, 64: 4, 200: 8, 10_000: 8}
    assert {participants: group_size(training, 1, participants) for participants in sizes} == sizes
    assert group_size(training, 2, 10_000) == 1
    assert group_size(replace(training, steps_per_epoch=2), 1, 10_000) == 1
    # Batches of up to 65, as a single sample joins the batch before it, and of one.
    assert group_size(replace(training, batch_size=64), 1, 10_000) == 4
    assert group_size(replace(training, batch_size=1), 1, 10_000) == 512
    assert group_size(replace(training, batch_size=600), 1, 10_000) == 1


def test_who_takes_one_step() -> None:
    training = build([{"method.name": "fedavg", "training.batch_size": 5}]).training
    assert [take_one_step(training, [count]) for count in (0, 1, 5, 6, 7)] == [False, True, True, True, False]
    assert not take_one_step(training, [5, 7])
    one, several = (replace(training, steps_per_epoch=steps) for steps in (1, 2))
    assert [take_one_step(one, [count]) for count in (0, 1, 100)] == [False, True, True]
    assert not take_one_step(several, [1])
    # Calls hold whole groups only if at least half of these are merged, with three quarters of the samples.
    assert worth_it(training, [5, 5, 9, 1, 5, 5, 5, 5], 2) and worth_it(training, [6, 6, 6, 6, 7, 1], 2)
    assert not worth_it(training, [5, 5, 9, 5], 2) and not worth_it(training, [6, 6, 6, 6, 8, 1], 2)
    assert not worth_it(training, [6, 1, 7, 1, 7, 1], 2)


@dataclass(frozen=True)
class OwnMessages(FedAvg):
    """Every client gets an array of its own."""

    def message(self, server: Any, client: int) -> Message:
        return Message(server.copy())


@dataclass(frozen=True)
class Smooth(FedAvg):
    """FedAvg with a loss of its own, which inherits a trait that it does not have."""

    def train(self, model: Any, data: Any, message: Message, state: Any, task: ClientTask) -> tuple[Update, None]:
        def smoothed(module: nn.Module, batch: Any) -> torch.Tensor:
            return nn.functional.cross_entropy(module(batch.x), batch.y, label_smoothing=0.1)

        return local_update(model, data, message, task, smoothed), None


@dataclass(frozen=True)
class NearStart(FedAvg):
    """A term around the initial values, which is 0 in the first round alone."""

    def train(self, model: Any, data: Any, message: Message, state: Any, task: ClientTask) -> tuple[Update, None]:
        initial = model.shared_parameters.clone()

        def pull(model: FlatModel) -> None:
            model.shared_gradient.add_(model.shared_parameters - initial, alpha=0.1)

        model.load_shared(message.parameters)
        trained = train_epochs(model, data.train, task, add_gradient=pull)
        return Update(model.change_from(message.parameters), trained.metrics()), None


@dataclass(frozen=True)
class Undeclared(FedAvg):
    traits: ClassVar[Traits] = Traits(weighted_mean=True)


@dataclass(frozen=True)
class PlainMean(FedAvg):
    traits: ClassVar[Traits] = Traits(weighted_mean=True, single_step_gradient=True, plain_mean=True)


@pytest.mark.parametrize("options", [{}, {"training__precision": "bf16"}, {"training__weight_decay": 0.3}])
@pytest.mark.parametrize("method", ["fedavg", "fedprox"])
def test_a_method_that_has_the_trait_is_believed(make_config: MakeConfig, method: str, options: dict[str, Any]) -> None:
    assert contradiction(worker_of(make_config("run", method__name=method, **options))) == ""


@pytest.mark.parametrize("method", [Smooth, NearStart])
def test_a_method_that_inherits_the_trait_and_trains_in_another_way_is_not_merged(
    make_config: MakeConfig, method: type
) -> None:
    config = make_config("run", method__name=f"{__name__}:{method.__name__}")
    worker = worker_of(config)
    assert possible(worker)
    assert f"{method.__name__} declares Traits(single_step_gradient=True), but" in contradiction(worker)
    folder, observer = prepare(config), Watch()
    assert execute(config, folder, observer).status == "finished"
    assert any("Clients are therefore trained one by one" in text for text in observer.notes)
    apart = make_config("apart", method__name=f"{__name__}:{method.__name__}", engine__merge_single_steps=False)
    assert fingerprint(folder) == fingerprint(raysim.run(apart).folder)


def test_clients_that_are_sent_different_parameters_are_not_merged(
    make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = counted(monkeypatch)
    raysim.run(make_config("run", method__name=f"{__name__}:OwnMessages"))
    assert seen == [2]  # the two that are tried before the first round


@pytest.mark.parametrize(
    ("options", "allowed"),
    [
        ({}, True),
        ({"training__momentum": 0.9}, True),
        ({"model__name": "cnn", "training__batch_size": 10}, True),
        ({"model__name": "cnn"}, False),  # client tasks are too long
        ({"workload__clients": 31}, False),
        ({"training__steps_per_epoch": 2}, False),
        ({"method__name": f"{SharesHead.__module__}:SharesHead"}, True),
        ({"method__name": f"{__name__}:Undeclared"}, False),
        ({"method__name": f"{__name__}:PlainMean"}, False),  # merged steps are a sum by samples
        ({"method__name": "fedprox"}, True),
        ({"method__name": "fedrad"}, False),
        ({"method__name": "fedbn"}, False),
        ({"training__optimizer": "adamw"}, False),
        ({"engine__merge_single_steps": False}, False),
        ({"model__name": "mobilenet", "model__width": 0.1}, False),
        ({"workload__name": "toy-graphs", "model__name": "gin"}, False),
    ],
)
def test_whether_it_is_possible(make_config: MakeConfig, options: dict[str, Any], allowed: bool) -> None:
    if options.get("workload__name") == "toy-graphs":  # has none of the others' options
        config = build([{"method.name": "fedavg"} | {key.replace("__", "."): value for key, value in options.items()}])
    else:
        config = make_config("run", **options)
    assert possible(worker_of(config)) is allowed
