"""Files of graphs whose nodes have classes: read as PyTorch Geometric reads them, refused where they are damaged."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from raysim.workloads.errors import WorkloadError
from raysim.workloads.graphs import node_graph
from raysim.workloads.graphs.node_files import read_nodes
from raysim.workloads.graphs.node_graph import TEST, TRAIN, UNUSED, VALIDATION, NodeGraph
from raysim.workloads.graphs.nodes import Nodes
from tests.workloads.conftest import seeded as stream

X = np.array([[0, 2], [1, 0], [0, 0], [3, 4], [5, 0], [0, 7]], np.float32)
CLASSES = np.eye(3, dtype=np.int32)[[0, 1, 2, 0, 1, 2]]
CORA = Path(os.environ.get("RAYSIM_DATA", "")) / "planetoid" / "Cora"


def planetoid(folder: Path, **changes: Any) -> Path:
    """Nodes 0 to 3, of which 2 are for training, and the test nodes 6 and 4; node 5 is missing, as in CiteSeer."""
    graph = {0: [1, 0, 1], 1: [0], 3: [6], 6: [3, 4], 4: [6]}
    parts = {"x": X[:2], "allx": X[:4], "tx": X[4:], "y": CLASSES[:2], "ally": CLASSES[:4], "ty": CLASSES[4:]}
    held = {name: scipy.sparse.csr_matrix(part) if "x" in name else part for name, part in parts.items()}
    for name, part in (held | {"graph": graph} | changes).items():
        (folder / f"ind.toy.{name}").write_bytes(part if isinstance(part, bytes) else pickle.dumps(part))
    (folder / "ind.toy.test.index").write_text(changes.get("index", "6\n4\n"))
    return folder


def amazon(folder: Path, **changes: Any) -> Path:
    adjacency = scipy.sparse.csr_matrix(([1.0, 1, 1, 1], ([0, 1, 2, 3], [1, 0, 2, 1])), shape=(6, 6))
    arrays: dict[str, Any] = {"labels": np.array([0, 1, 2, 0, 1, 2]), "class_names": np.array(["a", "b", "c"])}
    for name, matrix in (("adj", adjacency), ("attr", scipy.sparse.csr_matrix(X))):
        for part in ("data", "indices", "indptr", "shape"):
            arrays[f"{name}_{part}"] = getattr(matrix, part)
    np.savez(folder / "toy.npz", **{name: held for name, held in (arrays | changes).items() if held is not None})
    return folder


def heterophilous(folder: Path, **changes: Any) -> Path:
    masks = {f"{part}_masks": np.eye(6, dtype=np.bool_)[[row, 5]] for row, part in enumerate(("train", "val", "test"))}
    arrays: dict[str, Any] = {
        "node_features": X,
        "node_labels": np.arange(6) % 2,
        "edges": np.array([[0, 1], [5, 2], [2, 2]]),
    }
    np.savez(folder / "toy.npz", **(arrays | masks | changes))
    return folder


def test_planetoid_by_hand(tmp_path: Path) -> None:
    graph = read_nodes(planetoid(tmp_path))
    assert graph.name == "toy" and graph.class_names == ("0", "1", "2")
    assert graph.features.tolist() == [*X[:4].tolist(), [0, 7], [0, 0], [5, 0]]
    assert graph.labels.tolist() == [0, 1, 2, 0, 2, 0, 1]
    assert graph.edges.T.tolist() == [[0, 1], [3, 6], [4, 6]]
    assert graph.roles is not None
    assert graph.roles.tolist() == [TRAIN, TRAIN, VALIDATION, VALIDATION, TEST, UNUSED, TEST]


def test_amazon_by_hand(tmp_path: Path) -> None:
    graph = read_nodes(amazon(tmp_path))
    assert graph.features.tolist() == (X > 0).tolist() and graph.class_names == ("a", "b", "c")
    assert graph.edges.T.tolist() == [[0, 1], [1, 3]] and graph.roles is None


def test_heterophilous_by_hand(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    heterophilous(tmp_path / "raw")
    graph = read_nodes(tmp_path)
    assert graph.edges.T.tolist() == [[0, 1], [2, 5]] and np.array_equal(graph.features, X)
    assert graph.roles is not None and graph.roles.tolist() == [TRAIN, VALIDATION, TEST, 0, 0, 0]


def same(ours: NodeGraph, theirs: Any) -> None:
    assert np.array_equal(ours.features, theirs.x) and np.array_equal(ours.labels, theirs.y)
    first, second = theirs.edge_index.numpy()
    kept = theirs.edge_index.numpy()[:, first < second]
    assert np.array_equal(ours.edges, kept[:, np.lexsort((kept[1], kept[0]))])
    assert 2 * ours.edges.shape[1] == len(first)


@pytest.mark.skipif("RAYSIM_DATA" not in os.environ, reason="RAYSIM_DATA is not set")
def test_cora_is_what_pyg_reads() -> None:
    from torch_geometric.io import read_planetoid_data

    ours, theirs = read_nodes(CORA), read_planetoid_data(str(CORA / "raw"), "cora")
    same(ours, theirs)
    assert ours.roles is not None and np.bincount(ours.roles).tolist() == [1068, 140, 500, 1000]
    for role, mask in ((TRAIN, theirs.train_mask), (VALIDATION, theirs.val_mask), (TEST, theirs.test_mask)):
        assert np.array_equal(ours.roles == role, mask)


def test_amazon_is_what_pyg_reads(tmp_path: Path) -> None:
    from torch_geometric.io import read_npz

    same(read_nodes(amazon(tmp_path)), read_npz(str(tmp_path / "toy.npz")))


class Bomb:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.marker),)


def beyond() -> Any:
    """A sparse matrix that SciPy would write beyond its end for."""
    matrix = scipy.sparse.csr_matrix(X[:4])
    matrix.indices = np.array([1, 0, 0, 10**6], matrix.indices.dtype)
    return matrix


Write = Callable[..., Path]
DAMAGED: dict[str, tuple[Write, dict[str, Any], str]] = {
    "not a pickle": (planetoid, {"allx": b"text"}, r"ind\.toy\.allx: "),
    "indices": (planetoid, {"allx": beyond()}, "indices has values outside 0 to 1"),
    "other width": (planetoid, {"tx": X[4:, :1]}, r"tx is \(2, 1\)"),
    "more nodes": (planetoid, {"tx": X}, r"tx is \(6, 2\) and ty \(2, 3\) for 2 nodes"),
    "text in arrays": (planetoid, {"ally": np.array(["a", "b", "c", "d"])}, "ally is no array of numbers"),
    "test twice": (planetoid, {"index": "4\n4\n"}, "test.index must number each test node once, from 4"),
    "test is huge": (planetoid, {"index": f"{10**25}\n"}, "it is no graph of nodes"),
    "no width": (
        planetoid,
        {"allx": X[:4, :0], "tx": X[4:, :0], "index": f"4\n{10**15}\n"},
        "at most 4 GB are allowed",
    ),
    "test is text": (planetoid, {"index": "four\n"}, "invalid literal"),
    "neighbors": (planetoid, {"graph": {0: [99]}}, "an edge names node 99, and there are nodes 0 to 6"),
    "no dictionary": (planetoid, {"graph": [1, 2]}, "graph is no dictionary of lists"),
    "no numbers": (planetoid, {"graph": {0: ["a"]}}, "graph has nodes that are no whole numbers"),
    "nan": (planetoid, {"allx": np.full((4, 2), np.nan)}, "no finite numbers"),
    "endless": (amazon, {"attr_shape": np.array([np.inf, 2])}, "cannot convert float infinity"),
    "no labels": (amazon, {"labels": None}, r"adj_indptr, labels \(as Amazon and Coauthor\), and it has class_names, "),
    "rows": (amazon, {"attr_indptr": np.array([0, 9, 1, 1, 1, 1, 1])}, "do not follow one another"),
    "objects": (amazon, {"labels": np.array([{}] * 6)}, "it holds Python objects"),
    "columns": (amazon, {"adj_indices": np.array([1, 0, 2, -1])}, "an edge names node -1"),
    "negative class": (amazon, {"labels": np.array([0, 1, 2, 0, 1, -2])}, "not a class from 0 to 9999 each"),
    "class names": (amazon, {"class_names": np.array(["a"])}, "3 classes and 1 names"),
    "masks": (heterophilous, {"val_masks": np.ones((1, 5), np.bool_)}, r"val_masks is bool \(1, 5\)"),
    "edges": (heterophilous, {"edges": np.ones((4, 3), np.int64)}, r"edges are int64 \(4, 3\)"),
    "edges as PyG has them": (
        heterophilous,
        {"edges": np.ones((2, 9), np.int64)},
        r"not whole numbers \[edges, 2\]: edge",
    ),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_files_are_one_sentence(kind: str, tmp_path: Path) -> None:
    write, changes, words = DAMAGED[kind]
    with pytest.raises(WorkloadError, match=words):
        read_nodes(write(tmp_path, **changes))


def test_a_pickle_runs_nothing(tmp_path: Path) -> None:
    for part in ("allx", "ty", "graph"):
        with pytest.raises(WorkloadError, match=rf"ind\.toy\.{part}: it asks for .*mkdir"):
            read_nodes(planetoid(tmp_path, **{part: Bomb(tmp_path / "made")}))
    assert not (tmp_path / "made").exists()


def test_memory_is_not_taken_for_what_is_only_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wide: Any = scipy.sparse.csr_matrix(X[:4])
    wide._shape = (4, 10**9)
    planetoid(tmp_path, allx=wide)
    monkeypatch.setattr(np, "zeros", lambda *_: pytest.fail("memory was taken"))
    with pytest.raises(WorkloadError, match="take 28 GB as float32, and at most 4 GB are allowed"):
        read_nodes(tmp_path)
    assert node_graph.LARGEST_FEATURES == 4e9


def test_a_sixth_set_in_the_heterophilous_layout_has_its_own_name(tmp_path: Path) -> None:
    heterophilous(tmp_path)
    (tmp_path / "toy.npz").rename(tmp_path / "sixth.npz")
    federation = Nodes(path=str(tmp_path / "sixth.npz"), clients=1, normalize=False).load(stream)
    assert federation.name == "sixth" and "sixth" in federation.graph.name
    assert federation.samples(0) == 1


def test_an_npz_file_of_something_else_is_told_what_is_expected(tmp_path: Path) -> None:
    np.savez(tmp_path / "pictures.npz", train_images=np.zeros((2, 4, 4)), train_labels=np.zeros(2))
    words = r"expected are the arrays node_features, .* attr_shape, .*, and it has train_images, train_labels$"
    with pytest.raises(WorkloadError, match=words) as error:
        read_nodes(tmp_path / "pictures.npz")
    assert "Copy it again" not in str(error.value)


def test_no_graph_or_two(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="has 0 graphs, and one is needed"):
        read_nodes(tmp_path)
    with pytest.raises(WorkloadError, match="no file or folder"):
        read_nodes(tmp_path / "nowhere")
    amazon(planetoid(tmp_path))
    with pytest.raises(WorkloadError, match="has 2 graphs"):
        read_nodes(tmp_path)
    (tmp_path / "ind.toy.ty").unlink()
    (tmp_path / "toy.npz").unlink()
    with pytest.raises(WorkloadError, match=r"there is no .*ind\.toy\.ty"):
        read_nodes(tmp_path)


def test_the_folder_above_a_set_of_pygs_is_told_where_the_set_is(tmp_path: Path) -> None:
    (tmp_path / "root" / "Toy" / "raw").mkdir(parents=True)
    planetoid(tmp_path / "root" / "Toy" / "raw")
    with pytest.raises(WorkloadError, match=r"of one set; there is one in .*root/Toy$"):
        read_nodes(tmp_path / "root")
