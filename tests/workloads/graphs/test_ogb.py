"""OGB's graph property sets, from a small folder in their layout: graphs by hand, splits, and what is refused."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from raysim.launch import main
from raysim.workloads.errors import WorkloadError
from raysim.workloads.graphs.ogb import Ogb
from raysim.workloads.graphs.ogb_reader import read_graphs, read_labels
from raysim.workloads.graphs.set_files import SetFiles
from tests.workloads.conftest import Stream

SMALL: Mapping[str, str] = {
    # Graph 0: a path 1-0-2. Graph 1: a single atom. Graph 2: 0-1, in both directions.
    "raw/edge": "1,0\n0,2\n0,1\n1,0\n",
    "raw/num-node-list": "3\n1\n2\n",
    "raw/num-edge-list": "2\n0\n2\n",
    "raw/node-feat": "0,7\n2,7\n0,0\n1,7\n0,7\n2,7\n",
    "raw/edge-feat": "0,0.5\n1,1\n0,2\n1,3\n",
    "raw/graph-label": "1,\n0,5\n1,3\n",
    "split/scaffold/train": "2\n",
    "split/scaffold/valid": "1\n",
    "split/scaffold/test": "0\n",
}


def written(folder: Path, texts: Mapping[str, str]) -> SetFiles:
    """The folder ogbg_small in OGB's layout."""
    for part, text in texts.items():
        path = folder / "ogbg_small" / f"{part}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()))
    return SetFiles("ogbg-small", folder / "ogbg_small", "{}.csv.gz", empty_lines=True)


def molecules(folder: Path, graphs: int = 40) -> None:
    """Rings of four atoms; the class of a ring is whether its bonds are double."""
    rings = range(graphs)
    written(
        folder,
        {
            "raw/edge": "0,1\n1,2\n2,3\n3,0\n" * graphs,
            "raw/num-node-list": "4\n" * graphs,
            "raw/num-edge-list": "4\n" * graphs,
            "raw/node-feat": "".join(f"{(ring + atom) % 3},{atom % 2}\n" for ring in rings for atom in range(4)),
            "raw/edge-feat": "".join(f"{ring % 2}\n" * 4 for ring in rings),
            "raw/graph-label": "".join(f"{ring % 2}\n" if ring % 10 else '""\n' for ring in rings),
            "split/scaffold/train": "".join(f"{ring}\n" for ring in rings if ring % 5 < 3),
            "split/scaffold/valid": "".join(f"{ring}\n" for ring in rings if ring % 5 == 3),
            "split/scaffold/test": "".join(f"{ring}\n" for ring in rings if ring % 5 == 4),
        },
    )


def test_a_set_by_hand(tmp_path: Path) -> None:
    files = written(tmp_path, SMALL)
    graphs = read_graphs(files, np.array([1, 0, 1]), as_kinds=True)
    assert graphs.sizes.tolist() == [3, 1, 2] and graphs.edge_counts.tolist() == [2, 0, 1]
    assert graphs.edges.tolist() == [[0, 0, 0], [1, 2, 1]]
    assert graphs.features.shape == (6, 3 + 8)
    assert graphs.features[1].nonzero()[0].tolist() == [2, 3 + 7]
    # Columns of edges: two kinds, one-hot, and a number. 0-1 and 0-2 are the same in both directions, as in OGB.
    assert graphs.attributes.tolist() == [[[1, 0, 0.5]] * 2, [[0, 1, 1]] * 2, [[1, 0, 2], [0, 1, 3]]]
    numbers = read_graphs(files, np.array([1, 0, 1]), as_kinds=False)
    assert numbers.features.tolist() == [[0, 7], [2, 7], [0, 0], [1, 7], [0, 7], [2, 7]]
    assert numbers.attributes[:, 0].tolist() == [[0, 0.5], [1, 1], [0, 2]]
    assert read_labels(files, 0)[0].tolist() == [1, 0, 1]
    labels, names = read_labels(files, 1)
    assert (labels.tolist(), names) == ([-1, 1, 0], ("3", "5"))


def test_nodes_without_features_have_a_one(tmp_path: Path) -> None:
    texts = {part: text for part, text in SMALL.items() if part not in ("raw/node-feat", "raw/edge-feat")}
    graphs = read_graphs(written(tmp_path, texts), np.zeros(3, np.int64), as_kinds=True)
    assert graphs.features.tolist() == [[1.0]] * 6 and graphs.edge_width == 0


