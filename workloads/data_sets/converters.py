"""Files as they are published, made into what the workloads read; nothing in them is run."""

from __future__ import annotations

import gzip
import shutil
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.data_sets.catalog import DataSet
from raysim.workloads.errors import WorkloadError
from raysim.workloads.files.array_pickles import unpickled
from raysim.workloads.files.cache_files import whole_file, whole_folder
from raysim.workloads.images.femnist import leaf_images
from raysim.workloads.images.image_set import image_set, read_npz
from raysim.workloads.text.windows import leaf_windows

Arrays = dict[str, NDArray[Any]]
IDX = {
    "train_images": "train-images-idx3-ubyte",
    "train_labels": "train-labels-idx1-ubyte",
    "test_images": "t10k-images-idx3-ubyte",
    "test_labels": "t10k-labels-idx1-ubyte",
}
CIFAR = {
    "cifar10": ("cifar-10-batches-py", [f"data_batch_{number}" for number in range(1, 6)], ["test_batch"], b"labels"),
    "cifar100": ("cifar-100-python", ["train"], ["test"], b"fine_labels"),
}
"""Name to the folder of the batches, those of the training and of the test part, and the key of the labels."""
SIGNALS = [f"{kind}_{axis}" for kind in ("body_acc", "body_gyro", "total_acc") for axis in "xyz"]
USPS = {"train": "usps.bz2", "test": "usps.t.bz2"}


def idx_arrays(folder: Path, name: str) -> Arrays:
    """MNIST's four files, packed by gzip or not."""
    return {key: _idx(folder / file) for key, file in IDX.items()}


