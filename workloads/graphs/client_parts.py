"""One set of graphs cut over clients."""

from __future__ import annotations

from typing import Literal

from workloads import partition
from workloads.errors import WorkloadError
from workloads.federated_data import Stream
from workloads.graphs.graph_set import Integers

LEAST = 3
"""Least number of graphs of a client's part of a set: one each to train, validate and test with."""


def client_parts(
    name: str,
    labels: Integers,
    clients: int,
    how: Literal["iid", "dirichlet"],
    alpha: float,
    stream: Stream,
    option: str,
) -> list[Integers]:
    """Which graphs of a set each client has, drawn from the stream "partition".

    Args:
        name: of the set.
        labels: of its graphs [G].
        clients: their number.
        how: iid, or dirichlet (label skew).
        alpha: concentration of the Dirichlet distribution.
        stream: of the workload.
        option: that asked for so many clients.

    Raises:
        WorkloadError: there are too few graphs.
    """
    try:
        if how == "iid":
            cut = partition.iid(len(labels), clients, LEAST, stream("partition"))
        else:
            cut = partition.dirichlet(labels, clients, alpha, LEAST, stream("partition"))
    except WorkloadError as error:
        raise WorkloadError(
            f"{name}: its {len(labels)} graphs cannot be cut over {option} = {clients} clients with at least {LEAST} "
            f"each; set {option} to at most {max(1, len(labels) // LEAST)}"
        ) from error
    return [cut.of(client) for client in range(clients)]
