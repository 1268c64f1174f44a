from __future__ import annotations

import bz2
import gzip
import io
import pickle
import struct
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raysim.workloads.data_sets.catalog import BY_NAME
from raysim.workloads.data_sets.converters import SIGNALS, convert
from raysim.workloads.errors import WorkloadError
from raysim.workloads.signals.har import Har
from tests.workloads.images.leaf import write_leaf


def idx(values: np.ndarray) -> bytes:
    return struct.pack(f">I{values.ndim}I", 0x0800 + values.ndim, *values.shape) + values.tobytes()


def mnist(folder: Path) -> None:
    pixels = np.arange(4 * 6, dtype=np.uint8).reshape(4, 2, 3)
    for part, count in (("train", 4), ("t10k", 2)):
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(pixels[:count])))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(idx(np.arange(count, dtype=np.uint8)))


def batches(name: str) -> dict[str, Any]:
    """One image in each batch, whose red is 1, green 2 and blue 3."""
    pixels = np.repeat(np.array([1, 2, 3], np.uint8), 1024)[None]
    if name == "cifar10":
        names = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
        return {batch: {b"data": pixels, b"labels": [number % 5]} for number, batch in enumerate(names)}
    return {part: {b"data": pixels, b"fine_labels": [7], b"coarse_labels": [19]} for part in ("train", "test")}


def cifar(folder: Path, name: str) -> None:
    root = {"cifar10": "cifar-10-batches-py", "cifar100": "cifar-100-python"}[name]
    with tarfile.open(folder / "archive.tar.gz", "w:gz") as archive:
        for batch, content in batches(name).items():
            packed = pickle.dumps(content, protocol=4)
            member = tarfile.TarInfo(f"{root}/{batch}")
            member.size = len(packed)
            archive.addfile(member, io.BytesIO(packed))


def usps(folder: Path) -> None:
    line = " ".join(f"{number}:{value}" for number, value in enumerate([-1.0, 1.0, 0.0] + [-1.0] * 253, start=1))
    for file, label in (("usps.bz2", 10), ("usps.t.bz2", 1)):
        (folder / file).write_bytes(bz2.compress(f"{label} {line}\n".encode()))


def har(folder: Path) -> None:
    for part, person in (("train", 1), ("test", 2)):
        (folder / part / "Inertial Signals").mkdir(parents=True)
        for number, signal in enumerate(SIGNALS):
            rows = np.full((4, 128), number + person / 10)
            np.savetxt(folder / part / "Inertial Signals" / f"{signal}_{part}.txt", rows)
        np.savetxt(folder / part / f"y_{part}.txt", [1, 2, 3, 6], fmt="%d")
        np.savetxt(folder / part / f"subject_{part}.txt", [person] * 4, fmt="%d")


def converted(name: str, source: Path, folder: Path) -> Any:
    return np.load(convert(BY_NAME[name], source, folder))


def test_idx_files_packed_or_not(tmp_path: Path) -> None:
    mnist(tmp_path)
    found = converted("mnist", tmp_path, tmp_path / "data")
    assert found["train_images"].shape == (4, 2, 3) and found["train_images"][1, 0].tolist() == [6, 7, 8]
    assert found["test_labels"].tolist() == [0, 1]


def test_cifar_batches_in_their_archive(tmp_path: Path) -> None:
    for name in ("cifar10", "cifar100"):
        (tmp_path / name).mkdir()
        cifar(tmp_path / name, name)
        found = converted(name, tmp_path / name, tmp_path / "data")
        assert found["train_images"].shape == (5 if name == "cifar10" else 1, 32, 32, 3)
        assert found["test_images"][0, 4, 5].tolist() == [1, 2, 3]
    assert found["train_labels"].tolist() == [7] and found["superclasses"][7] == 19
    with pytest.raises(WorkloadError, match=r"cifar100\.npz is there already; remove it to make it again"):
        convert(BY_NAME["cifar100"], tmp_path / "cifar100", tmp_path / "data")


def test_usps_lines(tmp_path: Path) -> None:
    usps(tmp_path)
    found = converted("usps", tmp_path, tmp_path / "data")
    assert found["train_images"].shape == (1, 16, 16) and found["train_images"][0, 0, :4].tolist() == [0, 255, 127, 0]
    assert (found["train_labels"].tolist(), found["test_labels"].tolist()) == ([9], [0])


def test_har_as_text(tmp_path: Path) -> None:
    har(tmp_path / "UCI HAR Dataset")
    found = converted("har", tmp_path / "UCI HAR Dataset", tmp_path / "data")
    assert found["train_x"].shape == (4, 128, 9) and found["train_x"][0, 0, 8] == pytest.approx(8.1)
    assert found["test_sites"].tolist() == ["person-02"] * 4 and found["train_labels"].tolist() == [0, 1, 2, 5]
    federation = Har(path=str(tmp_path / "data" / "har" / "har.npz")).load(lambda purpose: np.random.default_rng(0))
    assert federation.client_names.tolist() == ["person-01", "person-02"]


def test_leafs_files(tmp_path: Path) -> None:
    for part in ("train", "test"):
        write_leaf(tmp_path / "letters", part, {"w": ([[0.5] * 784], [61])})
        write_leaf(tmp_path / "plays", part, {"ROMEO": (["ab"], ["c"])})
    found = converted("femnist", tmp_path / "letters", tmp_path / "data")
    assert found["train_images"].shape == (1, 28, 28) and found["test_sites"].tolist() == ["w"]
    place = convert(BY_NAME["shakespeare"], tmp_path / "plays", tmp_path / "data")
    assert sorted(path.relative_to(place).as_posix() for path in place.rglob("*.json")) == [
        "test/all_data.json",
        "train/all_data.json",
    ]


def test_medmnist_is_checked(tmp_path: Path) -> None:
    pixels, labels = np.zeros((5, 4, 4, 3), np.uint8), np.arange(5)[:, None] % 2
    arrays: dict[str, Any] = {"train_images": pixels, "train_labels": labels, "test_images": pixels}
    np.savez(tmp_path / "retinamnist.npz", **arrays)
    with pytest.raises(WorkloadError, match="no array test_labels"):
        convert(BY_NAME["retinamnist"], tmp_path, tmp_path / "data")
    np.savez(tmp_path / "retinamnist.npz", **arrays, test_labels=labels)
    assert converted("retinamnist", tmp_path, tmp_path / "data")["test_labels"].shape == (5, 1)


@pytest.mark.parametrize("name", ["mnist", "cifar10", "usps", "har", "adult", "shakespeare", "femnist"])
def test_folders_of_something_else_leave_nothing(name: str, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    with pytest.raises(WorkloadError, match=rf"{name}: .*published files|no \.json files"):
        convert(BY_NAME[name], tmp_path / "source", tmp_path / "data")
    with pytest.raises(WorkloadError, match=r"there is no .*gone; give the folder of the published files"):
        convert(BY_NAME[name], tmp_path / "gone", tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_damaged_files_are_named(tmp_path: Path) -> None:
    mnist(tmp_path)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(b"\x00\x00\x09\x01")
    with pytest.raises(WorkloadError, match=r"train-labels-idx1-ubyte is not in MNIST's format.*get them from http"):
        convert(BY_NAME["mnist"], tmp_path, tmp_path / "data")
