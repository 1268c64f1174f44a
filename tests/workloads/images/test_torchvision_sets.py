from __future__ import annotations

import gzip
import hashlib
import io
import os
import pickle
import struct
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torchvision import datasets

from raysim.config.command_line import parse
from raysim.workloads.data_sets.catalog import BY_NAME
from raysim.workloads.errors import WorkloadError
from raysim.workloads.images.torchvision_sets import (
    Cifar10,
    Cifar10Full,
    Cifar100,
    FashionMnist,
    Mnist,
    TorchvisionOptions,
)
from tests.http_server import served
from tests.workloads.conftest import Stream

IMAGES = np.random.default_rng(0).integers(256, size=(50, 28, 28), dtype=np.uint8)
LABELS = (np.arange(50) % 10).astype(np.uint8)
SHARED = os.environ.get("RAYSIM_DATA")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path, list[str]]]:
    """(address, served folder, requests so far)."""
    with served(tmp_path / "served") as (address, asked):
        yield f"{address}/", tmp_path / "served", asked


@pytest.fixture(autouse=True)
def no_shared_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAYSIM_DATA", raising=False)


def idx(values: np.ndarray) -> bytes:
    """MNIST's own format: magic number, sizes, bytes."""
    return struct.pack(f">I{values.ndim}I", 0x0800 + values.ndim, *values.shape) + values.tobytes()


