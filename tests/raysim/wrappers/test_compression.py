"""Codecs: exact bytes, means and error bounds; runs with error feedback beside a defense and an attack."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.config.wrappers import Compression
from raysim.errors import ConfigError
from raysim.method import Shape
from raysim.simulation import run
from raysim.wrappers.compression import SCALED, decoded, encoded, wire_bytes
from tests.small_runs import small_run
from tests.wrapped_runs import BASE

Kind = Literal["top-k", "random-k", "int8", "int4", "sign"]
KINDS: tuple[Kind, ...] = ("top-k", "random-k", "int8", "int4", "sign")


def received(compression: Compression, vector: Any, seed: int = 0, shapes: Sequence[Shape] = ()) -> Any:
    shapes = shapes or [vector.shape]
    return decoded(compression, encoded(compression, vector, shapes, seed), shapes)


def test_by_hand() -> None:
    vector = np.array([4, -1, 0, 3, -2], np.float32)
    assert received(Compression("top-k", kept_share=0.4), vector).tolist() == [4, 0, 0, 3, 0]
    assert received(Compression("sign"), vector).tolist() == [2, -2, 2, 2, -2]
    exact = np.array([7, -3, 0, 1, -7], np.float32)  # on the grid of int4, whose step is 7 / 7
    assert received(Compression("int4"), exact).tolist() == exact.tolist()


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=25)
@given(size=st.integers(1, 2 * SCALED + 3), share=st.floats(1e-12, 1))
def test_bytes_are_those_of_the_arrays(kind: Kind, size: int, share: float) -> None:
    compression = Compression(kind, kept_share=share if kind.endswith("k") else 0.01)
    payload = encoded(compression, np.random.default_rng(size).standard_normal(size, np.float32), [(size,)], 1)
    assert sum(array.nbytes for array in payload.values()) == wire_bytes(compression, [(size,)])


@pytest.mark.parametrize("kind", ["random-k", "int8", "int4"])
def test_the_mean_is_the_vector(kind: Kind) -> None:
    """Over 4000 draws, within five standard errors."""
    vector = np.random.default_rng(0).standard_normal(40, np.float32)
    compression = Compression(kind, kept_share=0.25 if kind == "random-k" else 0.01)
    draws = np.array([received(compression, vector, seed) for seed in range(4000)], np.float64)
    error = draws.std(axis=0) / 4000**0.5
    assert (np.abs(draws.mean(axis=0) - vector) <= 5 * error + 1e-6).all()
    if kind != "random-k":
        assert np.abs(draws - vector).max() <= np.abs(vector).max() / (127 if kind == "int8" else 7) * 1.0001


@pytest.mark.parametrize("kind", ["top-k", "random-k", "sign"])
def test_contraction(kind: Kind) -> None:
    """‖C(v) − v‖² ≤ (1 − k / d) ‖v‖² for top-k, and never above ‖v‖² for what errors are fed back of."""
    vector = np.random.default_rng(0).standard_normal(1000, np.float32)
    compression = Compression(kind, kept_share=0.1 if kind.endswith("k") else 0.01, error_feedback=True)
    lost = float(np.linalg.norm(received(compression, vector) - vector) ** 2 / np.linalg.norm(vector) ** 2)
    assert lost <= (0.9 if kind == "top-k" else 1.0)


def test_bytes_in_the_tables_and_in_virtual_time(tmp_path: Path) -> None:
    """A logistic model on 8 x 8 images has 650 entries; six clients."""
    common = BASE | {"schedule.sampling_rate": 1.0, "schedule.rounds": 1, "devices.preset": "uniform"}

    def rounds(name: str, **options: Any) -> Any:
        return run(small_run(tmp_path / name, common, **{"devices__bandwidth_up": 0.001} | options)).rounds

    plain, small = rounds("plain"), rounds("small", compression__kind="sign")
    assert plain["bytes_up"].tolist() == [6 * 4 * 650] and small["bytes_up"].tolist() == [6 * (4 + 82)]
    saved = float(plain["virtual_seconds"][0] - small["virtual_seconds"][0])
    assert saved == pytest.approx((4 * 650 - 86) * 8 / 1000)
    down = rounds("down", compression__down="sign", devices__bandwidth_down=0.001)
    assert down["bytes_up"].tolist() == plain["bytes_up"].tolist() and down["bytes_down"].tolist() == [6 * (4 + 82)]
    slow = rounds("slow", devices__bandwidth_down=0.001)
    saved = float(slow["virtual_seconds"][0] - down["virtual_seconds"][0])
    assert saved == pytest.approx((4 * 650 - 86) * 8 / 1000)


def test_error_feedback_sends_what_was_lost(tmp_path: Path) -> None:
    """With it one entry in a hundred a round is enough to learn more."""
    options = {"compression__kind": "top-k", "compression__kept_share": 0.01}
    without = run(small_run(tmp_path / "without", BASE, **options)).rounds["train_loss"].iloc[-1]
    fed_back = run(small_run(tmp_path / "with", BASE, **options, compression__error_feedback=True)).rounds
    assert fed_back["train_loss"].iloc[-1] < without


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"method__name": "scaffold", "compression__kind": "sign"}, "not possible with method scaffold"),
        ({"compression__kind": "sign", "compression__kept_share": 0.5}, "compression.kept_share: 0.5 has no effect"),
        ({"compression__kind": "sign", "compression__rank": 2}, "compression.rank: 2 has no effect"),
        ({"compression__error_feedback": True}, "no error with compression.kind none"),
        ({"method__name": "scaffold", "compression__down": "sign"}, "compression.down: sign needs a method"),
    ],
)
def test_refused(tmp_path: Path, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        small_run(tmp_path, BASE, **options)
