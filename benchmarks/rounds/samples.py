"""The content of a workload's file of samples, by kind; made by raysim's data sets, in its environment alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.rounds.data import TEST_SAMPLES
from benchmarks.rounds.models import CHARACTERS, LENGTH
from benchmarks.rounds.task import Workload

Content = dict[str, NDArray[Any]]
GRAPH_SET = "NCI1"


def images(workload: Workload) -> Content:
    """raysim's synthetic images of CIFAR's shape: MedMNIST's keys, and the client of each sample as its site."""
    from raysim.workloads.images.synthetic import Synthetic

    size = workload.clients * workload.samples
    options = Synthetic(train_size=size, test_size=TEST_SAMPLES, noise=workload.noise)
    made = options.images(lambda _: np.random.default_rng(0))
    return {
        "train_images": made.images,
        "train_labels": made.labels,
        "train_sites": np.array([f"client {index // workload.samples:04}" for index in range(size)]),
        "test_images": made.test_images,
        "test_labels": made.test_labels,
        "test_sites": np.full(TEST_SAMPLES, "no client"),
    }


def characters(workload: Workload) -> Content:
    """Windows of a made-up text: a character follows from the one before, or by chance with probability ``noise``."""
    random = np.random.default_rng(0)
    count = workload.clients * workload.samples + TEST_SAMPLES
    following = random.permutation(CHARACTERS)
    rows = np.empty((count, LENGTH + 1), np.uint8)
    rows[:, 0] = random.integers(CHARACTERS, size=count)
    for place in range(1, LENGTH + 1):
        chance = random.random(count) < workload.noise
        rows[:, place] = np.where(chance, random.integers(CHARACTERS, size=count), following[rows[:, place - 1]])
    windows, labels = rows[:, :-1], rows[:, -1].astype(np.int64)
    return {
        "train_characters": windows[:-TEST_SAMPLES],
        "train_labels": labels[:-TEST_SAMPLES],
        "test_characters": windows[-TEST_SAMPLES:],
        "test_labels": labels[-TEST_SAMPLES:],
    }


def graphs(workload: Workload) -> Content:
    """NCI1 of $RAYSIM_DATA in an order drawn at random; those that no client has are the test set."""
    from raysim.workloads.files.cache_files import search_folders
    from raysim.workloads.graphs import tu_reader

    files = tu_reader.find(GRAPH_SET, search_folders("", "tudataset"))
    if files is None:
        raise FileNotFoundError(f"P4 needs {GRAPH_SET}: set RAYSIM_DATA to a folder with tudataset/{GRAPH_SET}.zip")
    whole, _ = tu_reader.read_graphs(files)
    order = np.random.default_rng(0).permutation(len(whole))
    nodes, features, edges, counts = [], [], [], []
    for number in order:
        own = slice(*whole.node_offsets[number : number + 2])
        once = whole.edges[:, slice(*whole.edge_offsets[number : number + 2])]
        both = np.concatenate([once, once[::-1, once[0] != once[1]]], axis=1)
        features.append(whole.features[own])
        nodes.append(len(features[-1]))
        edges.append(both)
        counts.append(both.shape[1])
    labels = whole.labels[order]
    trained = workload.clients * workload.samples
    return {
        "features": np.concatenate(features),
        "node_offsets": np.cumsum([0, *nodes]),
        "edge_index": np.concatenate(edges, axis=1),
        "edge_offsets": np.cumsum([0, *counts]),
        "train_labels": labels[:trained],
        "test_labels": labels[trained:],
    }


MAKERS: dict[str, Callable[[Workload], Content]] = {"images": images, "characters": characters, "graphs": graphs}
