"""Codecs: exact bytes, means and error bounds; low-rank factors; what a server sends; and runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import raysim
from raysim.config.wrappers import Attack, Compression, Defense
from raysim.errors import ConfigError
from raysim.method import SharedTensor
from raysim.methods.fedavg import FedAvg
from raysim.running.simulation import run
from raysim.wrappers.codecs._codec import Codec
from raysim.wrappers.codecs._stochastic_rounding import SCALED
from raysim.wrappers.compression import Broadcast, arrived, upward, wire_bytes
from raysim.wrappers.wrapped import Wrapped
from tests.raysim.methods.by_hand import context, updates
from tests.small_runs import small_run
from tests.wrapped_runs import BASE

Kind = Literal["top-k", "random-k", "int8", "int4", "sign"]
KINDS: tuple[Kind, ...] = ("top-k", "random-k", "int8", "int4", "sign")
SHAPES = ((6, 2, 5), (6,), (), (4, 7), (3, 2))
"""A kernel [6, 10] and a matrix [4, 7], whose factors of rank 2 are 32 and 22 numbers, and 13 entries sent whole."""


def codec(*options: Any, **named: Any) -> Codec:
    found = upward(Compression(*options, **named))
    assert found is not None
    return found


def tensors(*shapes: tuple[int, ...]) -> list[SharedTensor]:
    return [SharedTensor(shape) for shape in shapes]


def received(compression: Compression, vector: Any, seed: int = 0, shapes: Sequence[tuple[int, ...]] = ()) -> Any:
    found = upward(compression)
    assert found is not None
    return arrived(found, vector, tensors(*(shapes or [vector.shape])), seed)


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
    own = codec(kind, kept_share=share if kind.endswith("k") else 0.01)
    payload = own.encode(np.random.default_rng(size).standard_normal(size, np.float32), [(size,)], 1)
    assert sum(array.nbytes for array in payload.values()) == wire_bytes(own, tensors((size,)))
    assert wire_bytes(own, []) == 0


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


def test_low_rank_by_hand() -> None:
    """Rank 1 of M = ((3, 0, 0), (0, 4, 0)): p is M q / ‖M q‖ and p pᵀ M arrives; a vector arrives as it is."""
    first, second, _ = np.random.default_rng(5).standard_normal((3, 1), np.float32)[:, 0].tolist()
    length = ((3 * first) ** 2 + (4 * second) ** 2) ** 0.5
    p = (3 * first / length, 4 * second / length)
    expected = [3 * p[0] * p[0], 4 * p[0] * p[1], 0, 3 * p[1] * p[0], 4 * p[1] * p[1], 0, -7, 8]
    vector = np.array([3, 0, 0, 0, 4, 0, -7, 8], np.float32)
    own, given = codec("low-rank", rank=1), tensors((2, 3), (2,))
    assert arrived(own, vector, given, 5).tolist() == pytest.approx(expected, abs=1e-5)
    assert wire_bytes(own, given) == 4 * (2 + 3 + 2)


@pytest.mark.parametrize("rank", [1, 2])
def test_low_rank_is_exact_up_to_its_rank(rank: int) -> None:
    draws = np.random.default_rng(1)
    kernel = draws.standard_normal((6, rank)) @ draws.standard_normal((rank, 10))
    matrix = draws.standard_normal((4, rank)) @ draws.standard_normal((rank, 7))
    small = draws.standard_normal((3, rank)) @ draws.standard_normal((rank, 2))
    parts = (kernel, draws.standard_normal(6), draws.standard_normal(1), matrix, small)
    vector = np.concatenate([part.reshape(-1) for part in parts]).astype(np.float32)
    compression = Compression("low-rank", rank=rank)
    assert np.abs(received(compression, vector, shapes=SHAPES) - vector).max() < 1e-5
    assert received(compression, np.zeros_like(vector), shapes=SHAPES).tolist() == [0] * len(vector)


@settings(deadline=None, max_examples=25)
@given(rank=st.integers(1, 5), seed=st.integers(0, 2**31))
def test_bytes_and_lengths_of_low_rank(rank: int, seed: int) -> None:
    """The arrays have the bytes that are counted; what arrives and what is lost are orthogonal."""
    vector = np.random.default_rng(seed).standard_normal(101, np.float32)
    own = codec("low-rank", rank=rank)
    payload = own.encode(vector, SHAPES, seed)
    assert sum(array.nbytes for array in payload.values()) == wire_bytes(own, tensors(*SHAPES)) <= vector.nbytes
    there = own.decode(payload, SHAPES)
    assert abs(there @ (vector - there)) < 1e-3 and np.linalg.norm(vector - there) <= np.linalg.norm(vector)


@pytest.mark.parametrize("kind", [*KINDS, "low-rank"])
def test_statistics_arrive_as_they_are(kind: str) -> None:
    """The codec is given what is trained, at the bytes of that alone; of frozen parameters nothing is sent."""
    given = [SharedTensor((20, 30)), SharedTensor((7,), trained=False), SharedTensor((5,), False, parameter=False)]
    vector = np.random.default_rng(3).standard_normal(612, np.float32)
    vector[600:607] = 0
    own = codec(kind, kept_share=0.1 if kind.endswith("k") else 0.01)
    found = arrived(own, vector, given, 1)
    assert found[600:].tolist() == vector[600:].tolist()
    assert np.array_equal(found[:600], arrived(own, vector[:600], given[:1], 1))
    assert wire_bytes(own, given) == wire_bytes(own, given[:1]) + 4 * 5 and wire_bytes(own, given[2:]) == 4 * 5
    assert np.array_equal(arrived(own, vector[600:], given[1:], 1), vector[600:])


def test_whole_where_factors_are_larger() -> None:
    assert wire_bytes(codec("low-rank", rank=2), tensors(*SHAPES)) == 4 * (32 + 22 + 6 + 1 + 6)
    assert wire_bytes(codec("low-rank", rank=4), tensors(*SHAPES)) == 4 * (60 + 28 + 13)


def test_what_was_lost_is_part_of_the_next_change() -> None:
    """top-k of one entry in three, of which the server's model and what clients hold are (1, 1, 1) at first."""
    method = Wrapped(FedAvg(), Attack(), Compression(down="top-k", kept_share=1 / 3), Defense())
    first = np.ones(3, np.float32)
    server = Broadcast(first, first, 8)
    held = []
    for number, mean in enumerate(([2, -4, 1], [2, 0, 0], [0, 0, 0], [0, 0, 0]), start=1):
        server = method.aggregate(server, updates([mean], [1]), context(3, round=number, tensors=tensors((3,))))
        message = method.message(server, 0)
        assert message.parameters is server.held and message.nbytes == 8
        held.append(message.parameters.tolist())
    assert server.method.tolist() == [5, -3, 2]
    assert held == [[1, -3, 1], [5, -3, 1], [5, -3, 2], [5, -3, 2]]


