from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raysim.workloads.errors import WorkloadError
from raysim.workloads.graphs import set_files
from raysim.workloads.graphs.graph_set import Graphs
from raysim.workloads.graphs.tu_reader import download, files_in, find, read_graphs
from raysim.workloads.graphs.tudataset import TuDataset
from tests.http_server import served
from tests.workloads.conftest import Stream
from tests.workloads.graphs.tu_texts import SMALL, zipped

SHARED = Path(os.environ["RAYSIM_DATA"]) / "tudataset" if os.environ.get("RAYSIM_DATA") else None
# Graphs, classes, nodes, undirected edges, width of the features.
PUBLISHED: Mapping[str, tuple[int, int, int, int, int]] = {
    "MUTAG": (188, 2, 3371, 3721, 7),
    "PTC_MR": (344, 2, 4915, 5054, 18),
    "BZR": (405, 2, 14479, 15535, 53),
    "PROTEINS": (1113, 2, 43471, 81044, 3),
    "IMDB-BINARY": (1000, 2, 19773, 96531, 136),
    "IMDB-MULTI": (1500, 3, 19502, 98903, 89),
    "Letter-med": (2250, 15, 10518, 7213, 2),
}
real = pytest.mark.skipif(SHARED is None, reason="RAYSIM_DATA is not set")


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., tuple[Graphs, tuple[str, ...]]]:
    """The reader of a set's texts, of which None are left out."""

    def call(texts: Mapping[str, str | None], name: str = "S") -> tuple[Graphs, tuple[str, ...]]:
        there = {part: text for part, text in texts.items() if text is not None}
        return read_graphs(files_in(zipped(tmp_path, name, there), name))

    return call


def test_a_set_by_hand(read: Any) -> None:
    graphs, class_names = read(SMALL)
    assert class_names == ("-1", "5")
    assert graphs.labels.tolist() == [1, 0, 1]
    assert graphs.sizes.tolist() == [3, 1, 3]
    assert graphs.edge_counts.tolist() == [3, 0, 1]
    assert graphs.edges.tolist() == [[0, 0, 1, 0], [0, 1, 2, 1]]  # the loop stays, 1-2 is there once
    assert graphs.features.argmax(axis=1).tolist() == [0, 2, 0, 5, 5, 0, 2]  # 3, 5, 8 less 3
    assert graphs.features.shape == (7, 6)
    assert graphs.features.sum() == 7
    assert graphs.features.dtype == np.float32
    for name in ("node_offsets", "edges", "edge_offsets", "labels"):
        assert getattr(graphs, name).dtype == np.int64, name


def test_several_columns_of_node_labels_are_blocks(read: Any) -> None:
    graphs, _ = read({**SMALL, "node_labels": "0,7\n1,7\n0,9\n0,8\n1,7\n1,7\n0,7\n"})
    assert graphs.features.tolist()[:3] == [[1, 0, 1, 0, 0], [0, 1, 1, 0, 0], [1, 0, 0, 0, 1]]


def test_edges_have_their_attributes_and_then_their_labels(read: Any) -> None:
    # Lines of A: 6-5, 1-1, 2-1, 1-2, 3-2, 2-3, 3-2, 5-6. Edges in order: 1-1, 1-2, 2-3 of graph 1, 5-6 of graph 3.
    attributed = {**SMALL, "edge_attributes": "".join(f"{line}.5\n" for line in range(8))}
    labels, _ = read({**attributed, "edge_labels": "4\n2\n2\n2\n4\n4\n2\n4\n"})
    assert labels.attributes[:, 0].tolist() == [[1.5, 1, 0, 0], [3.5, 1, 0, 0], [5.5, 0, 0, 1], [7.5, 0, 0, 1]]
    assert labels.attributes[:, 1].tolist() == [[1.5, 1, 0, 0], [2.5, 1, 0, 0], [4.5, 0, 0, 1], [0.5, 0, 0, 1]]
    assert read(attributed)[0].attributes[:, 0].tolist() == [[1.5], [3.5], [5.5], [7.5]]


