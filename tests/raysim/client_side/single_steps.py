"""Clients of which each takes a single step, and blocks of their tasks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from torch import nn

from raysim.client_side import fedsgd
from raysim.client_side.train_chunk import TrainChunk
from raysim.client_side.worker import Worker
from raysim.exchange.payload import Packed, PackedMessage, Returned, TrainedChunk
from raysim.method import ClientTask
from raysim.methods.fedavg import FedAvg

SINGLE_STEPS: dict[str, object] = {
    "workload.clients": 66,
    "workload.min_samples": 2,
    "workload.sigma": 0.5,
    "workload.partition": "lognormal",
    "model.name": "mlp",
    "schedule.rounds": 2,
    "schedule.local_epochs": 1,
    "training.batch_size": 50,
}


def block(worker: Worker, clients: range, merged: int, start: Any = None) -> TrainedChunk:
    """One block of client tasks from a model that is not the initial one."""
    config = worker.config
    task = ClientTask(config.seed, 1, 0, 1, config.training.learning_rate, config.training)
    packed = Packed(tuple(PackedMessage(0) for _ in clients), tuple(None for _ in clients), ())
    samples = tuple(worker.federation.samples(client) for client in clients)
    chunk = TrainChunk(clients[0], task, tuple(clients), packed, samples, Returned(sums=True), merged)
    start = worker.model(0).take_shared() * np.float32(1.1) if start is None else start
    result, _ = chunk.run(worker, (start,))
    return result


def added(sums: Any) -> Any:
    return np.sum([vector for vector, _ in sums if vector is not None], axis=0)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many clients each merged step was of, from now on."""
    seen: list[int] = []
    original = fedsgd._sum_and_losses

    def count(model: Any, batches: Any, *rest: Any) -> Any:
        seen.append(len(batches))
        return original(model, batches, *rest)

    monkeypatch.setattr(fedsgd, "_sum_and_losses", count)
    return seen


@dataclass(frozen=True)
class SharesHead(FedAvg):
    def shared_names(self, module: nn.Module) -> Collection[str]:
        return {"head.weight", "head.bias"}
