"""State trees as pairs of files: JSON for structure, safetensors for arrays."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from raysim.errors import CheckpointError, DamagedError
from raysim.storage.folder_files import read_bytes
from raysim.storage.pytree import JSON, Array, nbytes, pack

SHARD_BYTES = 256 << 20  # bounds the memory of a save: client states are gathered and written shard by shard
INNER = 2
"""Directories between a run's folder and a checkpoint's files: ``checkpoints`` and ``round-000012``."""
_DTYPES = frozenset({np.dtype(bool), np.dtype("complex64"), *map(np.dtype, ("float16", "float32", "float64"))}).union(
    np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)
)  # what safetensors writes from numpy


def client_name(client: int) -> str:
    """Name of a client's state among the arrays of a file."""
    return f"clients[{client}]"


def packed(state: object, name: str) -> tuple[JSON, dict[str, Array]]:
    """Split a state as ``pytree.pack`` does; CheckpointError for what cannot be written."""
    try:
        structure, arrays = pack(state, name)
    except TypeError as error:
        raise CheckpointError(f"This state cannot be saved: {error}.") from error
    for leaf, array in arrays.items():
        if array.dtype not in _DTYPES:
            allowed = ", ".join(sorted(str(dtype) for dtype in _DTYPES))
            raise CheckpointError(f"This state cannot be saved: {leaf} is {array.dtype}; allowed are {allowed}.")
    return structure, arrays


def shards(states: Iterable[tuple[int, object]]) -> Iterator[tuple[list[Any], dict[str, Array]]]:
    """Cut client states into shards of at most ``SHARD_BYTES`` or one client: [client, structure] pairs and arrays."""
    nodes: list[Any] = []
    arrays: dict[str, Array] = {}
    size = 0
    for client, state in states:
        structure, own = packed(state, client_name(client))
        if nodes and size + nbytes(state) > SHARD_BYTES:
            yield nodes, arrays
            nodes, arrays, size = [], {}, 0
        nodes.append([int(client), structure])
        arrays.update(own)
        size += nbytes(state)
    if nodes:
        yield nodes, arrays


def pair(stem: str) -> tuple[str, str]:
    """Names of the two files of a state: its structure and its arrays."""
    return f"{stem}.json", f"{stem}.safetensors"


def write_pair(write: Callable[[str, bytes], None], stem: str, structure: JSON, arrays: dict[str, Array]) -> None:
    """Write a state's structure and arrays as two files of one stem."""
    from safetensors.numpy import save as to_bytes

    plain, tensors = pair(stem)
    write(plain, json.dumps(structure).encode())
    # safetensors reads the buffer as it lies: a transposed view would be saved in the wrong order.
    write(tensors, to_bytes({name: np.asarray(array, order="C") for name, array in arrays.items()}))


def read_pair(path: Path, stem: str) -> tuple[Any, dict[str, Array]]:
    """Read what :func:`write_pair` wrote; DamagedError if a file is not what was written."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as from_bytes

    plain, tensors = pair(stem)
    try:
        return json.loads(read_bytes(path / plain, INNER)), from_bytes(read_bytes(path / tensors, INNER))
    except (SafetensorError, ValueError) as error:
        raise damaged(path / stem, str(error)) from error


def damaged(path: Path, reason: str) -> DamagedError:
    """The error for a file of a checkpoint that is not what the run wrote."""
    return DamagedError(f"damaged: {path}: {reason}")
