from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import NO_SAMPLES, Federation, InputSpec, Samples
from raysim.workloads.graphs.federation import GraphClient, GraphFederation, union
from raysim.workloads.graphs.graph_set import Graphs
from raysim.workloads.parallel_map import sequential
from raysim.workloads.splits.partition_report import draw_partition
from tests.made_graphs import graphs_of, path


def path_graphs(sizes: list[int], labels: list[int], width: int) -> Graphs:
    """Paths of these sizes; the first feature of every node of graph g is g."""
    features = np.zeros((sum(sizes), width), np.float32)
    features[:, 0] = np.repeat(np.arange(len(sizes)), sizes)
    return graphs_of(*map(path, sizes), features=features, labels=labels)


def a_client(name: str, width: int, class_names: tuple[str, ...] = ("no", "yes")) -> GraphClient:
    labels = [index % len(class_names) for index in range(6)]
    indices = np.array([0, 2, 3]), np.array([5]), np.array([1, 4])
    set_name = name.split(" part ")[0]
    return GraphClient(name, path_graphs([1, 2, 3, 4, 5, 6], labels, width), *indices, class_names, set_name)


@pytest.fixture
def mixed() -> GraphFederation:
    return GraphFederation("mixed", False, (a_client("narrow", 2), a_client("wide", 3, ("a", "b", "c"))))


@pytest.fixture
def equal() -> GraphFederation:
    return GraphFederation("equal", True, (a_client("S part 0", 2), a_client("S part 1", 2)))


def locked(federation: GraphFederation) -> GraphFederation:
    """With read-only arrays, as a shared object store hands them out."""
    copy: GraphFederation = pickle.loads(pickle.dumps(federation))
    for part in copy.parts:
        for owner in (part, part.graphs):
            for entry in fields(owner):
                if isinstance(value := getattr(owner, entry.name), np.ndarray):
                    value.setflags(write=False)
    return copy


def numbers(samples: Samples) -> list[tuple[int, int, int]]:
    """(number, nodes, label) of each graph of a set, sorted."""
    found: list[tuple[int, int, int]] = []
    for batch in samples.batches(4):
        sizes = torch.bincount(batch.x.batch, minlength=batch.x.num_graphs)
        firsts = torch.cumsum(sizes, 0) - sizes
        found += zip(batch.x.x[firsts, 0].int().tolist(), sizes.tolist(), batch.y.tolist(), strict=True)
    return sorted(found)


@pytest.mark.filterwarnings("error")
def test_it_is_a_federation(mixed: GraphFederation) -> None:
    federation: Federation = locked(mixed)
    assert federation.clients == 2
    assert [federation.input_spec(client) for client in range(2)] == [
        InputSpec((2,), 2, "graph", "narrow"),
        InputSpec((3,), 3, "graph", "wide"),
    ]
    assert federation.class_names == ("0", "1", "2")
    assert (federation.samples(0), federation.test_samples(0), federation.global_test_size) == (3, 2, 0)
    client = federation.client(1, "cpu")
    assert (client.client, client.name, client.samples) == (1, "wide", 3)
    assert numbers(client.train) == [(0, 1, 0), (2, 3, 2), (3, 4, 0)]
    assert numbers(client.validation) == [(5, 6, 2)]
    assert numbers(client.test) == [(1, 2, 1), (4, 5, 1)]


def test_empty_parts_are_empty_sets(mixed: GraphFederation) -> None:
    part = replace(mixed.parts[0], validation=np.zeros(0, np.int64))
    assert replace(mixed, parts=(part,)).client(0, "cpu").validation is NO_SAMPLES


def test_there_is_no_global_test_set(mixed: GraphFederation) -> None:
    with pytest.raises(WorkloadError, match=r"mixed: there is no global test set"):
        mixed.global_test(0, 1, "cpu")