@pytest.mark.parametrize(
    ("part", "text", "message"),
    [
        ("raw/edge", "1,0\n0,3\n0,1\n1,0\n", r"graph 0 has an edge \[0, 3\], and nodes 0 to 2"),
        ("raw/edge", "1,0\n0,2\n0,1\n-1,0\n", r"graph 2 has an edge \[-1, 0\]"),
        ("raw/edge", "1,0\n", "edge has 1 lines, num-edge-list adds up to 4"),
        ("raw/num-edge-list", "9000000000\n0\n2\n", "does not hold counts from 0 to 1000000000"),
        ("raw/num-edge-list", "900000000\n0\n2\n", "edge has 4 lines, num-edge-list adds up to 900000002"),
        ("raw/num-node-list", "3\n0\n2\n", "graph 1 has no node"),
        ("raw/num-node-list", "900000000\n1\n2\n", "adds up to 900000003 nodes, more than fit into memory"),
        ("raw/num-node-list", "3\n1\n", "raw/num-node-list has 2 lines, graph-label 3"),
        ("raw/node-feat", "1\n", "raw/node-feat has 1 lines, num-node-list 6"),
        ("raw/node-feat", "1\n" * 5 + "inf\n", "raw/node-feat has values that are no finite numbers"),
        ("raw/node-feat", "1\n" * 5 + "1000000000000\n", "columns, .* GB; set features to numbers"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, part: str, text: str, message: str) -> None:
    files = written(tmp_path, {**SMALL, part: text})
    with pytest.raises(WorkloadError, match=message):
        read_graphs(files, np.zeros(3, np.int64), as_kinds=True)


@pytest.mark.parametrize(
    ("options", "part", "text", "message"),
    [
        ({"target": 2}, "", "", "target = 2, but graph-label has columns 0 to 1"),
        ({}, "raw/graph-label", "0.5\n1\n0\n", "column 0 of graph-label does not hold classes; sets for regression"),
        ({}, "split/random/train", "0\n", "has random, scaffold, and one published split is expected"),
        ({}, "split/scaffold/test", "3\n", "scaffold does not have each of the graphs 0 to 2 in one part, once"),
        ({}, "split/scaffold/test", "2\n", "split/scaffold does not have each of"),
        ({}, "split/scaffold/test", "", "split/scaffold does not have each of"),
        ({"clients": 2}, "", "", "its 3 graphs cannot be cut over clients = 2 .*; set clients to at most 1"),
        (
            {"set": "ogbg-other"},
            "",
            "",
            "ogbg-other: there is no folder ogbg_other/raw in .*, unpack it as ogbg_other, and give --path FOLDER",
        ),
    ],
)
def test_a_sketch_tells_what_cannot_be(
    tmp_path: Path, stream: Stream, options: dict[str, Any], part: str, text: str, message: str
) -> None:
    written(tmp_path, {**SMALL, part: text} if part else SMALL)
    wanted: dict[str, Any] = {"set": "ogbg-small", "path": str(tmp_path), "clients": 1, "partition": "iid"} | options
    with pytest.raises(WorkloadError, match=message):
        Ogb(**wanted).sketch(stream)


def test_clients_have_the_published_split(tmp_path: Path, stream: Stream) -> None:
    molecules(tmp_path)
    options = Ogb(set="ogbg-small", clients=3, partition="iid", path=str(tmp_path))
    federation, sketch = options.load(stream), options.sketch(stream)
    assert federation.notes == ("4 of 40 graphs have no label in column 0 and are left out",)
    for role, count in (("train", 20), ("validation", 8), ("test", 8)):
        assert sum(len(getattr(part, role)) for part in federation.parts) == count
    for one, two in zip(federation.parts, sketch.parts, strict=True):
        assert np.array_equal(one.train, two.train) and np.array_equal(one.graphs.labels, two.graphs.labels)
    task = federation.input_specs[0]
    assert (task.input_shape, task.classes, task.edge_width) == ((5,), 2, 2)
    drawn = Ogb(set="ogbg-small", clients=3, partition="iid", path=str(tmp_path), split="drawn").load(stream)
    assert all(len(part.test) == 1 for part in drawn.parts)


def test_a_run_on_ogb_with_an_own_network_and_with_gin(tmp_path: Path) -> None:
    molecules(tmp_path)
    words = ["--method=fedavg", "--workload=ogb", "--set=ogbg-small", f"--path={tmp_path}", "--clients=2"]
    words += ["--partition=iid", "--engine.backend=inline", "--pictures=false", "--training.batch_size=4"]
    own = ["--model=examples.own_graphs:Net", "--rounds=6", "--learning_rate=0.01", f"--output={tmp_path / 'own'}"]
    assert main([*words, *own]) == 0
    assert pd.read_csv(tmp_path / "own" / "rounds.csv")["accuracy"].iloc[-1] == 1.0  # by the bonds alone
    gin = ["--rounds=1", "--hidden=8", "--transform=AddRandomWalkPE(3)", f"--output={tmp_path / 'gin'}"]
    assert main([*words, *gin]) == 0
