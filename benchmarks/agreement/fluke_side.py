"""Methods of Fluke (pip install fluke-fl), whose servers and clients run as they are, without evaluation."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any
from unittest import mock

from benchmarks.agreement import problem
from benchmarks.agreement.case import Case, Change
from benchmarks.agreement.problem import Values

ADAPTIVE: Mapping[str, Any] = {"lr": 0.1, "beta2": 0.99, "tau": 0.001}


def trained(
    module: str,
    name: str,
    local_momentum: float = 0.0,
    local: Mapping[str, object] = MappingProxyType({}),
    **server: object,
) -> Values:
    """The server's model after all rounds of an algorithm, with options of its clients and of its server."""
    from fluke import DDict, FlukeENV
    from fluke.data import DataSplitter, DummyDataContainer, FastDataLoader

    FlukeENV().set_seed(0)
    loaders = [
        FastDataLoader(*client, num_labels=problem.CLASSES, batch_size=problem.BATCH, shuffle=False)
        for client in problem.clients()
    ]
    nothing = [None] * len(loaders)
    data = DataSplitter(DummyDataContainer(loaders, nothing, None, problem.CLASSES), distribution="iid")
    client = DDict(
        batch_size=problem.BATCH,
        local_epochs=problem.EPOCHS,
        loss="CrossEntropyLoss",
        optimizer=DDict(name="SGD", lr=problem.RATE, momentum=local_momentum),
        scheduler=DDict(name="StepLR", step_size=1, gamma=1.0),
        **local,
    )
    options = DDict(client=client, server=DDict(weighted=True, **server), model=problem.network())
    algorithm = getattr(importlib.import_module(f"fluke.algorithms.{module}"), name)(len(loaders), data, options)
    algorithm.server.get_eligible_clients = lambda share: list(algorithm.clients)
    algorithm._compute_evaluation = lambda *given: None
    algorithm.run(problem.ROUNDS, 1.0)
    return {"server": problem.vector(algorithm.server.model.parameters())}


def cases() -> Iterator[Case]:
    """All methods that both programs have and PFLlib has not."""
    mixed = Change("defect: models are mixed by weights that do not sum to 1, and the rest of θ is lost", rest_of_model)
    yield Case("fednova", lambda: trained("fednova", "FedNova"), {}, (mixed,))
    yield Case(
        "fednova",
        lambda: trained("fednova", "FedNova", local_momentum=0.9),
        {"training.momentum": 0.9},
        (mixed, Change("decision: clients begin a round without the momentum of the one before", fresh_momentum)),
    )
    adaptive = (
        Change("defect: the server's learning rate also scales the mean change, before m and v", whole_change),
        Change("decision: v starts at τ², not at 0", first_squares),
    )
    for method, mode, beta in (("fedadam", "adam", 0.9), ("fedyogi", "yogi", 0.9), ("fedadagrad", "adagrad", 0.0)):

        def theirs(mode: str = mode, beta: float = beta) -> Values:
            return trained("fedopt", "FedOpt", mode=mode, beta1=beta, **ADAPTIVE)

        yield Case(method, theirs, {"method.server_rate": 0.1, "method.beta1": beta}, adaptive)
    yield Case(
        "fedavgm",
        lambda: trained("fedavgm", "FedAVGM", momentum=0.9),
        {"method.server_momentum": 0.9},
        (Change("defect: the first round changes nothing, as it does not enter the momentum", filled_momentum),),
    )
    yield Case(
        "fedld",
        lambda: trained("fedld", "FedLD", local={"margin_lam": 0.2}, k_proportion=0.8),
        {
            "method.granularity": "authors",
            "method.margin": "softmax_log",
            "method.margin_weight": 0.2,
            "method.share": 0.8,
        },
    )


def rest_of_model() -> AbstractContextManager[Any]:
    module: Any = importlib.import_module("fluke.algorithms.fednova")
    mix = module.aggregate_models

    def whole(target: Any, models: Any, weights: Any, eta: float) -> Any:
        rest = 1 - float(sum(weights))
        return mix(target, [*models, copy.deepcopy(target)], [*map(float, weights), rest], eta)

    return mock.patch.object(module, "aggregate_models", whole)


def whole_change() -> AbstractContextManager[Any]:
    from fluke.server import Server

    aggregate = Server.aggregate

    def at_rate_one(self: Any, eligible: Any, client_models: Any) -> None:
        rate, self.hyper_params.lr = self.hyper_params.lr, 1.0
        aggregate(self, eligible, client_models)
        self.hyper_params.lr = rate

    return mock.patch.object(Server, "aggregate", at_rate_one)


def fresh_momentum() -> AbstractContextManager[Any]:
    from fluke.client import Client

    fit = Client.fit

    def forgetting(self: Any, override_local_epochs: int = 0) -> float:
        self.optimizer = None
        loss: float = fit(self, override_local_epochs)
        return loss

    return mock.patch.object(Client, "fit", forgetting)


def first_squares() -> AbstractContextManager[Any]:
    from fluke.algorithms.fedopt import FedOptServer

    start = FedOptServer._init_moments

    def squared(self: Any) -> None:
        start(self)
        for value in self.v_t.values():
            value.fill_(self.hyper_params.tau**2)

    return mock.patch.object(FedOptServer, "_init_moments", squared)


def filled_momentum() -> AbstractContextManager[Any]:
    from fluke.algorithms.fedavgm import FedAVGMServer
    from fluke.utils.model import state_dict_zero_like

    start = FedAVGMServer.__init__

    def with_zeros(self: Any, *given: Any, **options: Any) -> None:
        start(self, *given, **options)
        self.momentum_vector = state_dict_zero_like(self.model.state_dict())

    return mock.patch.object(FedAVGMServer, "__init__", with_zeros)
