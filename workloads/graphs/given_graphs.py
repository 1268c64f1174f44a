"""Graphs that :func:`raysim.run` was given: PyTorch Geometric's ``Data``, read, checked and put together by client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import Stream
from raysim.workloads.given.arrays import digest_of, each_client, tests_of_clients
from raysim.workloads.given.given_data import GivenClients, missing
from raysim.workloads.given.labels import is_one_hot
from raysim.workloads.graphs.federation import GraphClient, GraphFederation, union
from raysim.workloads.graphs.graph_set import Graphs, Integers
from raysim.workloads.graphs.pyg_data import as_graph_classes, check_widths, read_graphs
from raysim.workloads.graphs.stratified_split import stratified
from raysim.workloads.objective import Objective
from raysim.workloads.option_types import Help, ShareBelowOne


@dataclass(frozen=True, eq=False)
class GatheredGraphs:
    """The graphs of every client: first those it trains on, then, if they were given, those it is tested with."""

    names: tuple[str, ...]
    graphs: tuple[Graphs, ...]
    train_counts: tuple[int, ...]
    """How many of each client's graphs are not its test set."""
    tested: bool
    """Whether test graphs were given."""
    notes: tuple[str, ...] = ()

    def labels(self) -> NDArray[Any]:
        """The labels of all graphs, [graphs] or [graphs, D]."""
        return np.concatenate([graphs.labels for graphs in self.graphs])

    def digest(self) -> str:
        """SHA-256 of all of it."""
        parts: list[NDArray[Any]] = []
        for graphs in self.graphs:
            parts += [graphs.features, graphs.node_offsets, graphs.edges, graphs.edge_offsets, graphs.labels]
            parts += [graphs.attributes] if graphs.edge_width else []
        return digest_of(parts, "\n".join(self.names) + f" {self.train_counts} {self.tested} ")


@dataclass(frozen=True)
class GivenGraphs(GivenClients):
    """Lists of PyTorch Geometric's ``Data`` given in Python. ``load`` draws from the stream local_test."""

    name: ClassVar[str] = "given-graphs"
    inputs: ClassVar[Literal["array", "graph"]] = "graph"

    title: Annotated[str, Help("what the data is called in tables and pictures")] = "own graphs"
    tasks: Annotated[
        Literal["auto", "one", "own"],
        Help(
            "whether all clients learn one task, or each has its own and shares neither input layer nor head; auto: "
            "one, if all node features have one width, and all edge attributes"
        ),
    ] = "auto"
    test_share: Annotated[ShareBelowOne, Help("share of a client's graphs that is its local test set")] = 0.2

    def load(self, stream: Stream) -> GraphFederation:
        """The clients' graphs. WorkloadError where they were not given, or do not make one task as asked."""
        if self.held is None:
            raise missing("workload")
        own: GatheredGraphs = self.held
        widths: dict[tuple[int, int], str] = {}
        for name, graphs in zip(own.names, own.graphs, strict=True):
            widths.setdefault(graphs.widths, name)
        if self.tasks == "one" and len(widths) > 1:
            (one, client), (two, other) = list(widths.items())[:2]
            whose, what, which = ("nodes", "features", 0) if one[0] != two[0] else ("edges", "attributes", 1)
            raise WorkloadError(
                f"workload.tasks: one, but {whose} of client {client} have {one[which]} {what} and those of client "
                f"{other} {two[which]}. Set it to own, or give all {whose} {what} of one width"
            )
        apart = self.tasks == "own" or len(widths) > 1
        loss, metrics = self.functions
        objective = Objective("classification" if own.graphs[0].has_classes else "regression", loss, metrics)
        regression = objective.kind == "regression"
        if regression and loss is None:
            _check_numbers(own.labels())
        needed = [graphs.labels[0].size if regression else int(graphs.labels.max()) + 1 for graphs in own.graphs]
        clients = []
        for number, (name, graphs) in enumerate(zip(own.names, own.graphs, strict=True)):
            outputs = needed[number] if apart or regression else self.classes or max(needed)
            class_names = () if regression else tuple(map(str, range(outputs)))
            set_name = f"{self.title} of {name}" if apart else self.title
            parts = self._parts(own, number, stream(f"local_test {number}"))
            clients.append(GraphClient(name, graphs, *parts, class_names, set_name, outputs))
        return GraphFederation(self.title, False, tuple(clients), notes=own.notes, objective=objective)

    def sketch(self, stream: Stream) -> GraphFederation:
        """The same: no graph is copied before a client asks for its own."""
        return self.load(stream)

    def _parts(
        self, own: GatheredGraphs, number: int, generator: np.random.Generator
    ) -> tuple[Integers, Integers, Integers]:
        """Which of its graphs a client trains on, is validated and is tested with."""
        labels, count = own.graphs[number].labels, own.train_counts[number]
        if not own.graphs[number].has_classes:
            labels = np.zeros(len(labels), np.int64)  # all alike: the parts are random
        share = 0.0 if own.tested else self.test_share
        train, validation, test = stratified(labels[:count], self.validation_share, share, generator)
        return train, validation, np.arange(count, len(labels)) if own.tested else test