def test_the_model_of_a_run_is_what_clients_hold(tmp_path: Path) -> None:
    """From the file of the model as from the checkpoint."""
    options = {"workload.clients": 3, "workload.limit": 60, "model.name": "cnn", "schedule.rounds": 2}
    result = run(small_run(tmp_path / "run", options, compression__down="int8"))
    assert result.rounds["bytes_down"].max() < 0.3 * result.rounds["bytes_up"].min()
    images = torch.rand(4, 1, 8, 8)
    assert result.model is not None
    model = raysim.load_model(result.folder)
    (result.folder / "model.safetensors").unlink()
    again = raysim.load_model(result.folder)
    with torch.no_grad():
        assert torch.equal(model(images), again(images))


@pytest.mark.parametrize("down", ["top-k", "random-k", "int8", "int4", "sign", "low-rank"])
def test_clients_follow_the_server(down: str) -> None:
    """A server that stands still is reached: the distance to what clients hold falls in every kind of compression."""
    method = Wrapped(FedAvg(), Attack(), Compression(down=down, kept_share=0.2, rank=2), Defense())  # type: ignore[arg-type]
    wanted = np.random.default_rng(1).standard_normal(300, np.float32)
    server = Broadcast(wanted, np.zeros(300, np.float32), 0)
    for number in range(1, 31):
        told = context(300, round=number, tensors=tensors((15, 20)))
        server = method.aggregate(server, updates([[0] * 300], [1]), told)
    assert np.linalg.norm(server.held - wanted) < 0.1 * np.linalg.norm(wanted)


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
        ({"compression__error_feedback": True}, "no error to keep with compression.kind none"),
        ({"method__name": "scaffold", "compression__down": "sign"}, "compression.down: sign needs a method"),
    ],
)
def test_refused(tmp_path: Path, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        small_run(tmp_path, BASE, **options)