def test_attributes_are_for_letter_sets_only(read: Any) -> None:
    letters, _ = read({**SMALL, "node_labels": None}, "Letter-x")
    assert letters.features.tolist()[:2] == [[0.5, 1.0], [1.5, -1.0]]
    others, _ = read({**SMALL, "node_labels": None})
    assert others.features.argmax(axis=1).tolist() == [2, 2, 1, 0, 1, 1, 0]  # degrees; a loop counts once
    assert others.features.shape == (7, 3)


@pytest.mark.parametrize(("name", "width"), [("IMDB-BINARY", 136), ("IMDB-MULTI", 89), ("S", 3)])
def test_width_of_one_hot_degrees(read: Any, name: str, width: int) -> None:
    graphs, _ = read({part: SMALL[part] for part in ("A", "graph_indicator", "graph_labels")}, name)
    assert graphs.features.shape == (7, width)


def test_nodes_need_not_be_in_order(read: Any) -> None:
    """The set by hand with its nodes numbered 4 1 5 2 6 3 7 instead of 1 … 7."""
    place = [4, 1, 5, 2, 6, 3, 7]
    pairs = [[int(end) for end in line.split(",")] for line in SMALL["A"].splitlines()]
    shuffled = {**SMALL, "A": "".join(f"{place[one - 1]}, {place[two - 1]}\n" for one, two in pairs)}
    for part in ("graph_indicator", "node_labels", "node_attributes"):
        lines = SMALL[part].splitlines()
        shuffled[part] = "".join(lines[place.index(node)] + "\n" for node in range(1, 8))
    assert shuffled["graph_indicator"] == "1\n2\n3\n1\n1\n3\n3\n"
    graphs, _ = read(shuffled)
    assert graphs.sizes.tolist() == [3, 1, 3]
    assert graphs.edge_counts.tolist() == [3, 0, 1]
    assert sorted(graphs.features.argmax(axis=1).tolist()) == [0, 0, 0, 2, 2, 5, 5]
    loops = graphs.edges[:, graphs.edges[0] == graphs.edges[1]]
    assert loops.shape == (2, 1)
    degrees, labels = graphs.degrees(), graphs.features.argmax(axis=1)
    assert degrees[loops[0, 0]] == 2 and labels[loops[0, 0]] == 0


def test_no_edges_at_all_and_no_last_newline(read: Any) -> None:
    graphs, _ = read({"A": "", "graph_indicator": "1\n2\n2", "graph_labels": "0\n1"})
    assert graphs.edges.shape == (2, 0)
    assert graphs.edge_offsets.tolist() == [0, 0, 0]
    assert graphs.features.tolist() == [[1.0], [1.0], [1.0]]


