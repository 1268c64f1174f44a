"""Graphs whose nodes are cut over clients: five nodes by hand, and two rings as a file for the workload ``nodes``."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from raysim.workloads.graphs.node_federation import NodeFederation
from raysim.workloads.graphs.node_graph import TEST, TRAIN, UNUSED, VALIDATION, node_graph


def rings(folder: Path, size: int = 30) -> str:
    """Two rings of nodes, each a class; a node's features are its class, disturbed. Masks are every third node."""
    generator = np.random.default_rng(0)
    labels = np.repeat([0, 1], size)
    nodes = np.arange(2 * size)
    edges = np.stack([nodes, np.concatenate([np.roll(nodes[:size], 1), np.roll(nodes[size:], 1)])], axis=1)
    features = (np.eye(2)[labels] + 0.7 * generator.random((2 * size, 2))).astype(np.float32)
    masks: dict[str, Any] = {
        f"{part}_masks": np.stack([nodes % 3 == row]) for row, part in enumerate(("train", "val", "test"))
    }
    np.savez(folder / "rings.npz", node_features=features, node_labels=labels, edges=edges, **masks)
    return str(folder / "rings.npz")


NODE_METHODS = ("adafgl", "fedgcn", "fedgta", "fedpub", "fedsageplus", "fedtad")
"""Methods that go with the nodes of one graph alone."""


def node_options(separator: str = "__") -> dict[str, object]:
    """Options of a small run of such a method on rings, in the place of those for images, without an exchange."""
    chosen = {"name": "nodes", "path": kept_rings()[1], "exchange": "none", "limit": None}
    found: dict[str, object] = {f"workload{separator}{name}": value for name, value in chosen.items()}
    return found | {f"model{separator}name": "gcn", f"model{separator}hidden": 8}


@lru_cache
def kept_rings() -> tuple[TemporaryDirectory[str], str]:
    """A folder that is there until this process ends, and the file of rings in it."""
    folder = TemporaryDirectory(prefix="rings-")
    return folder, rings(Path(folder.name))


def by_hand() -> NodeFederation:
    """Nodes 0, 2 and 4 are client 0's, 1 and 3 client 1's."""
    edges = np.array([[0, 2], [2, 4], [0, 1], [3, 1], [4, 3]]).T
    graph = node_graph("hand", np.arange(10).reshape(5, 2), edges, np.array([0, 1, 1, 0, 1]))
    roles = np.array([TRAIN, TRAIN, TEST, UNUSED, VALIDATION], np.int8)
    return NodeFederation(graph, np.array([0, 1, 0, 1, 0]), roles, 2)
