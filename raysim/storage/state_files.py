"""State trees as pairs of files: JSON for structure, safetensors for arrays."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from raysim.errors import CheckpointError, DamagedError
from raysim.storage.folder_files import read_bytes
from raysim.storage.pytree import JSON, Array, nbytes, open_node, pack

SHARD_BYTES = 256 << 20  # bounds the memory of a save: client states are gathered and written shard by shard
INNER = 2
"""Directories between a run's folder and a checkpoint's files: ``checkpoints`` and ``round-000012``."""
DEEPEST = 64
"""Most levels of a state's tree that are read: those of methods have a handful."""
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
    """Read what :func:`write_pair` wrote; DamagedError if a file is nothing that it writes."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as from_bytes

    plain, tensors = pair(stem)
    try:
        structure, arrays = json.loads(read_bytes(path / plain, INNER)), from_bytes(read_bytes(path / tensors, INNER))
        _check(structure, arrays)
        return structure, arrays
    except (SafetensorError, ValueError, RecursionError) as error:
        raise damaged(path / stem, str(error)) from error


def _check(structure: Any, arrays: Mapping[str, Array]) -> None:
    """Check that a file's structure is one that :func:`write_pair` was given, and says of its arrays what they are.

    Raises:
        ValueError: it is not; anyone may have written the file, with all of its checksums.
    """
    waiting = [(structure, 0)]
    if isinstance(structure, list):  # of several clients
        if not all(isinstance(entry, list) and len(entry) == 2 and type(entry[0]) is int for entry in structure):
            raise ValueError("it holds no pairs of a client and its state")
        waiting = [(node, 0) for _, node in structure]
    while waiting:
        node, depth = waiting.pop()
        if depth > DEEPEST:
            raise ValueError(f"a state is nested deeper than {DEEPEST} levels")
        waiting += [(child, depth + 1) for child in _children(node, arrays)]


def _children(node: Any, arrays: Mapping[str, Array]) -> list[Any]:
    """The nodes below a packed one; ValueError if it is nothing that is packed so."""
    if node is None or isinstance(node, bool | int | float | str):
        return []
    tag, content = open_node(node) if node else ("", node)
    extra = len(node) - 1
    if tag in ("array", "number") and isinstance(content, str) and content in arrays:
        array = arrays[content]
        if (node.get("dtype"), node.get("shape"), extra) == (str(array.dtype), [*array.shape], 2):
            return []
        raise ValueError(f"{content[:80]!a} is another array than the state says")
    if tag in ("list", "tuple") and isinstance(content, list) and not extra:
        return content
    if tag == "fields" and isinstance(content, dict) and not extra:
        return [*content.values()]
    pairs = tag == "dict" and isinstance(content, list) and not extra
    if pairs and all(isinstance(one, list) and len(one) == 2 and isinstance(one[0], str | int) for one in content):
        return [child for _, child in content]
    if tag == "float" and isinstance(content, str) and len(content) == 16 and not extra:
        return []
    raise ValueError(f"{str(node)[:80]!a} is no part of a state")


def damaged(path: Path, reason: str) -> DamagedError:
    """The error for a file of a checkpoint that is not what the run wrote."""
    return DamagedError(f"damaged: {path}: {reason}")
