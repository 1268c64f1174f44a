"""Compression of what the server sends: by hand, and what a run is judged by."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import raysim
from raysim.config.wrappers import Attack, Compression, Defense
from raysim.methods.fedavg import FedAvg
from raysim.simulation import run
from raysim.wrappers.broadcast import Broadcast
from raysim.wrappers.wrapped import Wrapped
from tests.raysim.methods.by_hand import context, updates
from tests.small_runs import small_run


def test_what_was_lost_is_part_of_the_next_change() -> None:
    """top-k of one entry in three, of which the server's model and what clients hold are (1, 1, 1) at first."""
    method = Wrapped(FedAvg(), Attack(), Compression(down="top-k", kept_share=1 / 3), Defense())
    first = np.ones(3, np.float32)
    server = Broadcast(first, first, 8)
    held = []
    for number, mean in enumerate(([2, -4, 1], [2, 0, 0], [0, 0, 0], [0, 0, 0]), start=1):
        server = method.aggregate(server, updates([mean], [1]), context(3, round=number, shapes=((3,),)))
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
        told = context(300, round=number, shapes=((15, 20),))
        server = method.aggregate(server, updates([[0] * 300], [1]), told)
    assert np.linalg.norm(server.held - wanted) < 0.1 * np.linalg.norm(wanted)
