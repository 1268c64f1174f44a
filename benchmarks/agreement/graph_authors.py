"""GCFL, FedStar and its GraphSAGE as their authors have them: models, clients and servers of their repositories.

github.com/Oxfordblue7/GCFL at a6691ae, github.com/yuetan031/FedStar at da01eac.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import raysim
from benchmarks.agreement import dgl_parts, problem
from benchmarks.agreement.case import Case, Change
from benchmarks.agreement.problem import Values
from raysim.client_side.worker import Worker
from raysim.config.command_line import given_config
from raysim.engine.load_federation import load_federation
from raysim.workloads.graphs.federation import GraphFederation
from raysim.workloads.graphs.graph_set import Graphs
from raysim.workloads.graphs.pyg_data import as_data
from raysim.workloads.parallel_map import Sequential

CLIENTS, HIDDEN, LAYERS, RATE = 3, 16, 2, 0.05
SLOW = 0.01
"""Learning rate of many rounds."""
WHOLE = 256
"""A mini-batch of all graphs."""
SETTINGS: Mapping[str, object] = {
    "workload.name": "toy-graphs",
    "workload.clients": CLIENTS,
    "workload.graphs_per_client": 30,
    "model.hidden": HIDDEN,
    "model.layers": LAYERS,
    "model.dropout": 0.0,
    "training.optimizer": "sgd",
    "training.momentum": 0.0,
    "training.weight_decay": 0.0,
    "training.learning_rate": RATE,
    "training.batch_size": WHOLE,
    "schedule.local_epochs": 1,
    "engine.backend": "inline",
}
LINEAR = ("weight", "bias")
PARTS = ("train", "val", "test")
MODULES = ("client", "models", "server", "training", "utils")
"""Names that all checkouts have."""
Names = Mapping[str, str]
"""Their name of a parameter → raysim's."""


def loaded(folder: Path, *names: str) -> list[Any]:
    """Modules of a checkout, whose names other checkouts have too."""
    dgl_parts.install()
    for name in ("dtaidistance", "tensorboardX"):
        sys.modules.setdefault(name, ModuleType(name)).__dict__.update(dtw=None, SummaryWriter=None)
    kept: dict[str, ModuleType] = {name: sys.modules.pop(name) for name in MODULES if name in sys.modules}
    sys.path.insert(0, str(folder))
    try:
        return [importlib.import_module(name) for name in names]
    finally:
        sys.path.remove(str(folder))
        for name in MODULES:
            sys.modules.pop(name, None)
        sys.modules.update(kept)


class Start:
    """The clients of a run, and the models that they begin with."""

    def __init__(self, method: str, options: Mapping[str, object]) -> None:
        config = given_config({"method": method, **SETTINGS, **options})
        self.federation: GraphFederation = load_federation(config, Sequential())  # type: ignore[assignment]
        self._worker = Worker(config, self.federation)
        self._shared = self._worker.method.message(self._worker.method.init_server(self._worker.model(0)), 0).parameters

    def module(self, client: int) -> nn.Module:
        """As the client has it once it has received what the server begins with."""
        model = self._worker.model(client)
        model.load_shared(self._shared)
        return model.module

    def training(self, client: int, batch_size: int = WHOLE) -> list[Graphs]:
        """The mini-batches that a client trains on, each in the order that raysim gives its graphs."""
        part = self.federation.parts[client]
        cut = [part.train[start : start + batch_size] for start in range(0, len(part.train), batch_size)]
        return [in_order(part.graphs.subset(chosen)) for chosen in cut]


def in_order(graphs: Graphs) -> Graphs:
    return graphs.subset(np.lexsort((np.arange(len(graphs)), graphs.edge_counts, graphs.sizes)))


def case(
    method: str,
    names: Names,
    theirs: Callable[[Start], Values],
    options: Mapping[str, object],
    changes: Sequence[Change] = (),
) -> Case:
    """Compares the clients' models after the last round, parameter by parameter."""

    def run(case: Case, wanted: Iterable[str]) -> Values:
        with TemporaryDirectory() as place, problem.unshuffled():
            result = raysim.run(
                {"method": method, "schedule.rounds": problem.ROUNDS, **SETTINGS, **options, "output": f"{place}/run"}
            )
            return {name: in_their_order(result.client_model(int(name[-1])), names) for name in wanted}

    return Case(method, lambda: theirs(Start(method, options)), options, tuple(changes), run=run)


def value_of(module: nn.Module, theirs: str, own: str) -> Tensor:
    """A parameter as they have it."""
    value = module.get_parameter(own).detach()
    if theirs.endswith("eig_w.weight"):  # sines and cosines in turn here, one behind the other there
        return value[:, [0, *range(1, HIDDEN + 1, 2), *range(2, HIDDEN + 1, 2)]]
    return value


def in_their_order(module: nn.Module, names: Names) -> Tensor:
    return problem.vector(value_of(module, *pair) for pair in names.items())


def filled(model: Any, module: nn.Module, names: Names) -> Any:
    """Their model with raysim's values."""
    for theirs, own in names.items():
        model.get_parameter(theirs).data.copy_(value_of(module, theirs, own))
    return model


