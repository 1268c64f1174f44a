"""Files as they are published, made into what the workloads read; nothing in them is run."""

from __future__ import annotations

import bz2
import gzip
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workloads.cache_files import whole_file
from workloads.data_sets.catalog import DataSet
from workloads.data_sets.cifar_batches import cifar_arrays
from workloads.errors import WorkloadError
from workloads.images.femnist import leaf_images
from workloads.images.image_set import image_set, read_npz
from workloads.text.windows import leaf_windows

Arrays = dict[str, NDArray[Any]]
IDX = {
    "train_images": "train-images-idx3-ubyte",
    "train_labels": "train-labels-idx1-ubyte",
    "test_images": "t10k-images-idx3-ubyte",
    "test_labels": "t10k-labels-idx1-ubyte",
}
SIGNALS = [f"{kind}_{axis}" for kind in ("body_acc", "body_gyro", "total_acc") for axis in "xyz"]
USPS = {"train": "usps.bz2", "test": "usps.t.bz2"}


def idx_arrays(folder: Path, name: str) -> Arrays:
    """MNIST's four files, packed by gzip or not."""
    return {key: _idx(_named(folder, (file, f"{file}.gz"))) for key, file in IDX.items()}


def libsvm_arrays(folder: Path, name: str) -> Arrays:
    """USPS's two files: lines of a class from 1 and 256 values from -1 to 1, each after its number and a colon."""
    arrays: Arrays = {}
    for part, file in USPS.items():
        labels, rows = [], []
        for number, line in enumerate(bz2.decompress((folder / file).read_bytes()).decode().splitlines(), start=1):
            first, *values = line.split()
            row = [float(value.partition(":")[2]) for value in values]
            if len(row) != 256:
                raise ValueError(f"{file}, line {number} has {len(row)} values, not 256")
            labels.append(int(float(first)) - 1)
            rows.append(row)
        arrays[f"{part}_images"] = ((np.array(rows) + 1) / 2 * 255).astype(np.uint8).reshape(-1, 16, 16)
        arrays[f"{part}_labels"] = np.array(labels)
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
    missing = [str(name) for name in names if not (source / name).is_file()]
    if missing:
        raise FileNotFoundError(f"no {', '.join(missing)}")
    for name in names:
        with whole_file(target / name) as partial:
            shutil.copyfile(source / name, partial)


def _named(folder: Path, names: tuple[str, ...]) -> Path:
    for place in (folder / name for name in names):
        if place.is_file():
            return place
    raise FileNotFoundError(f"no {' or '.join(names)}")


def _idx(path: Path) -> NDArray[np.uint8]:
    """An array in MNIST's own format: 0, 0, 8 (bytes), the number of axes, their lengths, the values."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if content[:3] != b"\x00\x00\x08" or not 1 <= content[3] <= 3:
        raise ValueError(f"{path.name} is not in MNIST's format")
    axes = content[3]
    shape = np.frombuffer(content[4 : 4 + 4 * axes], dtype=">u4").tolist()
    return np.frombuffer(content[4 + 4 * axes :], dtype=np.uint8).reshape(shape)
