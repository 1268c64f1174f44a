"""FedLD's loss decomposition measured on a run of any method: n² evaluations as parallel remote tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from aggregators.loss_decomposition import decompose
from aggregators.means import sample_weights
from raysim.engine.backend import Job, cut, job_name, results_of
from raysim.engine.drift import Moment
from raysim.engine.payload import Packed, Packer
from raysim.flat_model import as_tensor
from raysim.method import Updates
from raysim.wrappers.wrapped import running_method

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig
    from raysim.engine.backend import Pool
    from raysim.engine.checkpointing import State
    from raysim.engine.worker import Worker


@dataclass(frozen=True)
class LossesOfClient:
    """L_j(θ_i) of one client's trained model θ_i, the only input, on the training data of every participant j."""

    moment: Moment
    client: int
    judges: tuple[int, ...]

    def run(self, worker: Worker, inputs: Sequence[Any]) -> tuple[list[float], list[Any]]:
        worker.at(self.moment)
        # Not what ``deploy`` makes of a message: that is the model a client is judged by in the next round.
        model = worker.built(self.client)
        model.buffer.copy_(as_tensor(inputs[0]))
        return [worker.judged(self.client, model, worker.data(judge).train).loss for judge in self.judges], []


@dataclass(frozen=True)
class LossesOfGlobal:
    """L_j(θ⁺) of the new global model on the training data of a few participants."""

    moment: Moment
    clients: tuple[int, ...]
    packed: Packed

    def run(self, worker: Worker, inputs: Sequence[Any]) -> tuple[list[float], list[Any]]:
        worker.at(self.moment)
        losses = []
        for client, (message, state) in zip(self.clients, self.packed.unpack(inputs), strict=True):
            model = worker.deployed(client, message, state)
            losses.append(worker.judged(client, model, worker.data(client).train).loss)
        return losses, []


def decompose_round(
    config: RunConfig,
    pool: Pool,
    trained: Mapping[int, Any],
    updates: Updates,
    state: State,
    note: Callable[[str], None],
    seconds: float = 0.0,
) -> dict[str, float]:
    """Columns of the rounds table, those of :func:`aggregators.loss_decomposition.decompose`.

    Args:
        trained: handle of each participant's whole trained model [N], as ``train`` left it in the flat buffer.
        state: after the round: the new server state, and what the participants keep now.
        seconds: virtual time at which the round's client tasks began.

    Source: FedLD, Eq. 2. Training data are evaluated as they are, without augmentation.
    """
    clients, moment = updates.clients, Moment(state.round, seconds)
    packer, name = Packer(pool), job_name("decompose", state.round)
    method = running_method(config)
    jobs = []
    for client in clients:
        label = f"round {state.round}, losses of client {client}"
        task = LossesOfClient(moment, client, clients)
        jobs.append(Job(task, (trained[client],), cost=len(clients), label=label, name=name))
    groups = cut(clients, pool.slots)
    for group in groups:
        new = [method.message(state.server, client) for client in group]
        packed = packer.pack(group, new, state.clients)
        label = f"round {state.round}, global losses of clients {group}"
        jobs.append(Job(LossesOfGlobal(moment, tuple(group), packed), packed.inputs, 0, len(group), label, name))
    results: list[list[float]] = results_of(pool, jobs, note)
    matrix = np.array(results[: len(clients)])
    everywhere = np.array([loss for part in results[len(clients) :] for loss in part])
    return decompose(sample_weights(updates.samples), matrix, everywhere)