def cifar_arrays(source: Path, name: str) -> dict[str, NDArray[Any]]:
    """The images and labels of the batches in a folder, in its folder of that name, or in its .tar.gz."""
    folder, training, testing, key = CIFAR[name]
    arrays: dict[str, NDArray[Any]] = {}
    for part, names in (("train", training), ("test", testing)):
        batches = [_batch(source, folder, batch) for batch in names]
        pixels = np.concatenate([np.asarray(batch[b"data"], dtype=np.uint8) for batch in batches])
        arrays[f"{part}_images"] = np.ascontiguousarray(pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
        arrays[f"{part}_labels"] = np.concatenate([np.asarray(batch[key], dtype=np.int64) for batch in batches])
    if name == "cifar100":
        coarse = np.concatenate([np.asarray(_batch(source, folder, batch)[b"coarse_labels"]) for batch in training])
        above = np.zeros(100, dtype=np.int64)
        above[arrays["train_labels"]] = coarse
        arrays["superclasses"] = above
    return arrays


def libsvm_arrays(folder: Path, name: str) -> Arrays:
    """USPS's two files: lines of a class from 1 and 256 values from -1 to 1, each after its number and a colon."""
    from sklearn.datasets import load_svmlight_file

    arrays: Arrays = {}
    for part, file in USPS.items():
        rows, labels = load_svmlight_file(folder / file, n_features=256)
        if (rows.getnnz(axis=1) != 256).any():
            raise ValueError(f"{file} has lines without 256 values")
        arrays[f"{part}_images"] = ((rows.toarray() + 1) / 2 * 255).astype(np.uint8).reshape(-1, 16, 16)
        arrays[f"{part}_labels"] = labels.astype(np.int64) - 1
    return arrays


def medmnist_arrays(source: Path, name: str) -> Arrays:
    """A file of MedMNIST, or the folder it is in."""
    return read_npz(source / f"{name}.npz" if source.is_dir() else source)


def har_arrays(folder: Path, name: str) -> Arrays:
    """The folder "UCI HAR Dataset": windows of nine signals, activities and persons, as text."""
    arrays: Arrays = {}
    for part in ("train", "test"):
        below = folder / part
        signals = [np.loadtxt(below / "Inertial Signals" / f"{signal}_{part}.txt", ndmin=2) for signal in SIGNALS]
        persons = np.loadtxt(below / f"subject_{part}.txt", dtype=np.int64, ndmin=1)
        arrays |= {
            f"{part}_x": np.stack(signals, axis=2).astype(np.float32),
            f"{part}_labels": np.loadtxt(below / f"y_{part}.txt", dtype=np.int64, ndmin=1) - 1,
            f"{part}_sites": np.array([f"person-{person:02d}" for person in persons.tolist()]),
        }
    return arrays


CONVERTERS: Mapping[str, Callable[[Path, str], Arrays]] = {
    "idx": idx_arrays,
    "cifar": cifar_arrays,
    "libsvm": libsvm_arrays,
    "medmnist": medmnist_arrays,
    "leaf-images": lambda folder, name: leaf_images(folder),
    "uci-har": har_arrays,
}
"""Layout to the function that reads it; the layouts "files" and "leaf-text" are copied as they are."""


def convert(data: DataSet, source: Path, folder: Path) -> Path:
    """Make what the workload reads out of published files; returns its place.

    Args:
        data: the data set.
        source: the folder (or file) of its published files.
        folder: the data folder, $RAYSIM_DATA.

    Raises:
        WorkloadError: the files are not there or are something else, or the place is taken.
    """
    target = folder / data.place
    if target.exists():
        raise WorkloadError(f"{data.name}: {target} is there already; remove it to make it again")
    if not source.exists():
        raise WorkloadError(f"{data.name}: there is no {source}; give the folder of the published files")
    try:
        if data.layout == "leaf-text":
            leaf_windows(source)  # that it is what it should be
            names = [path.relative_to(source) for part in ("train", "test") for path in (source / part).glob("*.json")]
            _copied(source, names, target)
        elif data.layout == "files":
            _copied(source, [Path(file.name) for file in data.files], target)
        else:
            arrays: dict[str, Any] = CONVERTERS[data.layout](source, data.name)
            if data.place.startswith("images/"):
                image_set(data.name, arrays, str(source), classes=len(arrays.get("superclasses", ())))
            with whole_file(target) as partial, partial.open("wb") as file:
                np.savez_compressed(file, **arrays)
    except WorkloadError:
        raise
    except Exception as error:  # damaged files make their readers raise many types
        reason = " ".join(str(error).split()) or type(error).__name__
        raise WorkloadError(
            f"{data.name}: {source} does not hold its published files, or these are damaged ({reason}); get them from "
            f"{data.source}"
        ) from error
    return target


def _copied(source: Path, names: list[Path], target: Path) -> None:
    """Copy these files into a new folder, which appears only when all of them are there."""
    missing = [str(name) for name in names if not (source / name).is_file()]
    if missing:
        raise FileNotFoundError(f"no {', '.join(missing)}")
    with whole_folder(target) as copies:
        for name in names:
            (copies / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, copies / name)


def _idx(path: Path) -> NDArray[np.uint8]:
    """An array in MNIST's own format: 0, 0, 8 (bytes), the number of axes, their lengths, the values."""
    packed = path.with_name(f"{path.name}.gz")
    content = path.read_bytes() if path.is_file() else gzip.decompress(packed.read_bytes())
    if content[:3] != b"\x00\x00\x08" or not 1 <= content[3] <= 3:
        raise ValueError(f"{path.name} is not in MNIST's format")
    axes = content[3]
    shape = np.frombuffer(content[4 : 4 + 4 * axes], dtype=">u4").tolist()
    return np.frombuffer(content[4 + 4 * axes :], dtype=np.uint8).reshape(shape)


def _batch(source: Path, folder: str, name: str) -> Any:
    """The arrays of a batch of CIFAR, its images and labels, by name."""
    for place in (source / name, source / folder / name):
        if place.is_file():
            return unpickled(place.read_bytes(), "bytes")
    archives = [source] if source.is_file() else sorted(source.glob("*.tar.gz"))
    if not archives:
        raise FileNotFoundError(f"no {folder}/{name} and no .tar.gz")
    with tarfile.open(archives[0]) as archive:
        member = archive.extractfile(f"{folder}/{name}")
        if member is None:
            raise FileNotFoundError(f"{folder}/{name} is no file")
        return unpickled(member.read(), "bytes")
