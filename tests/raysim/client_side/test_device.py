"""Whether a process computes on a GPU, and how much of its memory it may have."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from raysim.client_side.device import cap_memory, device_of, run_task
from raysim.config.run_config import Engine, build
from raysim.errors import HostMemoryError, PlacementError


@pytest.fixture
def fractions(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What torch was told, instead of telling it."""
    told: list[float] = []
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", told.append)
    return told


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        (Engine(gpus_per_client=0.25), [0.25]),
        (Engine(gpus_per_client=1 / 3), [1 / 3]),
        (Engine(gpus_per_client=0.25, gpu_memory_cap=False), []),
        (Engine(gpus_per_client=1.0), []),  # nobody to share with
        (Engine(gpus_per_client=2.0), []),
        (Engine(), []),
    ],
)
def test_who_shares_a_gpu_has_its_share_of_the_memory(
    fractions: list[float], engine: Engine, expected: list[float]
) -> None:
    cap_memory(engine)
    assert fractions == expected


def test_a_gpu_that_was_asked_for_is_never_replaced_by_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device_of(Engine()) == "cpu"
    with pytest.raises(PlacementError, match=r"--engine.gpus_per_client 0.25: torch .* finds no GPU on"):
        device_of(Engine(gpus_per_client=0.25))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert device_of(Engine(gpus_per_client=0.25)) == "cuda"
    assert device_of(Engine()) == "cpu"


@pytest.mark.parametrize(
    "allocate", [lambda: torch.empty(1 << 52), lambda: bytearray(1 << 52)], ids=["torch", "Python"]
)
def test_main_memory_that_is_used_up_is_the_machines_error(allocate: Any) -> None:
    task: Any = SimpleNamespace(run=lambda worker, inputs: allocate())
    with pytest.raises(HostMemoryError, match=r"no main memory left .* Lower --training\.batch_size"):
        run_task(task, SimpleNamespace(own_code=False), ())  # type: ignore[arg-type]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU here")
def test_a_process_gets_no_more_than_its_share_of_a_real_gpu() -> None:
    engine = build([{"engine.gpus_per_client": 0.125}]).engine
    total = torch.cuda.get_device_properties(0).total_memory
    try:
        cap_memory(engine)
        torch.empty(total // 16, dtype=torch.uint8, device=device_of(engine))
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(total // 6, dtype=torch.uint8, device="cuda")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
