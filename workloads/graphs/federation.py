"""The federation of graph sets: every client has its own set, with its own node features and classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import NO_SAMPLES, ClientData, InputSpec, Samples
from raysim.workloads.graphs.graph_set import Graphs, Integers, offsets
from raysim.workloads.graphs.spectra import Laplacian, compute_spectra
from raysim.workloads.objective import CLASSIFICATION, Objective
from raysim.workloads.splits.partition_report import client_table

if TYPE_CHECKING:
    import pandas

    from raysim.workloads.parallel_map import Parallel


@dataclass(frozen=True, eq=False)
class GraphClient:
    """A client's graphs and which of them it trains on, is validated and tested with (ascending indices)."""

    name: str
    graphs: Graphs
    train: Integers
    validation: Integers
    test: Integers
    class_names: tuple[str, ...]
    set_name: str
    """The set that its graphs are of; clients of one set have the same task."""
    outputs: int = 0
    """Number of a model's outputs, where there are no classes."""

    @property
    def input_spec(self) -> InputSpec:
        width = self.graphs.features.shape[1]
        outputs = len(self.class_names) or self.outputs
        return InputSpec((width,), outputs, "graph", self.set_name, edge_width=self.graphs.edge_width)


@dataclass(frozen=True, eq=False)
class GraphFederation:
    """Clients with graphs of their own. There is no global test set: clients may differ in features and classes.

    The arrays may be read-only (shared memory): nothing writes to them, and what a client needs is copied.
    """

    name: str
    synthetic: bool
    parts: tuple[GraphClient, ...]
    laplacian: Laplacian = "normalized"
    """Which Laplacian ``prepare`` decomposes."""
    notes: tuple[str, ...] = ()
    """Notes on the data for the user before the run."""
    objective: Objective = CLASSIFICATION
    """The objective that models are trained for and judged by."""

    @property
    def clients(self) -> int:
        return len(self.parts)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The clients' own if they agree on them, else numbers, as many as the largest of them has classes."""
        names = {part.class_names for part in self.parts}
        if len(names) == 1:
            return names.pop()
        return tuple(str(label) for label in range(max(map(len, names))))

    @property
    def global_test_size(self) -> int:
        return 0

    @property
    def input_specs(self) -> tuple[InputSpec, ...]:
        """Every client's inputs, equal ones once."""
        return tuple(dict.fromkeys(part.input_spec for part in self.parts))

    def input_spec(self, client: int) -> InputSpec:
        return self.parts[client].input_spec

    def samples(self, client: int) -> int:
        return len(self.parts[client].train)

    def total_samples(self, clients: int) -> int:
        return sum(len(part.train) for part in self.parts[:clients])

    def test_samples(self, client: int) -> int:
        return len(self.parts[client].test)

    def client_name(self, client: int) -> str:
        return self.parts[client].name

    def client(self, client: int, device: str, channels_last: bool = True) -> ClientData:
        part = self.parts[client]
        train, validation, test = (
            _samples(part.graphs, chosen, device) for chosen in (part.train, part.validation, part.test)
        )
        return ClientData(client=client, name=part.name, train=train, test=test, validation=validation)

    def global_test(self, start: int, stop: int, device: str) -> NoReturn:
        raise WorkloadError(
            f"{self.name}: there is no global test set, as clients may have different features and classes; "
            "every client is judged by its own test graphs"
        )

    def pooled(self) -> GraphFederation:
        """WorkloadError if the clients' tasks differ: one model cannot take all of their graphs."""
        first = {part.input_spec: part.name for part in reversed(self.parts)}  # the first client of each
        if len(first) > 1:
            listing = ", ".join(
                f"{name} ({inputs.input_shape[0]} features, {inputs.classes} classes)"
                for inputs, name in list(reversed(first.items()))[:3]
            )
            raise WorkloadError(
                f"{self.name}: clients with different tasks have no union: {listing}; "
                "choose a method that trains no common model, or one set that is cut over the clients"
            )
        starts = offsets(np.array([len(part.graphs) for part in self.parts]))
        train, validation, test = (
            np.concatenate([getattr(part, which) + start for part, start in zip(self.parts, starts, strict=False)])
            for which in ("train", "validation", "test")
        )
        graphs = union([part.graphs for part in self.parts])
        whole = replace(self.parts[0], name="all clients", graphs=graphs, train=train, validation=validation, test=test)
        return replace(self, parts=(whole,))

    def prepare(self, needs_spectra: bool, parallel: Parallel) -> GraphFederation:
        """With the spectra of all graphs if the model needs them."""
        if not needs_spectra:
            return self
        found = compute_spectra([part.graphs for part in self.parts], self.laplacian, parallel)
        parts = zip(self.parts, found, strict=True)
        return replace(self, parts=tuple(replace(part, graphs=graphs) for part, graphs in parts))

    def manifest(self) -> pandas.DataFrame:
        """Also validation_samples, and the mean number of nodes and of (undirected) edges of all graphs of a client."""
        table = client_table(self, np.concatenate([part.graphs.labels[part.train] for part in self.parts]))
        table["validation_samples"] = [len(part.validation) for part in self.parts]
        table["nodes_mean"] = [float(part.graphs.sizes.mean()) for part in self.parts]
        table["edges_mean"] = [float(part.graphs.edge_counts.mean()) for part in self.parts]
        return table


def union(sets: list[Graphs]) -> Graphs:
    """All graphs of sets with node features of one width and edge attributes of one width, one set behind the other.

    With spectra if they have them.
    """

    def joined(name: str, axis: int = 0) -> NDArray[Any]:
        return np.concatenate([getattr(graphs, name) for graphs in sets], axis=axis)

    return Graphs(
        joined("features"),
        offsets(joined("sizes")),
        joined("edges", axis=1),
        offsets(joined("edge_counts")),
        joined("labels"),
        joined("eigenvalues"),
        joined("eigenvectors"),
        joined("attributes"),
    )


def _samples(graphs: Graphs, chosen: Integers, device: str) -> Samples:
    if not len(chosen):
        return NO_SAMPLES
    from raysim.workloads.graphs.batch import GraphSamples

    return GraphSamples(graphs.subset(chosen), device)
