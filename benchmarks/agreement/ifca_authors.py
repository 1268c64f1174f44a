"""IFCA as its authors have it: clusters, choices and means of github.com/jichan3751/ifca at 61e44b8, for MNIST.

Its local work is steps on all of a client's samples.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from benchmarks.agreement import problem
from benchmarks.agreement.case import Case, Change
from benchmarks.agreement.problem import Values
from raysim.flat_model import FlatModel, all_names
from raysim.methods.ifca import IFCA

CLUSTERS = 3


def first_models() -> list[nn.Module]:
    """The network that raysim begins with, and a shuffle of its values."""
    flat = FlatModel(problem.network(), set(all_names(problem.network())))
    found: list[nn.Module] = []
    for values in IFCA(clusters=CLUSTERS).init_server(flat).models:
        module = problem.network()
        nn.utils.vector_to_parameters(torch.from_numpy(values), module.parameters())
        found.append(module)
    return found


def cases(folder: Path) -> Iterator[Case]:
    """IFCA with three models, two of which are chosen."""
    sys.path.insert(0, str(folder / "mnist"))
    cluster: Any = importlib.import_module("train_cluster_mnist").TrainMNISTCluster

    def trained() -> Values:
        its = cluster.__new__(cluster)
        clients = problem.clients()
        its.config = {"m": len(clients), "p": CLUSTERS, "tau": problem.EPOCHS}
        its.dataset = {"train": {"cluster_assign": [0] * len(clients)}}  # what it would have to find
        its.models, its.criterion = first_models(), nn.CrossEntropyLoss()
        its.load_data = lambda client, train=True: clients[client]
        for _ in range(problem.ROUNDS):
            its.chosen = its.test(train=True)["cluster_assign"]
            its.train(its.chosen, problem.RATE)
        return {f"client {k}": problem.vector(its.models[own].parameters()) for k, own in enumerate(its.chosen)}

    def by_samples() -> AbstractContextManager[Any]:
        def mean(self: Any, local: Sequence[nn.Module], shared: nn.Module) -> None:
            number = next(k for k, model in enumerate(self.models) if model is shared)
            sizes = [size for size, own in zip(problem.SIZES, self.chosen, strict=True) if own == number]
            for parameter, *own in zip(shared.parameters(), *(model.parameters() for model in local), strict=True):
                total: Tensor = sum(size * value.data for size, value in zip(sizes, own, strict=True))
                parameter.data = total / sum(sizes)

        return mock.patch.object(cluster, "global_param_update", mean)

    change = Change("decision: means of a cluster's models by samples", by_samples)
    whole = max(problem.SIZES)
    options = {"method.clusters": CLUSTERS, "training.batch_size": whole}
    yield Case("ifca", trained, options, (change,), batch=whole)