def test_pooled_has_all_graphs_in_their_parts(equal: GraphFederation) -> None:
    pooled = locked(equal).pooled()
    assert (pooled.clients, pooled.client_name(0), pooled.input_spec(0)) == (1, "all clients", equal.input_spec(0))
    assert (pooled.samples(0), len(pooled.parts[0].validation), pooled.test_samples(0)) == (6, 2, 4)
    client = pooled.client(0, "cpu")
    for which in ("train", "validation", "test"):
        apart = [numbers(getattr(equal.client(number, "cpu"), which)) for number in range(2)]
        assert numbers(getattr(client, which)) == sorted(apart[0] + apart[1])
    assert pooled.class_names == ("no", "yes")


def test_different_tasks_have_no_union(mixed: GraphFederation, equal: GraphFederation) -> None:
    with pytest.raises(
        WorkloadError, match=r"no union: narrow \(2 features, 2 classes\), wide \(3 features, 3 classes\)"
    ):
        mixed.pooled()
    many = replace(equal, parts=(*equal.parts, a_client("odd", 9)))
    with pytest.raises(WorkloadError, match=r"no union: S part 0 \(2 .*\), odd \(9 "):
        many.pooled()


def test_union_keeps_graphs_and_spectra() -> None:
    one, two = path_graphs([2, 1], [0, 1], 2), path_graphs([3], [1], 2)
    both = union([one, two])
    assert both.sizes.tolist() == [2, 1, 3]
    assert both.edges.tolist() == [[0, 0, 1], [1, 1, 2]]
    assert both.edge_offsets.tolist() == [0, 1, 1, 3]
    assert both.labels.tolist() == [0, 1, 1]
    spectral = [
        replace(
            graphs,
            eigenvalues=np.ones(len(graphs.features), np.float32),
            eigenvectors=np.ones(int((graphs.sizes**2).sum()), np.float32),
        )
        for graphs in (one, two)
    ]
    assert union(spectral).vector_offsets[-1] == len(union(spectral).eigenvectors) == 14
    assert not both.has_spectra


def test_prepare_computes_what_is_missing(
    mixed: GraphFederation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    labels: list[str] = []

    def noted(function: Callable[[Any], Any], items: Any, label: str) -> list[Any]:
        labels.append(label)
        return sequential(function, items, label)

    assert mixed.prepare(False, noted) is mixed
    prepared = locked(mixed).prepare(True, noted)
    assert len(labels) == 1
    for before, after in zip(mixed.parts, prepared.parts, strict=True):
        assert after.graphs.has_spectra
        assert np.array_equal(after.graphs.features, before.graphs.features)
        assert np.array_equal(after.train, before.train)
        # P2, normalized: 0 and 2; a single node: 0.
        assert np.allclose(after.graphs.eigenvalues[:3], [0, 0, 2], atol=1e-6)
    other = replace(mixed, laplacian="combinatorial").prepare(True, noted)
    # P3, combinatorial: 0, 1 and 3.
    assert np.allclose(other.parts[1].graphs.eigenvalues[3:6], [0, 1, 3], atol=1e-6)
    assert prepared.client(0, "cpu").train is not None


def test_manifest_counts_and_draws(mixed: GraphFederation, tmp_path: Path) -> None:
    table = mixed.manifest()
    assert list(table.columns) == [
        "client", "name", "samples", "test_samples", "class_0", "class_1", "class_2", "filled",
        "validation_samples", "nodes_mean", "edges_mean",
    ]  # fmt: skip
    assert table[["class_0", "class_1", "class_2"]].to_numpy().tolist() == [[2, 1, 0], [2, 0, 1]]
    assert table["samples"].tolist() == [3, 3]
    assert table["validation_samples"].tolist() == [1, 1]
    assert table["nodes_mean"].tolist() == [3.5, 3.5]
    assert table["edges_mean"].tolist() == [2.5, 2.5]
    assert table.attrs == {"workload": "mixed", "synthetic": False, "class_names": ["0", "1", "2"]}
    draw_partition(table, tmp_path / "split.png", "mixed")
    assert (tmp_path / "split.png").stat().st_size > 5000