def ended(clients: Sequence[Any], names: Names) -> Values:
    return {
        f"client {client.id}": problem.vector(client.model.get_parameter(name) for name in names) for client in clients
    }


def layers(pairs: Mapping[str, str], body: str = "body.") -> dict[str, str]:
    """Names of weights and biases of layers."""
    return {f"{theirs}.{kind}": f"{body}{own}.{kind}" for theirs, own in pairs.items() for kind in LINEAR}


# -- GCFL, FedStar, GraphSAGE ----------------------------------------------------------------------------------------


def cases(gcfl: Path, fedstar: Path) -> Iterator[Case]:
    """Federated averaging of graph networks, in clusters or of parts."""
    ends = {"pre.0": "pre", "post.0": "post"}
    head = layers({"readout.0": "head"}, body="")
    numbers = range(LAYERS)
    gin = {
        f"graph_convs.{k}.nn.{place}": f"convolutions.{k}.{own}"
        for k in numbers
        for place, own in ((0, "first"), (2, "second"))
    }
    gin_names = layers(ends | gin) | head

    def clustered(start: Start) -> Values:
        client, models, server, training = loaded(gcfl, "client", "models", "server", "training")
        clients = their_clients(
            start, client, lambda width, classes: models.GIN(width, HIDDEN, classes, LAYERS, 0.0), gin_names, SLOW
        )
        training.run_gcfl(clients, their_server(server, models.serverGIN(LAYERS, HIDDEN), clients), 24, 1, 1e9, 0.0)
        return ended(clients, gin_names)

    wide = {"method.small_mean": 1e9, "method.large_update": 0.0, "method.quiet_rounds": 20, "schedule.rounds": 24}
    yield case("gcfl", gin_names, clustered, {"model.name": "gin", "training.learning_rate": SLOW, **wide})

    star_names = layers(ends | gin | {"Whp": "join", "embedding_s": "structure.embedding"}) | head
    for k in numbers:
        star_names |= {
            f"graph_convs_s_gcn.{k}.lin.weight": f"body.structure.convolutions.{k}.linear.weight",
            f"graph_convs_s_gcn.{k}.bias": f"body.structure.convolutions.{k}.bias",
        }

    def star(start: Start) -> Values:
        client, models, server, training, utils = loaded(
            fedstar / "lib", "client", "models", "server", "training", "utils"
        )
        encodings = SimpleNamespace(n_rw=16, n_dg=16)
        clients = their_clients(
            start,
            client,
            lambda width, classes: models.GIN_dc(width, 32, HIDDEN, classes, LAYERS, 0.0),
            star_names,
            encoded=lambda graphs: utils.init_structure_encoding(encodings, graphs, "rw_dg"),
        )
        its = their_server(server, models.serverGIN_dc(32, LAYERS, HIDDEN), clients)
        training.run_fedstar(SimpleNamespace(alg="fedstar"), clients, its, problem.ROUNDS, 1)
        return ended(clients, star_names)

    yield case("fedstar", star_names, star, {"model.name": "gin-star"})

    sage_names = layers(ends | {f"graph_convs.{k}.lin_l": f"convolutions.{k}.neighbors" for k in numbers}) | head
    sage_names |= {f"graph_convs.{k}.lin_r.weight": f"body.convolutions.{k}.own.weight" for k in numbers}

    def sage(start: Start) -> Values:
        client, models, server, training = loaded(fedstar / "lib", "client", "models", "server", "training")
        clients = their_clients(
            start, client, lambda width, classes: models.GraphSage(width, HIDDEN, classes, LAYERS, 0.0), sage_names
        )
        its = their_server(server, models.serverGraphSage(LAYERS, HIDDEN), clients)
        training.run_fedavg(SimpleNamespace(alg="fedavg"), clients, its, problem.ROUNDS, 1)
        return ended(clients, sage_names)

    yield case("fedsage", sage_names, sage, {"model.name": "graphsage"})


def their_clients(
    start: Start,
    module: Any,
    build: Callable[[int, int], nn.Module],
    names: Names,
    rate: float = RATE,
    encoded: Callable[[list[Any]], list[Any]] = list,
) -> list[Any]:
    from torch_geometric.data import Batch

    clients = []
    for number in range(CLIENTS):
        own, (graphs,) = start.module(number), start.training(number)
        inputs = start.federation.input_spec(number)
        model = filled(build(inputs.input_shape[0], inputs.classes), own, names)
        batch = Batch.from_data_list(encoded([*as_data(graphs)]))
        loaders = {part: [batch] for part in PARTS}
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)
        clients.append(
            module.Client_GC(model, number, str(number), len(graphs), loaders, optimizer, SimpleNamespace(device="cpu"))
        )
    return clients


def their_server(module: Any, model: nn.Module, clients: Sequence[Any]) -> Any:
    """With the values of what is shared that every client has."""
    for name, parameter in model.named_parameters():
        parameter.data.copy_(clients[0].model.get_parameter(name).data)
    return module.Server(model, "cpu")