def serve_mnist(dataset: Any, server: tuple[str, Path, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    address, folder, _ = server
    resources = []
    for part, count in (("train", 50), ("t10k", 20)):
        for kind, values in (("images-idx3", IMAGES[:count]), ("labels-idx1", LABELS[:count])):
            name = f"{part}-{kind}-ubyte.gz"
            content = gzip.compress(idx(values))
            (folder / name).write_bytes(content)
            resources.append((name, hashlib.md5(content).hexdigest()))
    monkeypatch.setattr(dataset, "mirrors", [address])
    monkeypatch.setattr(dataset, "resources", resources)


@pytest.mark.parametrize(("options", "dataset"), [(Mnist, datasets.MNIST), (FashionMnist, datasets.FashionMNIST)])
def test_download_with_checksum_then_offline(
    options: Any,
    dataset: Any,
    server: tuple[str, Path, list[str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    stream: Stream,
) -> None:
    serve_mnist(dataset, server, monkeypatch)
    federation = options(clients=2, path=str(tmp_path / "data"), download=True).load(stream)
    assert np.array_equal(federation.inputs[..., 0], IMAGES)
    assert np.array_equal(federation.labels, LABELS)
    assert federation.global_test_size == 20
    assert len(federation.class_names) == 10
    assert federation.input_spec(0).input_shape == (1, 28, 28)
    asked = len(server[2])
    assert len({request for request in server[2] if request.startswith("GET")}) == 4
    again = options(clients=2, path=str(tmp_path / "data")).load(stream)
    assert np.array_equal(again.inputs, federation.inputs)
    assert len(server[2]) == asked  # nothing is fetched a second time


@pytest.fixture
def mnist(server: tuple[str, Path, list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Mnist:
    """The options of a first run, which downloads from the server."""
    serve_mnist(datasets.MNIST, server, monkeypatch)
    return Mnist(clients=2, path=str(tmp_path / "data"), download=True)


def test_wrong_checksum_is_refused(server: tuple[str, Path, list[str]], mnist: Mnist, stream: Stream) -> None:
    (server[1] / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(IMAGES[::-1].copy())))
    with pytest.raises(WorkloadError, match=r"mnist cannot be downloaded .*corrupted.*wrong checksum.*Three ways"):
        mnist.load(stream)


def test_server_without_the_file(server: tuple[str, Path, list[str]], mnist: Mnist, stream: Stream) -> None:
    (server[1] / "t10k-images-idx3-ubyte.gz").unlink()
    with pytest.raises(WorkloadError, match=r"Error downloading t10k-images.*404"):
        mnist.load(stream)


def test_nothing_is_fetched_unless_asked(server: tuple[str, Path, list[str]], mnist: Mnist, stream: Stream) -> None:
    message = (
        r"mnist\.npz into \$RAYSIM_DATA/images \(RAYSIM_DATA is not set\), as python -m raysim\.data fetch mnist does; "
        r"--path FOLDER with .*; --download true with a network connection \(in a study's file workload\.download: true"
    )
    with pytest.raises(WorkloadError, match=message):
        replace(mnist, download=False).load(stream)
    assert server[2] == []
    with pytest.raises(
        WorkloadError, match=r"put cifar10-full\.npz into [^;]*is not set\); --path"
    ):  # no set of fetch's
        Cifar10Full(path=mnist.path).load(stream)


@pytest.mark.parametrize("options", [Cifar10, Cifar10Full, Cifar100, FashionMnist, Mnist])
def test_a_set_says_whether_it_can_be_fetched(options: type[TorchvisionOptions]) -> None:
    assert options.fetched == bool(options.name in BY_NAME and BY_NAME[options.name].files)


@pytest.mark.parametrize(
    ("workload", "words"),
    [("fashion-mnist", "--path x --download true"), ("tudataset", "--path x --download true"), ("ogb", "--path x")],
)
def test_what_messages_on_missing_data_advise_can_be_typed(workload: str, words: str) -> None:
    config: Any = parse(["--workload", workload, *words.split()]).config
    assert config.workload.path == "x" and getattr(config.workload, "download", True)


def test_truncated_files_on_disk(mnist: Mnist, tmp_path: Path, stream: Stream) -> None:
    mnist.load(stream)
    raw = tmp_path / "data" / "MNIST" / "raw" / "train-images-idx3-ubyte"
    for length in (1000, 2, 0):
        raw.write_bytes(raw.read_bytes()[:length])
        with pytest.raises(WorkloadError, match="mnist is not to be had from"):
            replace(mnist, download=False).load(stream)


def test_cifar10_archive(
    server: tuple[str, Path, list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stream: Stream
) -> None:
    address, folder, _ = server
    pixels = np.random.default_rng(1).integers(256, size=(40, 3072), dtype=np.uint8)
    members = {
        name: pickle.dumps(content)
        for name, content in {
            "data_batch_1": {"data": pixels, "labels": [number % 10 for number in range(40)]},
            "test_batch": {"data": pixels[:10], "labels": list(range(10))},
            "batches.meta": {"label_names": list(Cifar10.class_names)},
        }.items()
    }
    with tarfile.open(folder / "tiny.tar.gz", "w:gz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    sums = {name: hashlib.md5(content).hexdigest() for name, content in members.items()}
    whole = hashlib.md5((folder / "tiny.tar.gz").read_bytes()).hexdigest()
    monkeypatch.setattr(datasets.CIFAR10, "url", f"{address}tiny.tar.gz")
    monkeypatch.setattr(datasets.CIFAR10, "filename", "tiny.tar.gz")
    monkeypatch.setattr(datasets.CIFAR10, "tgz_md5", whole)
    monkeypatch.setattr(datasets.CIFAR10, "train_list", [["data_batch_1", sums["data_batch_1"]]])
    monkeypatch.setattr(datasets.CIFAR10, "test_list", [["test_batch", sums["test_batch"]]])
    meta = {"filename": "batches.meta", "key": "label_names", "md5": sums["batches.meta"]}
    monkeypatch.setattr(datasets.CIFAR10, "meta", meta)
    federation = Cifar10(clients=2, path=str(tmp_path / "data"), download=True).load(stream)
    assert np.array_equal(federation.inputs, pixels.reshape(40, 3, 32, 32).transpose(0, 2, 3, 1))
    assert federation.augment.padding == 4
    # A changed batch is refused before it is unpickled: torchvision verifies its checksum first.
    (tmp_path / "data" / "cifar-10-batches-py" / "data_batch_1").write_bytes(pickle.dumps(print))
    with pytest.raises(WorkloadError, match=r"cifar10 is not to be had from .*corrupted"):
        Cifar10(clients=2, path=str(tmp_path / "data")).load(stream)


def test_npz_in_the_shared_folder_comes_first(put_images: Callable[..., Path], stream: Stream) -> None:
    file = put_images("fashion-mnist", IMAGES, LABELS, tests=9)
    federation = FashionMnist(clients=3).load(stream)
    assert federation.name == "fashion-mnist"
    assert federation.class_names[9] == "ankle boot"
    assert federation.global_test_size == 9
    file.write_bytes(b"")
    with pytest.raises(WorkloadError, match=r"fashion-mnist\.npz is empty"):
        FashionMnist(clients=3).load(stream)
    # A folder that is named holds the data, and no other.
    with pytest.raises(WorkloadError, match=r"fashion-mnist is not to be had from nowhere"):
        FashionMnist(clients=3, path="nowhere").load(stream)


@pytest.mark.skipif(not SHARED, reason="RAYSIM_DATA is not set")
def test_real_cifar10_subset(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAYSIM_DATA", str(SHARED))
    federation = Cifar10().load(stream)
    assert len(federation.labels) == 10_000
    assert np.bincount(federation.labels).tolist() == [1000] * 10
    assert federation.global_test_size == 2_000
    assert np.allclose(federation.mean, [0.4914, 0.4822, 0.4465], atol=0.01)  # the published means of all 50,000
    assert np.allclose(federation.deviation, [0.2470, 0.2435, 0.2616], atol=0.01)
    assert sum(federation.samples(client) + federation.test_samples(client) for client in range(10)) == 10_000


def test_cifar100_has_five_classes_in_each_superclass() -> None:
    assert len(set(Cifar100.class_names)) == 100
    assert np.bincount(Cifar100.superclasses).tolist() == [5] * 20
    above = dict(zip(Cifar100.class_names, Cifar100.superclasses, strict=True))
    # Numbers of the published files' coarse labels.
    published = {"apple": 4, "aquarium_fish": 1, "baby": 14, "beaver": 0, "worm": 13, "streetcar": 19}
    assert {name: above[name] for name in published} == published


def test_cifar100_is_split_by_pachinko_from_a_file(put_images: Callable[..., Path], stream: Stream) -> None:
    put_images("cifar100", np.zeros((400, 32, 32, 3), np.uint8), np.repeat(np.arange(100), 4), tests=9)
    federation = Cifar100(partition="pachinko", clients=20, alpha=0.01, min_samples=5).load(stream)
    table = federation.manifest()
    assert (table["samples"] + table["test_samples"]).tolist() == [20] * 20
    own = np.bincount(np.array(Cifar100.superclasses)[federation.labels[federation.train.of(0)]], minlength=20)
    assert own.max() > 0.8 * own.sum()


def test_all_of_cifar10_may_lie_beside_a_part_of_it(put_images: Callable[..., Path], stream: Stream) -> None:
    for name, count in (("cifar10", 100), ("cifar10-full", 200)):
        put_images(name, np.zeros((count, 32, 32, 3), np.uint8), np.arange(count) % 10, tests=9)
    assert [len(options(clients=2).load(stream).labels) for options in (Cifar10, Cifar10Full)] == [100, 200]