@pytest.mark.parametrize(
    ("part", "text", "message"),
    [
        ("A", None, r"S: there is no S_A\.txt in .*S\.zip\. Copy the set again"),
        ("graph_labels", None, r"no S_graph_labels\.txt .*; sets for regression have no classes"),
        ("A", "1, 8\n", r"A has an edge of node 8, graph_indicator has nodes 1 to 7"),
        ("A", "0, 1\n", r"A has an edge of node 0"),
        ("A", "3, 4\n", r"edge between nodes 3 and 4, which are in different graphs"),
        ("A", "1, x\n", r"A does not hold numbers in columns"),
        ("A", "1, 2\n1, 2, 3\n", r"A does not hold numbers in columns"),
        ("A", "1, 2, 3\n", r"A has 3 columns where 2 are expected"),
        ("graph_indicator", "1\n1\n1\n2\n3\n3\n4\n", r"graph_indicator names graphs 1 to 4, graph_labels has 3"),
        ("graph_indicator", "1\n1\n1\n1\n3\n3\n3\n", r"graph 2 has no node"),
        ("graph_indicator", "", r"graph_indicator names graphs none, graph_labels has 3"),
        ("graph_labels", "1, 0\n0, 1\n1, 1\n", r"graph_labels does not hold a number a line"),
        ("node_labels", "3\n5\n", r"node_labels has 2 lines, graph_indicator 7"),
        ("node_labels", "1.5\n" * 7, r"node_labels does not hold numbers"),
        ("edge_labels", "1\n" * 7, r"edge_labels has 7 lines, A 8"),
        ("edge_labels", "1\n" * 7 + "1000000000000\n", r"one-hot edge attributes would be 8 lines x 1000000000000"),
        ("edge_attributes", "inf\n" * 8, r"edge_attributes has values that are no finite numbers"),
    ],
)
def test_what_does_not_fit_is_named(read: Any, part: str, text: str | None, message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        read({**SMALL, part: text})


def test_letter_attributes_must_be_numbers(read: Any) -> None:
    letters = {**SMALL, "node_labels": None}
    with pytest.raises(WorkloadError, match=r"node_attributes has values that are no finite numbers"):
        read({**letters, "node_attributes": "nan, 1\n" * 7}, "Letter-x")
    with pytest.raises(WorkloadError, match=r"no Letter-x_node_attributes\.txt"):
        read({**letters, "node_attributes": None}, "Letter-x")


def test_huge_one_hot_features_are_refused(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_files, "LARGEST_FEATURES", 4 * 7 * 6 - 1)
    with pytest.raises(WorkloadError, match=r"S: one-hot node features would be 7 lines x 6 columns"):
        read(SMALL)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, list[str]]]:
    """(served folder, requests so far) of a server that PyG's TUDataset is pointed to."""
    from torch_geometric.datasets import TUDataset

    with served(tmp_path / "served") as (address, asked):
        monkeypatch.setattr(TUDataset, "url", address)
        yield tmp_path / "served", asked


def test_the_first_folder_that_has_a_set_counts(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    assert find("S", [one, two]) is None
    zipped(two, "S", SMALL)
    files = find("S", [one, two])
    assert files is not None
    assert files.place == two / "S.zip"
    assert files.read("graph_labels") == b"5\n-1\n5\n"
    assert files.read("edge_labels") is None
    for place in (one / "S", one / "S" / "raw"):
        place.mkdir(parents=True, exist_ok=True)
        assert find("S", [one, two]) != find("S", [one]) or place.name == "raw"
        (place / "S_A.txt").write_text("1, 1\n")
        files = find("S", [one, two])
        assert files is not None
        assert files.place == place
        assert files.read("A") == b"1, 1\n"
        assert files.read("graph_labels") is None


def test_download_once_then_offline(server: tuple[Path, list[str]], tmp_path: Path, stream: Stream) -> None:
    folder, asked = server
    zipped(folder, "S", SMALL)
    data = tmp_path / "data" / "sets"
    message = (
        r"no files of S in .*sets \(no such folder\)\. Put S\.zip .* there, or give --path FOLDER, .*, or --download "
    )
    message += "true with a"
    with pytest.raises(WorkloadError, match=message):
        TuDataset(sets=("S",), path=str(data)).load(stream)
    assert asked == []
    federation = TuDataset(sets=("S",), path=str(data), download=True).load(stream)
    assert asked == ["GET /S.zip"]
    assert [path.name for path in data.iterdir()] == ["S.zip"]
    again = TuDataset(sets=("S",), path=str(data), download=True).load(stream)
    assert len(asked) == 1
    assert np.array_equal(again.parts[0].graphs.features, federation.parts[0].graphs.features)
    assert np.array_equal(again.parts[0].train, federation.parts[0].train)


def test_any_number_may_download_at_once(server: tuple[Path, list[str]], tmp_path: Path) -> None:
    path = zipped(server[0], "S", {**SMALL, "edge_labels": "1\n" * 300_000})
    data = tmp_path / "data"
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: download("S", data).read("graph_labels"), range(4)))
    assert found == [b"5\n-1\n5\n"] * 4
    assert [entry.name for entry in data.iterdir()] == ["S.zip"]
    assert (data / "S.zip").read_bytes() == path.read_bytes()


