"""Read a packed state tree against a template, which alone says what types are built."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from raysim.storage.pytree import JSON, Array, children, is_dataclass, key_name, open_node, pack, rebuild


def unpack(node: JSON, arrays: Mapping[str, Array], template: object, name: str, copied: bool = True) -> Any:
    """Rebuild the tree that ``pack`` split, with the types of ``template``.

    Classes come from the template alone, so a file can never choose what is built. In a template, an axis of size 0 is
    free, an empty dict, list or tuple has any plain content, and ``None`` stands for anything plain (arrays, scalars,
    ``None`` and containers of these, but no dataclass). Everything else must agree.

    Args:
        copied: whether arrays are copied; a view would keep a file's whole buffer alive and be read-only.

    Raises:
        ValueError: a leaf is missing, not expected, or of another type, dtype or shape; the message names it.
    """
    tag, content = open_node(node)
    inner = tag in ("fields", "list", "tuple", "dict")
    value = None if inner else _leaf(node, arrays, name, copied)
    if template is not None and not (_tag(template) == tag if inner else _fits(value, template)):
        raise ValueError(f"{name}: expected {_describe(template)}, found {_describe_node(node)}")
    if not inner:
        return value
    if template is None and tag == "fields":
        raise ValueError(f"{name}: found a dataclass where the template has none; the template must show its type")
    found = dict(_node_children(tag, content, name))
    is_open = template is None or (isinstance(template, (dict, list, tuple)) and not template)
    expected: dict[str, object] = dict.fromkeys(found) if is_open else dict(children(template, name))
    for leaf in expected:
        if leaf not in found:
            raise ValueError(f"{leaf}: expected {_describe(expected[leaf])}, found nothing")
    for leaf, child in found.items():
        if leaf not in expected:
            raise ValueError(f"{leaf}: expected nothing, found {_describe_node(child)}")
    # A dict comes back in the order in which it was saved, so that a loop over it adds up the same way.
    values = {leaf: unpack(child, arrays, expected[leaf], leaf, copied) for leaf, child in found.items()}
    if tag == "dict":
        return {key: values[leaf] for (key, _), leaf in zip(content, found, strict=True)}
    ordered = [values[leaf] for leaf in expected]
    if tag == "list":
        return ordered
    return tuple(ordered) if tag == "tuple" else rebuild(template, ordered)


def check_fits(state: object, template: object, name: str) -> None:
    """Whether a state could be saved and read again with this template, as :func:`unpack` has it.

    Raises:
        ValueError: it has another leaf, type, dtype or shape; the message names the first of them.
        TypeError: a leaf is nothing that a state can hold.
    """
    unpack(*pack(state, name), template, name, copied=False)


def _node_children(tag: str, content: Any, name: str) -> Iterator[tuple[str, JSON]]:
    if tag in ("list", "tuple"):
        return ((f"{name}[{position}]", node) for position, node in enumerate(content))
    return ((key_name(name, key), node) for key, node in (content if tag == "dict" else content.items()))


def _leaf(node: JSON, arrays: Mapping[str, Array], name: str, copied: bool) -> Any:
    tag, content = open_node(node)
    if tag == "float":
        return struct.unpack(">d", bytes.fromhex(content))[0]
    if tag == "":
        return content
    if content not in arrays:
        raise ValueError(f"{name}: expected {_describe_node(node)}, found no such array in the file")
    if tag != "array":
        return arrays[content][()]
    return np.array(arrays[content], order="C") if copied else arrays[content]


def _tag(template: object) -> str:
    return "fields" if is_dataclass(template) else type(template).__name__


def _fits(value: object, template: object) -> bool:
    if isinstance(template, np.ndarray):
        return (
            isinstance(value, np.ndarray)
            and value.dtype == template.dtype
            and value.ndim == template.ndim
            and all(free == 0 or size == free for size, free in zip(value.shape, template.shape, strict=True))
        )
    # bool is a subclass of int for Python, but not the same leaf; an int may stand where a float is expected.
    if type(value) is bool or type(template) is bool:
        return type(value) is type(template)
    return isinstance(value, type(template)) or (type(template) is float and type(value) is int)


def _describe(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} array of shape ({', '.join(str(size) if size else 'any' for size in value.shape)})"
    if isinstance(value, (dict, list, tuple)):
        return f"{type(value).__name__} of {len(value)}" if value else type(value).__name__
    return f"{type(value).__name__} (dataclass)" if is_dataclass(value) else type(value).__name__


def _describe_node(node: Any) -> str:
    tag, content = open_node(node)
    if tag in ("array", "number"):
        return f"{node['dtype']} {tag} of shape ({', '.join(map(str, node['shape']))})"
    if tag in ("dict", "list", "tuple"):
        return f"{tag} of {len(content)}"
    return {"fields": "a dataclass", "float": "float"}.get(tag, type(content).__name__)
