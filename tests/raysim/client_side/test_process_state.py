"""What code of a user's own changes of the whole process is found, named and put back."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import raysim
from raysim.client_side import process_state
from tests.own_data import QUICK, Net, three_clients

CHANGES: dict[str, Callable[[], Any]] = {
    r"torch's default dtype \(torch.float32 → torch.float64\)": lambda: torch.set_default_dtype(torch.float64),
    r"the working directory \(/.* → /\)": lambda: os.chdir("/"),
    r"torch's number of threads \(1 → 3\)": lambda: torch.set_num_threads(3),
    r"torch's deterministic mode \(0 → 2\)": lambda: torch.use_deterministic_algorithms(True),
    r"torch's float32 precision \(highest → medium\)": lambda: torch.set_float32_matmul_precision("medium"),
    "the handler of Ctrl-C": lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    "the handler of SIGTERM": lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
}


class Changing(Net):
    """Changes the process once it trains."""

    change: Callable[[], Any]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            type(self).change()
        return super().forward(x.float()).float()


@pytest.fixture
def handlers() -> Iterator[None]:
    """Signals are not ignored: a shell that starts the tests in the background has them ignore Ctrl-C."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("words", CHANGES)
def test_a_module_that_changes_the_process_is_named_and_the_change_taken_back(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Changing, "change", staticmethod(CHANGES[words]), raising=False)
    before = process_state.snapshot()
    with pytest.raises(raysim.RaysimError, match=rf"client 0, round 1, stage train: the code changed {words}"):
        raysim.run("fedavg", model=Changing(), clients=three_clients(), output=str(tmp_path / "run"), **QUICK)
    assert process_state.snapshot() == before


def metric(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    torch.set_default_dtype(torch.float64)
    return outputs.sum(dim=1)


def test_a_metric_and_a_function_that_makes_a_model_are_named_too(tmp_path: Path) -> None:
    def made() -> torch.nn.Module:
        torch.set_default_dtype(torch.float64)
        return Net().float()

    given: dict[str, Any] = {"clients": three_clients(), "output": str(tmp_path / "run"), **QUICK}
    with pytest.raises(raysim.RaysimError, match=r"model: .*made: the code changed torch's default dtype"):
        raysim.run("fedavg", model=made, **given)
    with pytest.raises(raysim.RaysimError, match=r"the code changed torch's default dtype"):
        raysim.run("fedavg", model=Net(), metrics={"mine": metric}, **given)
    assert torch.get_default_dtype() == torch.float32


def test_a_process_that_is_as_it_was_is_not_told_of() -> None:
    assert process_state.put_back(process_state.snapshot()) == ""
