"""Spectra on disk: found again, told apart, recomputed when damaged, and no hindrance when they cannot be kept."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raysim.workloads.graphs.graph_set import Graphs, offsets
from raysim.workloads.graphs.spectra import Laplacian, compute_spectra, default_folder, key
from tests.made_graphs import graphs_of, ring


@pytest.fixture
def rings() -> Graphs:
    """Rings of 3 and of 5 nodes."""
    return graphs_of(ring(3), ring(5))


def solved(graphs: Graphs, folder: Path | None, laplacian: Laplacian = "normalized") -> Graphs:
    return compute_spectra([graphs], laplacian, cache=folder)[0]


def same(one: Graphs, other: Graphs) -> bool:
    return np.array_equal(one.eigenvalues, other.eigenvalues) and np.array_equal(one.eigenvectors, other.eigenvectors)


@pytest.fixture
def no_eigh(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Nothing can be decomposed from here on."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("decomposed")

    monkeypatch.setattr(np.linalg, "eigh", refuse)
    return monkeypatch


def test_what_is_kept_is_found_without_a_decomposition(
    rings: Graphs, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    fresh = solved(rings, tmp_path / "new" / "folder")
    request.getfixturevalue("no_eigh")
    assert same(solved(rings, tmp_path / "new" / "folder"), fresh)
    # Features and labels do not decide on a spectrum.
    other = replace(rings, features=np.zeros((8, 4), np.float32), labels=np.ones(2, int))
    assert same(solved(other, tmp_path / "new" / "folder"), fresh)
    with pytest.raises(AssertionError, match="decomposed"):
        solved(rings, tmp_path / "new" / "folder", "combinatorial")
    with pytest.raises(AssertionError, match="decomposed"):
        solved(rings, None)


def test_the_key_tells_sizes_edges_and_laplacian_apart(rings: Graphs) -> None:
    other_edges = rings.edges.copy()
    other_edges[:, -1] = [2, 4]
    different = [
        (rings, "normalized"),
        (rings, "combinatorial"),
        (replace(rings, edges=other_edges), "normalized"),
        (replace(rings, node_offsets=offsets(np.array([2, 6]))), "normalized"),
        (replace(rings, edge_offsets=offsets(np.array([4, 4]))), "normalized"),
        (rings.subset(np.array([0])), "normalized"),
    ]
    assert len({key(graphs, laplacian) for graphs, laplacian in different}) == len(different)
    assert key(rings, "normalized") == key(replace(rings, edges=np.asfortranarray(rings.edges)), "normalized")


def test_only_missing_sets_are_computed(rings: Graphs, tmp_path: Path) -> None:
    half = rings.subset(np.array([1]))
    solved(half, tmp_path)
    counted: list[int] = []

    def count(function: Any, items: Any, label: str) -> list[Any]:
        counted.extend(len(graphs) for graphs, _ in items)
        return [function(item) for item in items]

    found = compute_spectra([half, rings], "normalized", count, tmp_path)
    assert counted == [2]
    np.testing.assert_array_equal(found[0].eigenvalues, found[1].eigenvalues[3:])


def test_damage_anywhere_in_the_file_changes_no_result(rings: Graphs, tmp_path: Path) -> None:
    fresh = solved(rings, tmp_path)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    damaged = [b"", b"not an archive", whole[: len(whole) // 2]]
    damaged += [whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :] for at in range(0, len(whole), 7)]
    for content in damaged:
        path.write_bytes(content)
        assert same(solved(rings, tmp_path), fresh)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]  # nothing half-written stays


def test_a_whole_file_of_other_shape_is_not_believed(rings: Graphs, tmp_path: Path) -> None:
    fresh = solved(rings, tmp_path)
    (path,) = tmp_path.iterdir()
    for values, vectors in ((fresh.eigenvalues[1:], fresh.eigenvectors), (fresh.eigenvalues.astype(float),) * 2):
        np.savez(path, values=values, vectors=vectors)
        assert same(solved(rings, tmp_path), fresh)
    solved(rings, tmp_path)
    with np.load(path) as archive:  # put right again
        assert archive["vectors"].dtype == np.float32


def test_many_threads_at_once(rings: Graphs, tmp_path: Path) -> None:
    expected = solved(rings, None)
    start = threading.Barrier(4)
    found: list[Graphs] = []

    def work() -> None:
        for _ in range(5):
            start.wait()
            found.append(solved(rings, tmp_path))
            start.wait()
            for file in tmp_path.glob("*.npz"):
                file.unlink(missing_ok=True)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 20 and all(same(one, expected) for one in found)
    assert not list(tmp_path.glob(".*"))


def test_a_folder_that_cannot_be_written_is_one_warning(rings: Graphs, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.warns(UserWarning, match="the spectra are not kept, because .*file.* cannot be written to") as caught:
        found = compute_spectra([rings, rings.subset(np.array([1]))], "normalized", cache=tmp_path / "file" / "below")
    assert len(caught) == 1
    assert found[0].has_spectra and found[1].has_spectra


def test_the_default_is_in_the_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rings: Graphs) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder() == tmp_path / ".cache" / "raysim" / "spectra"
    compute_spectra([rings], "normalized")
    assert len(list(default_folder().glob("*.npz"))) == 1
