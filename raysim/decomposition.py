"""FedLD's loss decomposition measured on a run of any method: n² evaluations as parallel remote tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from aggregators.loss_decomposition import decompose
from aggregators.means import sample_weights
from raysim.method import Message, Updates
from raysim.packing import Packed, Packer
from raysim.pool import Job, cut, job_name
from workloads.metrics import evaluate

if TYPE_CHECKING:
    from raysim.config import RunConfig
    from raysim.pool import Pool
    from raysim.saving import State
    from raysim.worker import Worker


@dataclass(frozen=True)
class LossesOfClient:
    """L_j(θ_i) of one client's trained model θ_i on the training data of every participant j."""

    client: int
    judges: tuple[int, ...]
    packed: Packed
    delta: int
    """Where Δ_i is among the inputs."""
    batch_size: int

    def run(self, worker: Worker, inputs: Sequence[Any]) -> tuple[list[float], list[Any]]:
        place = self.packed.kept[0]
        sent = self.packed.messages[0].unpack(inputs)
        # The client's own model is what it would be judged by, had the server sent what it trained.
        trained = Message(sent.parameters + inputs[self.delta], sent.extra)
        model = worker.deployed(self.client, trained, None if place is None else inputs[place])
        classes = worker.federation.task(self.client).classes
        data = (worker.data(judge).train.batches(self.batch_size) for judge in self.judges)
        return [evaluate(model.module, batches, classes).loss for batches in data], []


@dataclass(frozen=True)
class LossesOfGlobal:
    """L_j(θ⁺) of the new global model on the training data of a few participants."""

    clients: tuple[int, ...]
    packed: Packed
    batch_size: int

    def run(self, worker: Worker, inputs: Sequence[Any]) -> tuple[list[float], list[Any]]:
        losses = []
        for client, message, place in zip(self.clients, self.packed.messages, self.packed.kept, strict=True):
            model = worker.deployed(client, message.unpack(inputs), None if place is None else inputs[place])
            batches = worker.data(client).train.batches(self.batch_size)
            losses.append(evaluate(model.module, batches, worker.federation.task(client).classes).loss)
        return losses, []


def decompose_round(
    config: RunConfig,
    pool: Pool,
    sent: Mapping[int, Message],
    updates: Updates,
    state: State,
    note: Callable[[str], None],
) -> dict[str, float]:
    """Columns ``local_loss``, ``distribution_shift_loss``, ``aggregation_loss`` and ``global_loss`` of a round.

    Args:
        sent: what each participant was sent, from which its Δ_i counts.
        updates: of the round, with every Δ_i in ``each``.
        state: after the round: the new server state, and what the participants keep now.

    Source: FedLD, Eq. 2. Training data are evaluated as they are, without augmentation.
    """
    clients, size = updates.clients, config.evaluation.batch_size
    packer, name = Packer(pool), job_name("decompose", state.round)
    jobs = []
    for client, update in zip(clients, updates.each, strict=True):
        packed = packer.pack([client], [sent[client]], state.kept)
        inputs = (*packed.inputs, packer.handle(update.delta))
        task = LossesOfClient(client, clients, packed, len(packed.inputs), size)
        label = f"round {state.round}, losses of client {client}"
        jobs.append(Job(task, inputs, cost=len(clients), label=label, name=name))
    groups = cut(clients, pool.slots)
    for group in groups:
        new = [config.method.message(state.server, client) for client in group]
        packed = packer.pack(group, new, state.kept)
        label = f"round {state.round}, global losses of clients {group}"
        jobs.append(Job(LossesOfGlobal(tuple(group), packed, size), packed.inputs, 0, len(group), label, name))
    results: list[list[float]] = [[] for _ in jobs]
    for finished in pool.run(jobs, note):
        results[finished.index] = finished.result
    matrix = np.array(results[: len(clients)])
    everywhere = np.array([loss for part in results[len(clients) :] for loss in part])
    return decompose(sample_weights(updates.samples), matrix, everywhere).columns()
