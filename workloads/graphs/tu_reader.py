"""The text files of a TUDataset: where they are, their download, and their content as flat arrays.

They are read here and not by PyG, whose reader drops self-loops, adds up the attributes of repeated edges, takes a
damaged file as it is (nodes that are not there, edges between graphs, one-hot labels of any size), and takes a second
where this takes a tenth (its splitting of lines is Python). On sets without self-loops the results agree; the tests
compare them.
"""

from __future__ import annotations

import shutil
import urllib.request
import zipfile
from dataclasses import replace
from http.client import HTTPException
from pathlib import Path

import numpy as np

from raysim.workloads.errors import WorkloadError
from raysim.workloads.files.cache_files import whole_file
from raysim.workloads.graphs.graph_set import Floats, Graphs, Integers, of_pairs, offsets
from raysim.workloads.graphs.set_files import SetFiles, one_hot

PUBLISHED_DEGREES = {"IMDB-BINARY": 135, "IMDB-MULTI": 88}
"""Largest degrees of sets without node features as published; a copy that lacks its largest graph keeps the width."""
PAGE = "https://chrsmrrs.github.io/datasets"
SECONDS = 60  # a server that is silent for so long will not answer


def files_in(place: Path, name: str) -> SetFiles:
    """The files NAME_PART.txt of one set, in a folder or a zip archive."""
    return SetFiles(name, place, f"{name}_{{}}.txt")


def find(name: str, folders: list[Path]) -> SetFiles | None:
    """Find the files of a set in the first folder that has them.

    They are NAME/raw/NAME_A.txt (PyG's layout), NAME/NAME_A.txt, or NAME.zip with NAME/NAME_A.txt or NAME_A.txt in it.
    """
    for folder in folders:
        for place in (folder / name / "raw", folder / name):
            if (place / f"{name}_A.txt").exists():
                return files_in(place, name)
        if (folder / f"{name}.zip").exists():
            return files_in(folder / f"{name}.zip", name)
    return None


def download(name: str, folder: Path) -> SetFiles:
    """NAME.zip from where PyG's TUDataset takes it, into ``folder``.

    The file gets its name when it is whole, so any number of processes may do this at once. PyG's own download unpacks
    whatever paths are in the archive, and into the place where others read; here nothing is unpacked at all.
    """
    from raysim.workloads._torch_geometric import TUDataset

    source = f"{TUDataset.url}/{name}.zip"
    try:
        with whole_file(folder / f"{name}.zip") as partial:
            with urllib.request.urlopen(source, timeout=SECONDS) as answer, partial.open("wb") as file:
                shutil.copyfileobj(answer, file)
            if not zipfile.is_zipfile(partial):
                raise WorkloadError(
                    f"{name}: what {source} sends is no whole zip archive ({partial.stat().st_size} bytes); try again "
                    f"later, or put {name}.zip from {PAGE} into {folder}"
                )
    except (OSError, HTTPException) as error:  # URLError is an OSError
        raise WorkloadError(
            f"{name}: {source} cannot be downloaded into {folder} ({error}); check the name ({PAGE} lists all), "
            f"the network and the folder, or put {name}.zip there by hand"
        ) from error
    return files_in(folder / f"{name}.zip", name)


