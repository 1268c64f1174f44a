from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import has_one_class
from raysim.workloads.images.npz import Npz
from tests.workloads.conftest import Stream

Save = Callable[[dict[str, Any]], Path]


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arrays: dict[str, Any]) -> Path:
    """A $RAYSIM_DATA with the file images/shared.npz."""
    (tmp_path / "data" / "images").mkdir(parents=True)
    np.savez(tmp_path / "data" / "images" / "shared.npz", **arrays)
    monkeypatch.setenv("RAYSIM_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.mark.parametrize("path", ["shared", "shared.npz"])
def test_bare_names_are_found_in_the_shared_folder(shared: Path, stream: Stream, path: str) -> None:
    federation = Npz(path=path, clients=2).load(stream)
    assert federation.name == "shared"
    assert federation.clients == 2
    assert not federation.synthetic


def test_path_missing_says_where_it_looked(
    shared: Path, stream: Stream, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(WorkloadError, match="needs the option path"):
        Npz().load(stream)
    with pytest.raises(WorkloadError, match=r"no \.npz file other; looked in: .*\.npz files there: shared\.npz"):
        Npz(path="other").load(stream)
    with pytest.raises(WorkloadError, match=r"looked in: .*nowhere \(no such folder\)$"):
        Npz(path=str(tmp_path / "nowhere" / "set.npz")).load(stream)
    monkeypatch.setenv("RAYSIM_DATA", str(tmp_path / "gone"))
    with pytest.raises(WorkloadError, match=r"looked in: .*; .*gone/images \(no such folder\)$"):
        Npz(path="other").load(stream)
    monkeypatch.delenv("RAYSIM_DATA")
    with pytest.raises(WorkloadError, match="RAYSIM_DATA is not set, it would be searched too"):
        Npz(path="other").load(stream)


def test_sites_are_clients_with_their_own_tests(arrays: dict[str, Any], save: Save, stream: Stream) -> None:
    federation = Npz(path=str(save(arrays)), partition="sites").load(stream)
    table = federation.manifest()
    assert table["name"].tolist() == ["east", "north", "south"]
    assert table["samples"].tolist() == [5, 20, 15]  # nothing is cut off for tests
    assert table["test_samples"].tolist() == [0, 4, 6]  # west has no training data, east no tests
    assert federation.global_test_size == 12
    south = federation.client(2, "cpu")
    assert south.name == "south"
    (batch,) = south.test.batches(100)
    assert batch.y.tolist() == arrays["test_labels"][:6].tolist()
    pooled = federation.pooled()
    assert (pooled.samples(0), pooled.test_samples(0)) == (40, 10)


def test_sites_that_are_no_clients_are_told_of(arrays: dict[str, Any], save: Save, stream: Stream) -> None:
    options = Npz(path=str(save(arrays)), clients=2, min_samples=2)
    (note,) = options.load(stream).notes
    assert "its sites are no clients" in note and "workload.partition sites makes clients of them" in note
    assert [replace(options, partition=name).load(stream).notes for name in ("auto", "sites")] == [(), ()]
    del arrays["train_sites"]
    assert replace(options, path=str(save(arrays))).load(stream).notes == ()


def test_sites_without_test_sites_are_cut(arrays: dict[str, Any], save: Save, stream: Stream) -> None:
    del arrays["test_sites"]
    table = Npz(path=str(save(arrays)), partition="sites").load(stream).manifest()
    assert table["samples"].tolist() == [4, 16, 12]
    assert table["test_samples"].tolist() == [1, 4, 3]


@pytest.mark.parametrize("part", ["train", "test"])
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a\x07b", r"client 'a\\x07b' has a name with signs"),
        ("s" * 300, "client 's{40}'… has a name of 300 characters"),
        ("", "client '' has an empty name"),
        ("\ud800", r"client '\\ud800' has a name with signs"),
        (b"\xff", "a name is not UTF-8 text"),
    ],
)
def test_sites_whose_names_cannot_stand_in_tables(
    part: str, name: str | bytes, reason: str, arrays: dict[str, Any], save: Save, stream: Stream
) -> None:
    sites = arrays[f"{part}_sites"]
    arrays[f"{part}_sites"] = np.array([name, *(sites[1:].astype("S") if isinstance(name, bytes) else sites[1:])])
    with pytest.raises(WorkloadError, match=f"{part}_sites: {reason}"):
        Npz(path=str(save(arrays)), partition="sites").load(stream)


