"""State trees: what a method may keep between rounds, and how such a tree is walked and packed.

A tree is made of (nested) dataclasses, dicts with str or int keys, lists, tuples, ``None``, numpy arrays without
objects, numpy scalars, and bool/int/float/str. Anything else is a ``TypeError`` that names the leaf, because it could
neither be compared bit for bit nor be saved without pickle. Fields of a dataclass declared with ``init=False`` are
derived from the others and no part of the state.
"""

from __future__ import annotations

import dataclasses
import functools
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np

JSON: TypeAlias = "dict[str, JSON] | list[JSON] | str | int | float | bool | None"
Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


def leaves(state: object) -> list[tuple[str, object]]:
    """Name and value of every leaf (arrays, scalars, ``None``), in the order of the tree.

    Names read like the code that reaches the leaf, ``neunet.weight_1`` or ``clusters[2].members``; a dict key that is
    no identifier is quoted, ``['a.b']``. So no two leaves share a name. A tree that is one leaf has the name ``""``.
    """
    return list(_leaves(state, ""))


def nbytes(state: object) -> int:
    """Bytes that a state takes on the wire: those of its arrays, and 8 for each other leaf that is not ``None``."""
    try:
        return _nbytes(state)
    except TypeError:
        check(state)  # says where in the state it is
        raise


def _nbytes(state: Any) -> int:
    """As :func:`nbytes`, without the names of leaves: it is called for every client's result in every round."""
    kind: Any = type(state)
    if kind is np.ndarray and not state.dtype.hasobject:
        return int(state.nbytes)
    if kind is float or kind is int:
        return 8
    if state is None:
        return 0
    if isinstance(state, dict) and all(type(key) is str or type(key) is int for key in state):
        return sum(map(_nbytes, state.values()))
    if kind is list or kind is tuple:
        return sum(map(_nbytes, state))
    if is_dataclass(state):
        return sum(_nbytes(getattr(state, name)) for name in _field_names(kind))
    _check_leaf(state, "")
    return int(state.nbytes) if isinstance(state, np.ndarray) else 8


def check(state: object, name: str = "") -> None:
    """TypeError, with the name of the leaf, unless it is such a tree; ``name`` is the name of the whole."""
    for _ in _leaves(state, name):
        pass


def finite(state: object, name: str = "") -> bool:
    """Whether no array in the tree holds NaN or infinity; ``name`` of the tree is for the TypeError of another leaf."""
    arrays = (leaf for _, leaf in _leaves(state, name) if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "fc")
    return all(bool(np.isfinite(array).all()) for array in arrays)


def make_read_only(state: object) -> None:
    """Set the arrays of a tree read-only, so that writing into one raises numpy's ValueError.

    A value that is no state tree raises nothing here; :func:`check` does.
    """
    with suppress(TypeError):
        for _, leaf in _leaves(state, ""):
            if isinstance(leaf, np.ndarray):
                leaf.flags.writeable = False


def map_arrays(state: object, function: Callable[[Array], object]) -> Any:
    """Copy a tree with every array replaced by ``function(array)``; containers are new, the input is left alone."""
    if isinstance(state, np.ndarray):
        return function(state)
    if not isinstance(state, (list, tuple, dict)) and not is_dataclass(state):
        _check_leaf(state, "")
        return state
    values = [map_arrays(child, function) for _, child in children(state, "")]
    return rebuild(state, values)


def pack(state: object, name: str) -> tuple[JSON, dict[str, Array]]:
    """Split a tree into a JSON structure and its arrays (not copied), named by leaf with ``name`` in front."""
    arrays: dict[str, Array] = {}
    return _pack(state, name, arrays), arrays


def is_dataclass(value: object) -> bool:
    """Whether a value is an inner node with fields."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def children(state: Any, name: str) -> Iterator[tuple[str, object]]:
    """Names and values of the children of an inner node."""
    if isinstance(state, dict):
        yield from ((key_name(name, key), value) for key, value in state.items())
    elif isinstance(state, (list, tuple)):
        if type(state) not in (list, tuple):
            raise TypeError(f"{name or 'state'}: {type(state).__name__} is no plain list or tuple; use a dataclass")
        yield from ((f"{name}[{position}]", value) for position, value in enumerate(state))
    else:
        kind: Any = type(state)
        yield from ((key_name(name, field), getattr(state, field)) for field in _field_names(kind))


@functools.cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind) if field.init)


def key_name(name: str, key: object) -> str:
    """The name of what stands under a key of the node ``name``."""
    if type(key) is int:
        return f"{name}[{key}]"
    if type(key) is not str:
        raise TypeError(f"{name or 'state'}: a key must be str or int, found {key!r} ({type(key).__name__})")
    if not key.isidentifier():
        return f"{name}[{key!r}]"
    return f"{name}.{key}" if name else key


def _leaves(state: object, name: str) -> Iterator[tuple[str, object]]:
    if isinstance(state, (dict, list, tuple)) or is_dataclass(state):
        for child_name, child in children(state, name):
            yield from _leaves(child, child_name)
    else:
        _check_leaf(state, name)
        yield name, state


def _check_leaf(value: object, name: str) -> None:
    plain = value is None or type(value) in (bool, int, float, str)
    if not plain and not (isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject):
        kind = f"{value.dtype} array" if isinstance(value, np.ndarray) else type(value).__name__
        raise TypeError(
            f"{name or 'state'}: a value of type {kind} can neither be sent nor saved; "
            "use numpy arrays, numbers, text, dataclasses"
        )


def rebuild(like: Any, values: list[Any]) -> Any:
    """An inner node of the same type with other children, in the order of :func:`children`."""
    if isinstance(like, dict):
        return dict(zip(like, values, strict=True))
    if isinstance(like, (list, tuple)):
        return type(like)(values)
    kind: Any = type(like)
    return dataclasses.replace(like, **dict(zip(_field_names(kind), values, strict=True)))


def _pack(state: Any, name: str, arrays: dict[str, Array]) -> JSON:
    if isinstance(state, (dict, list, tuple)) or is_dataclass(state):
        packed = [_pack(child, child_name, arrays) for child_name, child in children(state, name)]
        if isinstance(state, dict):
            return {"dict": [[key, node] for key, node in zip(state, packed, strict=True)]}
        if isinstance(state, (list, tuple)):
            return {type(state).__name__: packed}
        kind: Any = type(state)
        return {"fields": dict(zip(_field_names(kind), packed, strict=True))}
    _check_leaf(state, name)
    if isinstance(state, (np.ndarray, np.generic)):
        arrays[name] = np.asarray(state)
        tag = "array" if isinstance(state, np.ndarray) else "number"
        return {tag: name, "dtype": str(state.dtype), "shape": list(state.shape)}
    if type(state) is float and not np.isfinite(state):
        return {"float": struct.pack(">d", state).hex()}  # JSON has no NaN, and this keeps its sign and payload
    plain: JSON = state
    return plain


def open_node(node: Any) -> tuple[str, Any]:
    """Tag and content of a packed node; a plain scalar has the tag ``""``."""
    return next(iter(node.items())) if isinstance(node, dict) else ("", node)
