"""Digests of states: the same from a tree and from a checkpoint's files, and another one after any change."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from raysim.storage.state_digest import digest_of_digests, packed_digest, state_digest
from raysim.storage.state_files import packed


@dataclass
class Kept:
    weights: np.ndarray[Any, Any]
    steps: int = 0
    names: Any = None


def state() -> Kept:
    return Kept(np.arange(6, dtype=np.float32).reshape(2, 3), 4, {"a": (1.5, np.int64(3)), 7: [float("nan")]})


def test_files_and_trees_have_the_same_digest_under_any_name() -> None:
    for name in ("server", "clients[12]"):
        structure, arrays = packed(state(), name)
        read = json.loads(json.dumps(structure))
        assert packed_digest(read, {**arrays, "another": np.zeros(3)}) == state_digest(state())


def test_the_layout_in_memory_does_not_count() -> None:
    turned = Kept(np.asfortranarray(state().weights), 4, state().names)
    assert state_digest(turned) == state_digest(state())


CHANGES: dict[str, Any] = {
    "a bit": Kept(np.nextafter(state().weights, np.float32(9)), 4, state().names),
    "the sign of zero": Kept(np.array([[-0.0, 1, 2], [3, 4, 5]], np.float32), 4, state().names),
    "a shape": Kept(state().weights.reshape(3, 2), 4, state().names),
    "a type": Kept(state().weights.astype(np.float64), 4, state().names),
    "a number": Kept(state().weights, 5, state().names),
    "an order": Kept(state().weights, 4, {7: [float("nan")], "a": (1.5, np.int64(3))}),
    "a leaf less": Kept(state().weights, 4),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_changes_it(change: str) -> None:
    assert state_digest(CHANGES[change]) != state_digest(state())


def test_the_digest_of_clients_counts_who_has_which_state_and_not_the_order() -> None:
    one = digest_of_digests({0: "a", 10: "b", 9: "c"})
    assert one == digest_of_digests({10: "b", 9: "c", 0: "a"})
    assert one != digest_of_digests({0: "b", 10: "a", 9: "c"})
