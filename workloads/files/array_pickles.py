"""Published files that are pickles of arrays, read without running what a pickle may ask for."""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np

MODULES = {"numpy", "numpy.core.multiarray", "numpy._core.multiarray"}


class _ArraysOnly(pickle.Unpickler):
    """Makes dicts, lists, texts, numbers, numpy arrays and what ``also`` names; whatever else is asked for is refused.

    An unpickler calls every function that a file names, so that a pickle from elsewhere may do anything at all.
    """

    def __init__(self, content: bytes, encoding: str, also: Mapping[tuple[str, str], Any]) -> None:
        super().__init__(io.BytesIO(content), encoding=encoding)
        self._also = also

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in self._also:
            return self._also[module, name]
        if module in MODULES and name == "dtype":
            return np.dtype
        if module in MODULES and name in ("ndarray", "_reconstruct"):
            return _empty
        raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no such file holds")


def unpickled(content: bytes, encoding: str, also: Mapping[tuple[str, str], Any] | None = None) -> Any:
    """Read a pickle that holds arrays.

    Args:
        content: the file.
        encoding: of the texts of Python 2, "bytes" or "latin1".
        also: (module, name) of what else the file may name, and what is made in its place.

    Raises:
        ValueError: it is no pickle, or asks for something else.
    """
    try:
        return _ArraysOnly(content, encoding, also or {}).load()
    except MemoryError as error:
        raise ValueError("it asks for more memory than there is") from error
    except Exception as error:  # a damaged pickle raises errors of almost any type
        raise ValueError(" ".join(str(error).split()) or type(error).__name__) from error


def _empty(*_: object) -> Any:
    """An array as a pickle begins it, whatever the size that the file claims: its values follow, with their number."""
    return np.ndarray((0,), "b")