def read_graphs(files: SetFiles) -> tuple[Graphs, tuple[str, ...]]:
    """(graphs, names of their classes) of one set.

    Node features [nodes, F], the first of these that applies: one-hot node labels (value minus the smallest value,
    one block a column of labels, as PyG has it); the node attributes of the Letter sets; one-hot degrees from 0 up to
    the largest. Classes are numbered in the order of the labels' values, which are their names. All graphs and nodes
    are kept: isolated nodes, graphs without edges, single nodes. An edge that is there twice, or in both directions,
    is kept once; a self-loop stays. Attributes of edges are those of the file and then one-hot edge labels, as PyG has
    them with ``use_edge_attr``; of an edge that is there twice in one direction the first line counts.

    Raises:
        WorkloadError: a file that is missing, damaged, or does not agree with another; a graph without nodes.
    """
    indicator = files.table("graph_indicator", np.int64, 1)[:, 0]
    labels, class_names = read_classes(files)
    count, nodes = len(labels), len(indicator)
    if nodes == 0 or indicator.min() < 1 or indicator.max() > count:
        seen = f"{indicator.min()} to {indicator.max()}" if nodes else "none"
        raise files.damaged(f"graph_indicator names graphs {seen}, graph_labels has {count}")
    sizes = np.bincount(indicator - 1, minlength=count)
    if sizes.min() < 1:
        raise files.damaged(f"graph {int(sizes.argmin()) + 1} has no node")
    order = np.argsort(indicator, kind="stable")  # nodes of a graph together, as they are in all published sets
    places = np.empty(nodes, np.int64)
    places[order] = np.arange(nodes)
    pairs = places[_pairs(files, indicator)].T
    none = np.zeros((nodes, 0), np.float32)
    graphs = of_pairs(none, offsets(sizes), pairs, labels, _edge_attributes(files, pairs.shape[1]))
    return replace(graphs, features=_features(files, graphs, order)), class_names


def read_classes(files: SetFiles) -> tuple[Integers, tuple[str, ...]]:
    """(class of every graph [G], names of the classes), without pandas."""
    content = files.needed("graph_labels")
    try:
        values, labels = np.unique(np.array(content.split(), np.int64), return_inverse=True)
    except (ValueError, OverflowError) as error:
        raise files.damaged(f"graph_labels does not hold a number a line ({error})") from error
    return labels.reshape(-1), tuple(str(value) for value in values)


def _pairs(files: SetFiles, indicator: Integers) -> Integers:
    """The lines of A [lines, 2], nodes from 0."""
    pairs: Integers = files.table("A", np.int64, 2) - 1
    nodes = len(indicator)
    if len(pairs) and (pairs.min() < 0 or pairs.max() >= nodes):
        wrong = int(pairs.min() if pairs.min() < 0 else pairs.max()) + 1
        raise files.damaged(f"A has an edge of node {wrong}, graph_indicator has nodes 1 to {nodes}")
    graphs = indicator[pairs]
    apart = np.flatnonzero(graphs[:, 0] != graphs[:, 1])
    if len(apart):
        one, two = (pairs[apart[0]] + 1).tolist()
        raise files.damaged(f"A has an edge between nodes {one} and {two}, which are in different graphs")
    return pairs


def _edge_attributes(files: SetFiles, lines: int) -> Floats | None:
    """Attributes of each line of A [lines, D], then its labels, one-hot; None: the set has neither."""
    if not lines:
        return None
    blocks: list[Floats] = []
    if files.read("edge_attributes") is not None:
        blocks.append(files.finite("edge_attributes", np.float32, lines, "A"))
    if files.read("edge_labels") is not None:
        blocks.append(_labels(files, "edge", lines, "A"))
    return np.concatenate(blocks, axis=1) if blocks else None


def _features(files: SetFiles, graphs: Graphs, order: Integers) -> Floats:
    nodes = len(order)
    if files.read("node_labels") is not None:
        return _labels(files, "node", nodes, "graph_indicator")[order]
    if files.name.startswith("Letter-"):
        return files.finite("node_attributes", np.float32, nodes, "graph_indicator")[order]
    degrees = graphs.degrees()
    width = max(int(degrees.max()), PUBLISHED_DEGREES.get(files.name, 0)) + 1
    return one_hot(degrees[:, None], np.array([width]), files.name, "one-hot node features")


def _labels(files: SetFiles, what: str, lines: int, owner: str) -> Floats:
    """Columns of labels of nodes or edges, one-hot, value minus the smallest value: one block a column."""
    labels = files.table(f"{what}_labels", np.int64, lines=lines, owner=owner)
    labels = labels - labels.min(axis=0)
    features = "node features" if what == "node" else "edge attributes"
    return one_hot(labels, labels.max(axis=0) + 1.0, files.name, f"one-hot {features}")
