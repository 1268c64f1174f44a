"""FedLD's loss decomposition measured on a run of any method: n² evaluations as parallel remote tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from aggregators.loss_decomposition import decompose
from aggregators.means import sample_weights
from raysim.engine.backend import Job, cut, job_name, results_of
from raysim.engine.drift import Moment
from raysim.engine.evaluation import EvaluateClients
from raysim.engine.payload import Packer
from raysim.flat_model import as_tensor
from raysim.wrappers.wrapped import running_method

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig
    from raysim.engine.backend import Pool
    from raysim.engine.checkpointing import State
    from raysim.engine.cohort_run import Collected
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


def decompose_round(
    config: RunConfig,
    pool: Pool,
    collected: Collected,
    state: State,
    note: Callable[[str], None],
    seconds: float = 0.0,
) -> dict[str, float]:
    """Columns of the rounds table, those of :func:`aggregators.loss_decomposition.decompose`.

    Args:
        collected: what the round's client tasks gave, with every whole trained model [N] as ``train`` left it in the
            flat buffer.
        state: after the round: the new server state, and what the participants keep now.
        seconds: virtual time at which the round's client tasks began.

    Source: FedLD, Eq. 2. Training data are evaluated as they are, without augmentation.
    """
    clients, moment = collected.updates.clients, Moment(state.round, seconds)
    packer, name = Packer(pool), job_name("decompose", state.round)
    method = running_method(config)
    jobs = []
    for client in clients:
        label = f"round {state.round}, losses of client {client}"
        task = LossesOfClient(moment, client, clients)
        jobs.append(Job(task, (collected.models[client],), cost=len(clients), label=label, name=name))
    groups = cut(clients, pool.slots)
    for group in groups:
        new = [method.message(state.server, client) for client in group]
        packed = packer.pack(group, new, state.clients)
        label = f"round {state.round}, global losses of clients {group}"
        judged = EvaluateClients(moment, tuple(group), packed, ("train",))  # L_j(θ⁺) of the new global model
        jobs.append(Job(judged, packed.inputs, 0, len(group), label, name))
    results = results_of(pool, jobs, note)
    matrix = np.array(results[: len(clients)])
    everywhere = np.array([sums.loss for part in results[len(clients) :] for (sums,) in part])
    return decompose(sample_weights(collected.updates.samples), matrix, everywhere)
