"""A GPU that refuses every further call does not hide which client's kernel failed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from raysim.client_side import train_chunk
from raysim.client_side.worker import Worker
from raysim.errors import RaysimError
from tests.raysim.client_side.single_steps import SINGLE_STEPS, block
from tests.small_runs import MakeConfig, worker_of


@pytest.fixture
def base() -> dict[str, object]:
    return SINGLE_STEPS


@pytest.fixture
def dead_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a chunk cannot put torch's streams back."""

    @contextmanager
    def kept_globals(own_code: bool) -> Iterator[None]:
        yield
        raise RuntimeError("CUDA error: misaligned address")

    monkeypatch.setattr(train_chunk, "kept_globals", kept_globals)


@pytest.mark.usefixtures("dead_gpu")
def test_the_client_whose_kernel_failed_is_told(make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    def train(self: Worker, task: Any, *_: Any) -> Any:
        raise RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED")

    worker = worker_of(make_config("run"))
    monkeypatch.setattr(Worker, "train", train)
    told = "client 8, train: RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED; then CUDA error: misaligned"
    with pytest.raises(RaysimError, match=told):
        block(worker, range(8, 10), 1)


@pytest.mark.usefixtures("dead_gpu")
def test_without_a_failed_client_the_error_is_raised(make_config: MakeConfig) -> None:
    worker = worker_of(make_config("run"))
    with pytest.raises(RuntimeError, match="misaligned address"):
        block(worker, range(8, 10), 1)
