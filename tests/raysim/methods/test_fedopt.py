"""FedAvgM, FedAdagrad, FedAdam and FedYogi on numbers by hand; without their memory they are FedAvg."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest

from raysim.config.registry import class_name, known, resolve
from raysim.methods.fedopt import FedAdagrad, FedAdam, FedAvgM, FedYogi, Server
from tests.raysim.methods.by_hand import context, updates

SPREAD = np.array([2, -1, 0.5], np.float32)


def rounds(method: Any, *changes: tuple[float, float, float]) -> Server:
    """Two parameters, which start at 1 and -1, and a buffer, which starts at 10; the mean changes of two clients."""
    first = method.first_square
    squares = np.zeros(0, np.float32) if first is None else np.full(2, first, np.float32)
    server = Server(np.array([1, -1, 10], np.float32), np.zeros(2, np.float32), squares)
    for number, change in enumerate(changes, 1):
        mean = np.array(change, np.float32)  # of 10 and 30 samples
        given = updates([mean + 3 * SPREAD, mean - SPREAD], [10, 30])
        server = method.aggregate(server, given, context(round=number))
    return server


@pytest.mark.parametrize(
    ("method", "changes", "first", "second"),
    [
        # m = (3, -2), then (1.5 - 1, -1 + 4).
        (FedAvgM(0.5, 2.0), ((3, -2), (-1, 4)), (6, -4), (1, 6)),
        # √v: √(9 + 16) = 5, then √(25 + 144) = 13 and √(25 + 0) = 5.
        (FedAdagrad(2.0, tau=3.0), ((4, -4), (-12, 0)), (1, -1), (-1.5, 0)),
        # √v: √(1/2 + 49/2) = 5, and again √(25/2 + 25/2) = 5; m = (±7/2), then (7/4 + 5/2, -7/4 + 5/2).
        (FedAdam(6.0, 0.5, 1.0, 0.5), ((7, -7), (5, 5)), (3.5, -3.5), (4.25, 0.75)),
        # v = 1 + 16/2 = 9 as 16 > 1, then 9 - 4/2 = 7 as 4 < 9, and 9 + 36/2 = 27 as 36 > 9; m = (±2), then (0, 2).
        (FedYogi(4.0, 0.5, 1.0, 0.5), ((4, -4), (-2, 6)), (2, -2), (0, 8 / (sqrt(27) + 1))),
    ],
)
def test_two_rounds_by_hand(method: Any, changes: Any, first: Any, second: Any) -> None:
    after = rounds(method, (*changes[0], 4), (*changes[1], -1))
    once = rounds(method, (*changes[0], 4))
    assert after.parameters.dtype == np.float32
    np.testing.assert_allclose(once.parameters, [1 + first[0], -1 + first[1], 14], rtol=1e-6)
    np.testing.assert_allclose(after.parameters - once.parameters, [*second, -1], rtol=1e-5, atol=1e-6)


def test_fedavgm_without_momentum_is_fedavg() -> None:
    assert rounds(FedAvgM(0.0), (3, -2, 4), (-1, 4, -1)).parameters.tolist() == [3, 1, 13]


def test_each_has_a_name_of_its_own() -> None:
    for name, cls in {"fedavgm": FedAvgM, "fedadagrad": FedAdagrad, "fedadam": FedAdam, "fedyogi": FedYogi}.items():
        assert resolve("method", name) is cls and class_name("method", cls) == name and name in known("method")
    assert "fedopt" not in known("method")
