"""Evaluation in parallel on the workers: the global model on the global test set, each client on its own."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from raysim.engine import schedule
from raysim.engine.backend import Job, cut, job_name, results_of
from raysim.engine.drift import Moment
from raysim.engine.payload import Packed, PackedMessage, Packer
from raysim.wrappers.attack import SUCCESS, judged_by
from raysim.wrappers.wrapped import running_method
from workloads.metrics import EvaluationSums, fairness
from workloads.objective import objective_of

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig
    from raysim.engine.backend import Pool
    from raysim.engine.checkpointing import State
    from raysim.engine.worker import Worker
    from workloads.federated_data import Federation

SLICES = 8
"""Largest number of slices of the global test set, a constant, so that sums never depend on placement."""


@dataclass(frozen=True)
class EvaluateGlobal:
    """The global model on one slice of the global test set."""

    moment: Moment
    message: PackedMessage
    start: int
    stop: int
    scores: bool

    def run(self, worker: Worker, inputs: Sequence[Any]) -> tuple[EvaluationSums, list[Any]]:
        worker.at(self.moment)
        model = worker.deployed(0, self.message.unpack(inputs), None)
        samples = worker.global_test(self.start, self.stop)
        return worker.judged(0, model, samples, self.scores), []


@dataclass(frozen=True)
class EvaluateClients:
    """The model of each of a few clients on its own test set, and on its validation set."""

    moment: Moment
    clients: tuple[int, ...]
    packed: Packed
    scores: bool

    def run(
        self, worker: Worker, inputs: Sequence[Any]
    ) -> tuple[list[tuple[EvaluationSums, EvaluationSums]], list[Any]]:
        worker.at(self.moment)
        results = []
        for client, (message, state) in zip(self.clients, self.packed.unpack(inputs), strict=True):
            model = worker.deployed(client, message, state)
            data = worker.data(client)
            test = worker.judged(client, model, data.test, self.scores)
            results.append((test, worker.judged(client, model, data.validation)))
        return results, []


def evaluate_round(
    config: RunConfig,
    federation: Federation,
    pool: Pool,
    state: State,
    rows: Sequence[dict[str, Any]],
    note: Callable[[str], None],
    seconds: float = 0.0,
) -> dict[str, float]:
    """Columns of the rounds table; each judged participant's ``loss`` and other figures are put into its row.

    A personal method's accuracy is the mean over clients of the accuracy on their own test sets, and so is that of any
    method where there is no global test set. Where clients have validation sets, ``validation_accuracy`` is the mean
    over clients of the accuracy on these. Where the objective has no accuracy, there are no such columns, and
    validation is by loss. Clients that never take part (``schedule.unseen_clients``) count in ``unseen_accuracy`` and
    ``unseen_loss`` alone. ``seconds`` is the virtual time of the server step that is judged.
    """
    method, options, moment = running_method(config), config.evaluation, Moment(state.round, seconds)
    name = job_name("evaluate", state.round)
    packer = Packer(pool)
    jobs: list[Job] = []
    size = federation.global_test_size
    by_clients = method.traits.personal or size == 0
    if not by_clients:
        bounds = np.linspace(0, size, min(SLICES, size) + 1).astype(int).tolist()
        packed = packer.pack([0], [method.message(state.server, 0)], {})
        for start, stop in pairwise(bounds):
            task = EvaluateGlobal(moment, packed.messages[0], start, stop, options.auc)
            label = f"round {state.round}, evaluate samples {start} to {stop}"
            jobs.append(Job(task, packed.inputs, cost=stop - start, label=label, name=name))
    slices = len(jobs)
    trainable = schedule.trainable(config, federation.clients)
    unseen = evenly_spread(federation.clients - trainable, options.client_limit)
    judged_clients = [*evenly_spread(trainable, options.client_limit), *(trainable + number for number in unseen)]
    tests = [federation.test_samples(client) for client in judged_clients]
    groups = cut(judged_clients, pool.slots, costs=[max(1.0, samples) for samples in tests])
    for group in groups:
        packed = packer.pack(group, [method.message(state.server, client) for client in group], state.clients)
        cost = sum(federation.test_samples(client) for client in group)
        label = f"round {state.round}, evaluate clients {group}"
        task_of_group = EvaluateClients(moment, tuple(group), packed, options.auc)
        jobs.append(Job(task_of_group, packed.inputs, 0, cost, label, name))
    results = results_of(pool, jobs, note)
    pairs = dict(zip(chain(*groups), chain(*results[slices:]), strict=True))
    tested = {client: test for client, (test, _) in pairs.items() if test.samples}
    by_client = {client: test for client, test in tested.items() if client < trainable}
    validations = [found for client, (_, found) in pairs.items() if found.samples and client < trainable]
    objective = judged_by(config.attack, objective_of(federation))
    triggered = [SUCCESS] if config.attack.kind == "backdoor" else []
    names = (*objective.columns, *triggered, *(["auc"] if options.auc else []))
    only_asked_for = () if options.auc else ("balanced_accuracy",)
    of_clients = ("loss", *(name for name in names if name not in ("loss", *only_asked_for)))
    for row in rows:
        if row["client"] in by_client:
            own = by_client[row["client"]]
            row |= {name: own.figure(name) for name in of_clients}
    if by_clients:
        judged = list(by_client.values())
        whole = {name: _mean([found.figure(name) for found in judged]) for name in names}
    else:
        total: EvaluationSums = functools.reduce(operator.add, results[:slices])
        whole = {name: total.figure(name) for name in names}
    if validations:
        measure = "accuracy" if objective.accurate else "loss"
        whole[f"validation_{measure}"] = _mean([found.figure(measure) for found in validations])
    if unseen:
        judged = [test for client, test in tested.items() if client >= trainable]
        measures = ("accuracy", "loss") if objective.accurate else ("loss",)
        whole |= {f"unseen_{name}": _mean([found.figure(name) for found in judged]) for name in measures}
    if not objective.accurate:
        return whole
    spread = fairness(np.array([found.accuracy for found in by_client.values()]))
    return whole | {
        "client_accuracy_mean": spread["mean"],
        "client_accuracy_std": spread["standard_deviation"],
        "client_accuracy_worst_decile": spread["worst_decile"],
    }


def _mean(values: list[float]) -> float:
    """The mean of the values that there are (a client of one class has no AUC); nan if there is none."""
    known = [value for value in values if not math.isnan(value)]
    return float(np.mean(known)) if known else math.nan


def evenly_spread(count: int, limit: int) -> list[int]:
    """At most ``limit`` of the numbers 0 … count−1, evenly spread."""
    if count <= limit:
        return list(range(count))
    return [index * count // limit for index in range(limit)]