def test_sites_that_are_absent(arrays: dict[str, Any], save: Save, stream: Stream) -> None:
    del arrays["train_sites"]
    with pytest.raises(WorkloadError, match=r"tiny: partition=sites needs .* train_sites .*there is none"):
        Npz(path=str(save(arrays)), partition="sites").load(stream)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("table.csv", b"label,pixel0\n3,0.5\n", "is a table as text .CSV., no .npz file"),
        ("table.npz", b"label,pixel0\n3,0.5\n", "is a table as text .CSV., no .npz file"),
        ("table.parquet", b"PAR1\x15\x04", "is a Parquet table, no .npz file.*numpy.savez"),
        ("one.npy", b"\x93NUMPY\x01\x00", "is a single array .*no .npz file"),
    ],
)
def test_another_kind_of_file_is_called_what_it_is(
    tmp_path: Path, stream: Stream, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(WorkloadError, match=message):
        Npz(path=str(tmp_path / name)).load(stream)


def test_a_folder_is_said_to_be_one(tmp_path: Path, stream: Stream, arrays: dict[str, Any]) -> None:
    (tmp_path / "sets").mkdir()
    np.savez(tmp_path / "sets" / "mine.npz", **arrays)
    with pytest.raises(WorkloadError, match=r"sets is a folder, and workload npz reads one file; .* there: mine\.npz"):
        Npz(path=str(tmp_path / "sets")).load(stream)


@pytest.mark.parametrize("classes", [0, 2])
def test_a_set_with_one_class_is_seen(tmp_path: Path, stream: Stream, arrays: dict[str, Any], classes: int) -> None:
    for part in ("train", "test"):
        arrays[f"{part}_labels"] = np.zeros_like(arrays[f"{part}_labels"])
    np.savez(tmp_path / "one.npz", **arrays)
    assert has_one_class(Npz(path=str(tmp_path / "one.npz"), clients=2, partition="iid", classes=classes).load(stream))


def test_a_set_with_two_classes_is_none_with_one(shared: Path, stream: Stream) -> None:
    assert not has_one_class(Npz(path="shared", clients=2).load(stream))


def test_superclasses_of_a_file_serve_pachinko(arrays: dict[str, Any], save: Save, stream: Stream) -> None:
    path = str(save(arrays | {"superclasses": np.array([0, 0, 1, 1])}))
    federation = Npz(path=path, partition="pachinko", clients=4, min_samples=2).load(stream)
    assert [federation.samples(client) for client in range(4)] == [8] * 4
    for wrong in (np.array([0, 0, 1]), np.array([0.5, 0, 1, 1])):
        with pytest.raises(WorkloadError, match=r"superclasses is .*expected one whole number for each of the 4"):
            Npz(path=str(save(arrays | {"superclasses": wrong}))).load(stream)
    with pytest.raises(WorkloadError, match="partition=pachinko needs data whose classes have superclasses"):
        Npz(path=str(save(arrays)), partition="pachinko").load(stream)


def test_quantiles_of_images_go_by_brightness(arrays: dict[str, Any], save: Save, stream: Stream) -> None:
    arrays["train_images"][:] = np.arange(40, dtype=np.uint8)[::-1, None, None, None]
    options = Npz(path=str(save(arrays)), partition="quantile", clients=4, min_samples=2, local_test="global")
    federation = options.load(stream)
    assert [federation.train.of(client).tolist() for client in range(4)] == [
        list(range(30 - 10 * client, 40 - 10 * client)) for client in range(4)
    ]
    sketch = options.sketch(stream)
    assert sketch is not None and [sketch.samples(client) for client in range(4)] == [10] * 4
