"""Graphs of a set, or nodes of a graph, cut over clients."""

from __future__ import annotations

from typing import Annotated, Literal

from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import Stream
from raysim.workloads.graphs.graph_set import Integers
from raysim.workloads.option_types import Help, Positive
from raysim.workloads.splits import partition

Skew = Annotated[
    Positive,
    Help("concentration of the Dirichlet distribution; smaller is more skewed", "Hsu et al. 2019, arXiv 1909.06335"),
]
"""The option alpha of a workload that is cut with label skew."""

LEAST = 3
"""Least number of graphs or nodes of a client: one each to train, validate and test with."""


def client_parts(  # noqa: PLR0913 - a split's options, and their names for messages
    name: str,
    labels: Integers,
    clients: int,
    how: Literal["iid", "dirichlet"],
    alpha: float,
    stream: Stream,
    option: str = "clients",
    what: str = "graphs",
) -> list[Integers]:
    """Which graphs (or nodes) each client has, drawn from the stream "partition".

    Args:
        name: of the set or graph.
        labels: of its graphs or nodes [N].
        clients: their number.
        how: iid, or dirichlet (label skew).
        alpha: concentration of the Dirichlet distribution.
        stream: of the workload.
        option: the one that asked for this number of clients.
        what: graphs or nodes.

    Raises:
        WorkloadError: there are too few of them.
    """
    try:
        if how == "iid":
            cut = partition.iid(len(labels), clients, LEAST, stream("partition"))
        else:
            cut = partition.dirichlet(labels, clients, alpha, LEAST, stream("partition"))
    except WorkloadError as error:
        raise WorkloadError(
            f"{name}: its {len(labels)} {what} cannot be cut over {option} = {clients} clients with at least {LEAST} "
            f"each; set {option} to at most {max(1, len(labels) // LEAST)}"
        ) from error
    return [cut.of(client) for client in range(clients)]
