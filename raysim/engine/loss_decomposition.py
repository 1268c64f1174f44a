"""FedLD's loss decomposition measured on a run of any method: n² evaluations as parallel remote tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from raysim.aggregators.loss_decomposition import decompose
from raysim.aggregators.means import sample_weights
from raysim.client_side.drift import Moment
from raysim.engine.evaluation import EvaluateClients
from raysim.exchange.payload import Packer
from raysim.exchange.pool_protocol import Job, cut, job_name, results_of
from raysim.flat_model import as_tensor
from raysim.method import Method
from raysim.wrappers.wrapped import running_method

if TYPE_CHECKING:
    from raysim.client_side.worker import Worker
    from raysim.config.run_config import RunConfig
    from raysim.engine.checkpointing import State
    from raysim.engine.cohort_run import Collected
    from raysim.exchange.pool_protocol import Pool


@dataclass(frozen=True)
class LossesOfClient:
    """L_j(θ_i) of one client's trained model θ_i, the first input, on the training data of every participant j."""

    moment: Moment
    client: int
    judges: tuple[int, ...]
    changed: tuple[int, ...] = ()
    """Participants whose data the method makes from their states: these are the other inputs, in this order."""

    def run(self, worker: Worker, inputs: Sequence[Any]) -> tuple[list[float], list[Any]]:
        worker.at(self.moment)
        # Not what ``deploy`` makes of a message: that is the model a client is judged by in the next round.
        model = worker.built(self.client)
        model.buffer.copy_(as_tensor(inputs[0]))
        states = dict(zip(self.changed, inputs[1:], strict=True))
        own = [worker.judged_data(judge, states.get(judge)).train for judge in self.judges]
        return [worker.judged(self.client, model, samples).loss for samples in own], []


def decompose_round(
    config: RunConfig,
    pool: Pool,
    collected: Collected,
    state: State,
    note: Callable[[str], None],
    seconds: float = 0.0,
) -> dict[str, float]:
    """Columns of the rounds table, those of :func:`raysim.aggregators.loss_decomposition.decompose`.

    Args:
        collected: what the round's client tasks gave, with every whole trained model [N] as ``train`` left it in the
            flat buffer.
        state: after the round: the new server state, and what the participants keep now.
        seconds: virtual time at which the round's client tasks began.

    θ_i is the model that a client trained for the server, and θ⁺ what the server made of these: the model that a client
    is judged by after the round, or, where aggregation does not touch that one (``Traits.judged_apart``), the received
    parameters. Where no part of a model is averaged, there is no θ⁺.

    Source: FedLD, Eq. 2. Training data are evaluated without augmentation, by θ_i and θ⁺ alike as the method makes them
    for judging (``judged_data``: FedSage+'s graphs with generated neighbors).
    """
    clients, moment = collected.updates.clients, Moment(state.round, seconds)
    packer, name = Packer(pool), job_name("decompose", state.round)
    method = running_method(config)
    changed = tuple(client for client in clients if client in state.clients) if _changes_data(config.method) else ()
    jobs, all_samples = [], sum(map(pool.federation.samples, clients))
    for client in clients:
        label = f"round {state.round}, losses of client {client}"
        task = LossesOfClient(moment, client, clients, changed)
        inputs = (collected.models[client], *(state.clients[judge] for judge in changed))
        jobs.append(Job(task, inputs, cost=all_samples, label=label, name=name))
    averages = method.message(state.server, clients[0]).parameters.size > 0  # else there is no θ⁺
    for group in cut(clients, pool.slots) if averages else ():
        new = [method.message(state.server, client) for client in group]
        packed = packer.pack(group, new, state.clients)
        label = f"round {state.round}, global losses of clients {group}"
        # L_j(θ⁺) of the new global model
        judged = EvaluateClients(moment, tuple(group), packed, ("train",), averaged=method.traits.judged_apart)
        jobs.append(Job(judged, packed.inputs, 0, sum(map(pool.federation.samples, group)), label, name))
    results = results_of(pool, jobs, note)
    matrix = np.array(results[: len(clients)])
    everywhere = np.array([sums.loss for part in results[len(clients) :] for (sums,) in part])
    samples = [row["samples"] for row in collected.rows]  # a method's own weights may be others
    return decompose(sample_weights(samples), matrix, everywhere if everywhere.size else None)


def _changes_data(method: Any) -> bool:
    """Whether clients are judged on other data than their samples as they are."""
    own = getattr(method, "judged_data", None)
    return own is not None and getattr(own, "__func__", own) is not Method.judged_data


def without_aggregation(worker: Worker) -> str:
    """A note on a decomposition whose method averages no part of a model; empty if it does or none is wanted."""
    if not worker.config.evaluation.decompose_every or worker.built(0).shared.numel():
        return ""
    return (
        "this method averages no part of a model, so that its loss decomposition has a local and a shift term, and "
        "neither an aggregation term nor a global loss"
    )
