"""Sums of updates, added by the driver or on the workers."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import raysim
from raysim.engine import cohort_chunks, tree_reduce
from raysim.engine.inline_backend import InlinePool
from tests.fingerprint import fingerprint
from tests.small_runs import small_run


def test_levels_of_neighbors_give_the_bits_of_one_sum() -> None:
    drawn = np.random.default_rng(0).standard_normal((600, 5)).astype(np.float32)
    vectors = [None if k % 7 == 0 else vector for k, vector in enumerate(drawn)]
    whole = tree_reduce.sum_of([None if vector is None else vector.copy() for vector in vectors])
    pool = InlinePool(SimpleNamespace(device="cpu", federation=None, own_code=False))  # type: ignore[arg-type]
    left = tree_reduce.add_on_workers(vectors, lambda jobs: pool.run(jobs, print), "round 1")
    assert len(left) == 3  # 600 / 16 = 37.5, 38 / 16 = 2.4
    assert whole is not None
    assert tree_reduce.sum_of(left).tobytes() == whole.tobytes()  # type: ignore[union-attr]


def test_only_what_is_too_much_for_the_driver_stays() -> None:
    assert not tree_reduce.stays_on_workers(tree_reduce.FAN_IN, tree_reduce.DRIVER_BYTES)
    assert not tree_reduce.stays_on_workers(64, tree_reduce.DRIVER_BYTES // 256)
    assert tree_reduce.stays_on_workers(64, tree_reduce.DRIVER_BYTES // 256 + 1)


# Calls of one client each, and of two that take a single step together.
@pytest.mark.parametrize(
    ("method", "clients", "local_epochs"), [("fedavg", 20, 2), ("fedbn", 20, 2), ("fedavg", 40, 1)]
)
def test_a_run_gives_the_same_either_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, clients: int, local_epochs: int
) -> None:
    base = {
        "method.name": method,
        "model.name": "logistic",
        "workload.clients": clients,
        "schedule.local_epochs": local_epochs,
        "workload.limit": 1000,
        "schedule.rounds": 2,
        "engine.block_size": 1,
    }
    added: list[Any] = []
    original = tree_reduce.AddUp.run

    def counted(*arguments: Any) -> Any:
        added.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(tree_reduce.AddUp, "run", counted)
    server = {}
    for limit in (tree_reduce.DRIVER_BYTES, 0):
        monkeypatch.setattr(tree_reduce, "DRIVER_BYTES", limit)
        result = raysim.run(small_run(tmp_path / str(limit), base))
        server[limit] = fingerprint(result.folder)["server"]
        assert len(added) == (4 if limit == 0 else 0)  # 2 rounds of 20 sums, 16 and 4
    assert len(set(server.values())) == 1


def test_any_cut_into_calls_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sums, and what dropout draws."""
    base = {
        "method.name": "fedavg",
        "model.name": "mobilenet",
        "model.width": 0.1,
        "workload.clients": 7,
        "workload.limit": 140,
        "schedule.rounds": 1,
        "evaluation.client_limit": 1,
    }
    server = set()
    for sizes in ([1] * 7, [3, 3, 1], [2, 5], [7]):
        ends = np.cumsum(sizes)
        cuts = [list(range(end - size, end)) for size, end in zip(sizes, ends.tolist(), strict=True)]
        monkeypatch.setattr(cohort_chunks, "cut", lambda *_, cuts=cuts: cuts)
        torch.manual_seed(len(sizes))
        result = raysim.run(small_run(tmp_path / "-".join(map(str, sizes)), base))
        server.add(fingerprint(result.folder)["server"])
    assert len(server) == 1