def hold_graphs(clients: object) -> bool:
    """Whether the clients' data is graphs: the first item of the first client's data has edges."""
    found: Any = clients
    try:
        for _ in range(2):
            if hasattr(found, "edge_index"):
                break
            found = next(iter(found.values())) if isinstance(found, Mapping) else found[0]
    except Exception:  # it is no list, or empty, or a Dataset that fails: whoever reads it says so
        return False
    return hasattr(found, "edge_index")


def gather_graphs(clients: object, test: object = None) -> GatheredGraphs:
    """Read and check the graphs of all clients.

    Args:
        clients: a list of every client's graphs or a dict name → graphs, each of them a list of PyTorch Geometric's
            ``Data`` or a data set of it.
        test: the same for every client's own test graphs; None: a share of its graphs is cut off.

    Raises:
        WorkloadError: it is not that, or not sound.
    """
    if not isinstance(clients, Mapping) and isinstance(clients, Sequence) and hasattr(clients[0], "edge_index"):
        raise WorkloadError(
            "clients: these are graphs of one data set; cut it over clients with raysim.split(data, clients=10), or "
            "give a list or a dict (name → graphs) with the graphs of every client"
        )
    named = each_client(clients, "clients")
    names = np.array([name for name, _ in named], dtype=np.str_)
    notes: dict[str, None] = {}
    graphs = [read_graphs(data, f"client {name}", notes) for name, data in named]
    counts = tuple(map(len, graphs))
    if test is not None:
        if not isinstance(test, Mapping | list) or hasattr(next(iter(test), None), "edge_index"):
            raise WorkloadError(
                "test: graphs have no global test set; give a list or a dict with the test graphs of every client, or "
                "none, and a fifth of each client's graphs is its test set"
            )
        for number, (name, data) in enumerate(tests_of_clients(test, names, len(named))):
            one, two = graphs[number], read_graphs(data, f"the test of client {name}", notes)
            check_widths(two.widths, one.widths, f"the test of client {name}", "the client's training graphs")
            _check_alike(one, two, f"the test of client {name}")
            graphs[number] = union([one, two])
    for (name, _), own in zip(named, graphs, strict=True):
        _check_alike(graphs[0], own, f"client {name}")
    return GatheredGraphs(tuple(map(str, names)), tuple(graphs), counts, test is not None, tuple(notes))


def _check_numbers(labels: NDArray[Any]) -> None:
    """WorkloadError for labels [graphs, C] that are one-hot: classes in another form, learned as numbers."""
    if is_one_hot(labels):
        raise WorkloadError(
            f"y is one-hot, {labels.shape[1]} numbers of each graph of which a single one is 1; give "
            f"{as_graph_classes(labels)}, or say loss=torch.nn.functional.mse_loss if the numbers are meant as they are"
        )


def _check_alike(one: Graphs, other: Graphs, where: str) -> None:
    """WorkloadError unless both are to be classified, or both have equally many numbers to be predicted."""
    if one.has_classes != other.has_classes or one.labels.shape[1:] != other.labels.shape[1:]:
        kinds = ["classes" if graphs.has_classes else f"{graphs.labels[0].size} numbers" for graphs in (other, one)]
        raise WorkloadError(
            f"{where}: its graphs have {kinds[0]} for y, and others {kinds[1]}; give all graphs a class (a whole "
            "number) or equally many numbers (float)"
        )
