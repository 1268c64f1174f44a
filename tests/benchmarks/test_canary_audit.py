"""What guesses refute, by hand."""

from __future__ import annotations

import math

import pytest

from benchmarks.canary_audit import at_least


def test_at_least() -> None:
    """All of r guesses right is as plausible as one in twenty where q^r is: q = 0.05^(1/r), ε = log(q / (1 − q))."""
    rate = 0.05 ** (1 / 200)
    assert at_least(200, 200, 200, 0.0) == pytest.approx(math.log(rate / (1 - rate)), abs=1e-6)
    assert at_least(200, 200, 200, 1e-4) < at_least(200, 200, 200, 0.0)  # δ may have helped
    assert at_least(200, 200, 110, 0.0) == pytest.approx(0, abs=1e-6)
