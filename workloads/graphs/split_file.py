"""The client and the part of every node, in a file: a number in each line, or the table that a run leaves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError
from raysim.workloads.files.regular_files import read_regular
from raysim.workloads.graphs.client_parts import LEAST
from raysim.workloads.graphs.graph_set import Integers
from raysim.workloads.graphs.node_graph import TEST, TRAIN, UNUSED, VALIDATION

HEADER = "node,client,part"
"""First line of the table that a run leaves, ``split.csv``; nodes are numbered as they are cut."""
PARTS = {"unused": UNUSED, "train": TRAIN, "validation": VALIDATION, "test": TEST}
"""Names of the roles of nodes there."""


def table_of(owners: Integers, roles: NDArray[np.int8]) -> str:
    """The table of the client and the part of each node [N]."""
    names = {role: name for name, role in PARTS.items()}
    lines = (f"{node},{owner},{names[int(role)]}" for node, (owner, role) in enumerate(zip(owners, roles, strict=True)))
    return "\n".join([HEADER, *lines, ""])


def read_owners(path: Path, nodes: int, clients: int) -> Integers:
    """Read the client of each node [N] from a table, or from a text file with a number in each line.

    Raises:
        WorkloadError: it cannot be read, or does not fit the graph.
    """
    try:
        words = [row[1] for row in rows] if (rows := _rows(path)) else read_regular(path).decode().split()
        owners = np.array([int(word) for word in words], np.int64)
    except (OSError, ValueError, OverflowError) as error:
        raise WorkloadError(f"{path}: it has no client number in each line ({error})") from error
    if len(owners) != nodes:
        raise WorkloadError(f"{path}: it has {len(owners)} lines, and the graph {nodes} nodes")
    inside = owners.min() >= 0 and owners.max() < clients
    if not inside or np.bincount(owners, minlength=clients).min() < LEAST:
        raise WorkloadError(
            f"{path}: its clients are {owners.min()} to {owners.max()}, and with workload.clients {clients} each of 0 "
            f"to {clients - 1} needs at least {LEAST} nodes"
        )
    return owners


def read_roles(path: Path, nodes: int) -> NDArray[np.int8]:
    """Read the part of each node [N] from a table.

    Raises:
        WorkloadError: it is none, or does not fit the graph.
    """
    try:
        rows = _rows(path)
        roles = np.array([PARTS[row[2]] for row in rows], np.int8)
    except (OSError, ValueError, KeyError) as error:
        raise WorkloadError(f"{path}: a part is none of {', '.join(PARTS)} ({error})") from error
    if len(roles) != nodes:
        raise WorkloadError(
            f"{path}: it has the parts of {len(roles)} nodes, and the graph {nodes} nodes; split file takes a table "
            f"{HEADER}, the split.csv of a run's folder"
        )
    return roles


def _rows(path: Path) -> list[list[str]]:
    """The rows of a table, nodes in order; none if the file is not one. ValueError if its rows are wrong."""
    first, *lines = read_regular(path).decode().splitlines() or [""]
    if first.strip() != HEADER:
        return []
    rows = [line.split(",") for line in lines if line]
    if any(len(row) != 3 or row[0] != str(number) for number, row in enumerate(rows)):
        raise ValueError(f"its rows are not {HEADER} of node 0, 1, … in order")
    return rows
