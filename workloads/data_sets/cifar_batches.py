"""The Python version of CIFAR-10 and CIFAR-100: pickled batches, read without running what a pickle may ask for."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workloads.array_pickles import unpickled

BATCHES = {
    "cifar10": ("cifar-10-batches-py", [f"data_batch_{number}" for number in range(1, 6)], ["test_batch"], b"labels"),
    "cifar100": ("cifar-100-python", ["train"], ["test"], b"fine_labels"),
}
"""Name to the folder of the batches, those of the training and of the test part, and the key of the labels."""


def cifar_arrays(source: Path, name: str) -> dict[str, NDArray[Any]]:
    """The images and labels of the batches in a folder, in its folder of that name, or in its .tar.gz."""
    folder, training, testing, key = BATCHES[name]
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


def _batch(source: Path, folder: str, name: str) -> dict[bytes, Any]:
    for place in (source / name, source / folder / name):
        if place.is_file():
            return _unpickled(place.read_bytes())
    archives = [source] if source.is_file() else sorted(source.glob("*.tar.gz"))
    if not archives:
        raise FileNotFoundError(f"no {folder}/{name} and no .tar.gz")
    with tarfile.open(archives[0]) as archive:
        member = archive.extractfile(f"{folder}/{name}")
        if member is None:
            raise FileNotFoundError(f"{folder}/{name} is no file")
        return _unpickled(member.read())


def _unpickled(content: bytes) -> dict[bytes, Any]:
    found = unpickled(content, "bytes")
    if not isinstance(found, dict):
        raise ValueError("a batch is no dictionary")
    return found
