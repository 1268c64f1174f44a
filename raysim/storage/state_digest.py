"""SHA-256 digests of state trees: equal for equal bits, in a process or in a checkpoint's files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from raysim.storage.pytree import JSON, Array, open_node
from raysim.storage.state_files import packed


def state_digest(state: object) -> str:
    """SHA-256 of a state's structure, types, shapes and bits, as 64 hexadecimal digits.

    Raises:
        CheckpointError: it holds what cannot be saved.
    """
    return packed_digest(*packed(state, ""))


def packed_digest(structure: JSON, arrays: Mapping[str, Array]) -> str:
    """The same of a state that was split into its structure and arrays, under whatever name, as files have it.

    Args:
        arrays: those of the state, and any others.
    """
    names = [*_array_names(structure)]
    found = hashlib.sha256(json.dumps(_nameless(structure), separators=(",", ":")).encode())
    for name in names:
        found.update(np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8).data)
    return found.hexdigest()


def digest_of_digests(digests: Mapping[int, str]) -> str:
    """SHA-256 of the digests of several clients' states, whatever the order in which they are given."""
    return hashlib.sha256(json.dumps(sorted(digests.items()), separators=(",", ":")).encode()).hexdigest()


def _array_names(node: JSON) -> Iterator[str]:
    tag, content = open_node(node)
    if tag in ("array", "number"):
        yield content
    for child in _children(tag, content):
        yield from _array_names(child)


def _nameless(node: JSON) -> Any:
    """The structure without the names of arrays, which begin with the name of the whole."""
    tag, content = open_node(node)
    if isinstance(node, dict) and tag in ("array", "number"):
        return {**node, tag: ""}
    if tag == "dict":
        return {tag: [[key, _nameless(child)] for key, child in content]}
    if tag == "fields":
        return {tag: {key: _nameless(child) for key, child in content.items()}}
    return {tag: [_nameless(child) for child in content]} if tag in ("list", "tuple") else node


def _children(tag: str, content: Any) -> Iterator[JSON]:
    if tag == "dict":
        return (child for _, child in content)
    if tag == "fields":
        return iter(content.values())
    return iter(content if tag in ("list", "tuple") else ())
