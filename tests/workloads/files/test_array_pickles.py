"""Pickles of arrays, and those that ask for more."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raysim.workloads.files.array_pickles import unpickled


@pytest.mark.parametrize("protocol", [2, 4])
def test_arrays_lists_and_numbers_are_read(protocol: int) -> None:
    held: dict[str, Any] = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": [1, 2.5, "text"]}
    also: Any = {("_codecs", "encode"): str.encode}  # how protocol 2 of Python 3 writes bytes
    found = unpickled(pickle.dumps(held, protocol), "latin1", also)
    assert found["b"] == held["b"] and np.array_equal(found["a"], held["a"]) and found["a"].dtype == np.float32


class Asks:
    def __init__(self, *reduced: Any) -> None:
        self.reduced = reduced

    def __reduce__(self) -> Any:
        return self.reduced


def test_nothing_that_it_asks_for_is_called(tmp_path: Path) -> None:
    for asked in (Asks(Path.mkdir, (tmp_path / "made",)), Asks(np.load, ("x",))):
        with pytest.raises(ValueError, match=r"it asks for .*, which no such file holds"):
            unpickled(pickle.dumps({"x": asked}), "latin1")
    assert not (tmp_path / "made").exists()


def test_a_size_that_is_only_claimed_takes_no_memory() -> None:
    from numpy._core.multiarray import _reconstruct

    found = unpickled(pickle.dumps(Asks(_reconstruct, (np.ndarray, (10**15,), b"d"))), "bytes")
    assert found.shape == (0,)


@pytest.mark.parametrize("content", [b"", b"not a pickle", pickle.dumps(np.arange(1000))[:-900]])
def test_what_is_no_pickle(content: bytes) -> None:
    with pytest.raises(ValueError):
        unpickled(content, "latin1")