def test_what_a_server_may_do_wrong(server: tuple[Path, list[str]], tmp_path: Path) -> None:
    folder, _ = server
    data = tmp_path / "data"
    with pytest.raises(
        WorkloadError, match=r"ABSENT: http://127.*ABSENT\.zip cannot be downloaded .*404.*check the name"
    ):
        download("ABSENT", data)
    (folder / "PAGE.zip").write_text("<html>sorry</html>")
    with pytest.raises(WorkloadError, match=r"PAGE: what http.* sends is no whole zip archive \(18 bytes\)"):
        download("PAGE", data)
    assert list(data.iterdir()) == []


def test_no_server_and_no_place(
    server: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkloadError, match=r"cannot be downloaded into .*file/data"):
        download("S", tmp_path / "file" / "data")
    from torch_geometric.datasets import TUDataset

    monkeypatch.setattr(TUDataset, "url", "http://127.0.0.1:9")
    with pytest.raises(WorkloadError, match=r"cannot be downloaded .*refused.*put S\.zip there by hand"):
        download("S", tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []


@real
@pytest.mark.parametrize("name", PUBLISHED)
def test_counts_are_the_published_ones(name: str) -> None:
    assert SHARED is not None
    graphs, class_names = read_graphs(files_in(SHARED / f"{name}.zip", name))
    found = (len(graphs), len(class_names), len(graphs.features), graphs.edges.shape[1], graphs.features.shape[1])
    assert found == PUBLISHED[name]
    assert (graphs.edges[0] <= graphs.edges[1]).all()
    assert (graphs.edges[1] < np.repeat(graphs.sizes, graphs.edge_counts)).all()
    if not name.startswith("Letter"):
        assert (graphs.features.sum(axis=1) == 1).all()


@real
@pytest.mark.parametrize("name", ["MUTAG", "PTC_MR", "Letter-low"])
def test_it_agrees_with_the_reader_of_pyg(name: str, tmp_path: Path) -> None:
    from torch_geometric.datasets import TUDataset

    assert SHARED is not None
    raw = tmp_path / name / "raw"
    raw.mkdir(parents=True)
    with zipfile.ZipFile(SHARED / f"{name}.zip") as archive:
        for member in archive.namelist():
            if member.endswith(".txt"):
                with archive.open(member) as source, (raw / Path(member).name).open("wb") as file:
                    shutil.copyfileobj(source, file)
    theirs = TUDataset(str(tmp_path), name, use_node_attr=name.startswith("Letter"), use_edge_attr=True)
    ours, class_names = read_graphs(files_in(raw, name))
    assert ours.edge_width == theirs.num_edge_features == {"MUTAG": 4, "PTC_MR": 4, "Letter-low": 0}[name]
    assert len(theirs) == len(ours)
    assert theirs.num_classes == len(class_names)
    for number, data in enumerate(theirs):
        nodes = slice(*ours.node_offsets[number : number + 2].tolist())
        first, second = ours.edges[:, ours.edge_offsets[number] : ours.edge_offsets[number + 1]].tolist()
        assert np.array_equal(data.x.numpy(), ours.features[nodes])
        assert {*zip(first, second, strict=True), *zip(second, first, strict=True)} == {
            tuple(pair) for pair in data.edge_index.t().tolist()
        }
        assert data.edge_index.shape[1] == 2 * len(first)
        if data.edge_attr is not None:
            pairs = zip(data.edge_index.t().tolist(), data.edge_attr.numpy(), strict=True)
            theirs_of = {tuple(ends): values for ends, values in pairs}
            own = ours.attributes[ours.edge_offsets[number] : ours.edge_offsets[number + 1]]
            for one, two, (there, back) in zip(first, second, own, strict=True):
                assert np.array_equal(there, theirs_of[one, two]) and np.array_equal(back, theirs_of[two, one])
        assert int(data.y) == ours.labels[number]
