"""Whether two state trees agree in structure, types, shapes and every bit."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from raysim.storage.pytree import Array, open_node, pack


def equal(first: object, second: object) -> bool:
    """NaN equals the same NaN, ``0.0`` is not ``-0.0``, ``1`` is not ``1.0``; the order of a dict's keys is free."""
    (node, arrays), (other_node, others) = pack(first, "state"), pack(second, "state")
    same = json.dumps(_sorted(node)) == json.dumps(_sorted(other_node))
    return same and all(_octets(array) == _octets(others[name]) for name, array in arrays.items())


def _sorted(node: Any) -> Any:
    tag, content = open_node(node)
    if tag in ("list", "tuple"):
        return {tag: [_sorted(child) for child in content]}
    if tag == "dict":
        pairs = [[key, _sorted(child)] for key, child in content]
        return {tag: sorted(pairs, key=lambda pair: (type(pair[0]).__name__, pair[0]))}
    return {tag: {key: _sorted(child) for key, child in content.items()}} if tag == "fields" else node


def _octets(array: Array) -> bytes:
    return np.ascontiguousarray(array).tobytes()
