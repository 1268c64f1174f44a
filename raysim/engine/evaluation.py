"""Evaluation in parallel on the workers: the global model on the global test set, each client on its own."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from raysim import schedule
from raysim.client_side.drift import Moment
from raysim.client_side.fine_tuning import FineTuning, fine_tuning
from raysim.columns import EACH_CLIENT, SPREAD, TUNED, UNSEEN, VALIDATION
from raysim.config.conditions import own_models
from raysim.errors import RaysimError
from raysim.exchange.payload import Packed, PackedMessage, Packer
from raysim.exchange.pool_protocol import Job, cut, job_name, results_of
from raysim.samplers._sampler import Losses
from raysim.workloads.metrics import EvaluationSums, fairness
from raysim.wrappers.judging import judging, measures_auc, uncounted
from raysim.wrappers.wrapped import running_method

if TYPE_CHECKING:
    from raysim.client_side.worker import Worker
    from raysim.config.run_config import RunConfig
    from raysim.engine.checkpointing import State
    from raysim.exchange.pool_protocol import Pool
    from raysim.workloads.federated_data import Federation

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
    """The model of each of a few clients on parts of its own data."""

    moment: Moment
    clients: tuple[int, ...]
    packed: Packed
    parts: tuple[str, ...]
    """``train``, ``test`` or ``validation``."""
    scores: bool = False
    """Whether the AUC on the test set is asked for."""
    averaged: bool = False
    """Judge what the server has averaged instead of the models that clients are judged by."""
    tuning: FineTuning | None = None
    """Training after which each model is judged on the test set once more; not of a client that has none."""

    def run(self, worker: Worker, inputs: Sequence[Any]) -> tuple[list[list[EvaluationSums]], list[Any]]:
        worker.at(self.moment)
        results = []
        for client, (message, state) in zip(self.clients, self.packed.unpack(inputs), strict=True):
            data = worker.judged_data(client, state)
            if self.averaged:
                model = worker.averaged(client, message.parameters, state)
            else:
                model = worker.deployed(client, message, state)
            judged = []
            for part in self.parts:
                judge = worker.judged_once if part == "test" else worker.judged
                judged.append(judge(client, model, getattr(data, part), self.scores and part == "test"))
            if self.tuning is not None:
                if len(data.test):
                    self.tuning.tune(worker, model, client, data.train, {} if state is None else state.optimizer)
                judged.append(worker.judged(client, model, data.test))
            results.append(judged)
        return results, []


@dataclass(frozen=True)
class MeasureLosses:
    """Losses of a few clients on their own training data, with the models that they are judged by.

    The result is (mean, mean of squares) of each.
    """

    moment: Moment
    clients: tuple[int, ...]
    packed: Packed

    def run(self, worker: Worker, inputs: Sequence[Any]) -> tuple[list[tuple[float, float]], list[Any]]:
        worker.at(self.moment)
        messages = self.packed.unpack(inputs)
        return [worker.losses(client, *each) for client, each in zip(self.clients, messages, strict=True)], []


def training_losses(
    config: RunConfig, pool: Pool, state: State, clients: Sequence[int], moment: Moment, note: Callable[[str], None]
) -> Losses:
    """The losses of some clients on their training data, with the models by which they would be judged now.

    Args:
        moment: of the round that begins, for data that drift.
    """
    method, packer, jobs = running_method(config), Packer(pool), []
    costs = [max(1.0, pool.federation.samples(client)) for client in clients]
    for group in cut(clients, pool.slots, costs=costs):
        packed = packer.pack(group, [method.message(state.server, client) for client in group], state.clients)
        cost = sum(map(pool.federation.samples, group))
        label = f"round {moment.round}, losses of clients {group}"
        task = MeasureLosses(moment, tuple(group), packed)
        jobs.append(Job(task, packed.inputs, 0, cost, label, job_name("losses", moment.round)))
    found = np.array([*chain(*results_of(pool, jobs, note))], np.float64).reshape(-1, 2)
    return Losses(found[:, 0], found[:, 1])


def evaluate_round(
    config: RunConfig,
    pool: Pool,
    state: State,
    rows: Sequence[dict[str, Any]],
    note: Callable[[str], None],
    seconds: float = 0.0,
) -> dict[str, Any]:
    """Columns of the rounds table; each judged participant's ``loss`` and other figures are put into its row.

    Where every client is judged by a model of its own, accuracy is the mean over clients of that on their own test
    sets, and so it is where there is no global test set. Where clients have validation sets, ``validation_accuracy`` is
    the mean over clients of the accuracy on these. A client without a test or validation sample is in no mean over
    these sets.
    Where the objective has no accuracy, there are no such columns, and validation is by loss. Clients that never take
    part (``schedule.unseen_clients``, ``schedule.without``) count in ``unseen_accuracy`` and ``unseen_loss`` alone.
    Models that malicious clients have of their own count in no mean.
    With ``evaluation.fine_tune`` the columns ``tuned_…`` are of the same clients' own test sets after fine-tuning
    (raysim/client_side/fine_tuning.py). ``seconds`` is the virtual time of the server step that is judged.

    Raises:
        RaysimError: a model's loss is NaN.
    """
    moment, packer, federation = Moment(state.round, seconds), Packer(pool), pool.federation
    by_clients = own_models(config) or federation.global_test_size == 0
    slices = [] if by_clients else _jobs_of_slices(config, federation, state, moment, packer)
    clients = schedule.judged_clients(config, federation)
    groups = cut(clients, pool.slots, costs=[max(1.0, _cost(config, federation, client)) for client in clients])
    jobs = [_job_of_clients(group, config, federation, state, moment, packer) for group in groups]
    results = results_of(pool, slices + jobs, note)
    of_slices = results[: len(slices)]
    found = dict(zip(chain(*groups), chain(*results[len(slices) :]), strict=True))
    _check_losses(state.round, of_slices, found)
    return _columns(config, federation, rows, of_slices, found)


def _check_losses(
    number: int, of_slices: Sequence[EvaluationSums], found: Mapping[int, Sequence[EvaluationSums]]
) -> None:
    """RaysimError if a model has no loss: in the tables NaN is a round without evaluation, which readers pass over."""
    judged = [("the global model", of_slices)]
    for client, sums in found.items():
        judged += [(f"client {client}'s model", sums[:2]), (f"client {client}'s fine-tuned model", sums[2:])]
    for name, all_sums in judged:
        if any(sums.samples and math.isnan(sums.loss) for sums in all_sums):
            raise RaysimError(
                f"round {number}, stage evaluate: the loss of {name} is NaN, so the round is dropped. Its outputs "
                "overflow, or a variance of its BatchNorm is negative: lower training.learning_rate, or look at what "
                "an attack or a method of your own makes of such variances. A loss of your own that leaves samples out "
                'gives one number for each (reduction="none"), 0 for these: a mean of none is NaN'
            )


def _jobs_of_slices(
    config: RunConfig, federation: Federation, state: State, moment: Moment, packer: Packer
) -> list[Job]:
    """The global model on the slices of the global test set."""
    size = federation.global_test_size
    bounds = np.linspace(0, size, min(SLICES, size) + 1).astype(int).tolist()
    packed = packer.pack([0], [running_method(config).message(state.server, 0)], {})
    jobs = []
    for start, stop in pairwise(bounds):
        task = EvaluateGlobal(moment, packed.messages[0], start, stop, measures_auc(config, federation))
        label = f"round {state.round}, evaluate samples {start} to {stop}"
        jobs.append(Job(task, packed.inputs, 0, stop - start, label, job_name("evaluate", state.round)))
    return jobs


def _job_of_clients(
    group: list[int], config: RunConfig, federation: Federation, state: State, moment: Moment, packer: Packer
) -> Job:
    """The models of a few clients on their own test sets."""
    method = running_method(config)
    packed = packer.pack(group, [method.message(state.server, client) for client in group], state.clients)
    tuning = fine_tuning(config, state.round, schedule.trainable(config, federation.clients))
    cost = sum(_cost(config, federation, client) for client in group)
    auc = measures_auc(config, federation)
    task = EvaluateClients(moment, tuple(group), packed, ("test", "validation"), auc, tuning=tuning)
    label = f"round {state.round}, evaluate clients {group}"
    return Job(task, packed.inputs, 0, cost, label, job_name("evaluate", state.round))


def _cost(config: RunConfig, federation: Federation, client: int) -> int:
    """Samples that a client's evaluation looks at, those that it is fine-tuned on counted once for each epoch."""
    tests = federation.test_samples(client)
    return tests + config.evaluation.fine_tune * federation.samples(client) if tests else 0


def _columns(
    config: RunConfig,
    federation: Federation,
    rows: Sequence[dict[str, Any]],
    of_slices: list[EvaluationSums],
    found: dict[int, list[EvaluationSums]],
) -> dict[str, Any]:
    """The round's columns, from sums of the global test set's slices and of each client's test and validation set."""
    auc, population = measures_auc(config, federation), schedule.population(config, federation.clients)
    tested = {client: test for client, (test, *_) in found.items() if test.samples}
    of_trainable = {client: test for client, test in tested.items() if client in population}
    of_unseen = [test for client, test in tested.items() if client not in population]
    left_out = uncounted(config, population.trainable)
    counted = _without(left_out, of_trainable)
    held_out = {client: sums[1] for client, sums in found.items() if sums[1].samples and client in population}
    validations = _without(left_out, held_out).values()
    judged = judging(config, federation)
    objective, names = judged.objective, [*judged.columns, *(["auc"] if auc else [])]
    _put_into_rows(rows, of_trainable, names if auc else [name for name in names if name != "balanced_accuracy"])
    if of_slices:
        total: EvaluationSums = functools.reduce(operator.add, of_slices)
        columns: dict[str, Any] = {name: total.figure(name) for name in names}
    else:
        columns = {name: _mean_figure(counted.values(), name) for name in names}
    if validations:
        measure = "accuracy" if objective.accurate else "loss"
        columns[f"{VALIDATION}{measure}"] = _mean_figure(validations, measure)
    if len(population) < federation.clients:
        measures = ("accuracy", "loss") if objective.accurate else ("loss",)
        columns |= {f"{UNSEEN}{name}": _mean_figure(of_unseen, name) for name in measures}
    each = config.evaluation.each_client and objective.accurate
    if objective.accurate:
        columns |= _spread(counted)
    if each:
        columns[EACH_CLIENT] = _each(counted)
    if config.evaluation.fine_tune:
        tuned = {client: found[client][2] for client in of_trainable}
        measures = ("accuracy", "loss") if objective.accurate else ("loss",)
        for row in rows:
            if row["client"] in tuned:
                row |= {f"{TUNED}{name}": tuned[row["client"]].figure(name) for name in measures}
        columns[f"{TUNED}loss"] = _mean_figure(tuned.values(), "loss")
        if objective.accurate:
            columns |= {f"{TUNED}{name}": value for name, value in _spread(tuned).items()}
        if each:
            columns[TUNED + EACH_CLIENT] = _each(tuned)
    return columns


def _without(left_out: Collection[int], tests: dict[int, EvaluationSums]) -> dict[int, EvaluationSums]:
    """The clients that a mean is over: without those that are left out, unless no other was judged."""
    return {client: test for client, test in tests.items() if client not in left_out} or tests


def _each(tests: dict[int, EvaluationSums]) -> str:
    """Every client's accuracy on its own test set."""
    return " ".join(f"{client}={tests[client].accuracy:.6g}" for client in sorted(tests))


def _spread(tests: dict[int, EvaluationSums]) -> dict[str, float]:
    """Columns of how the accuracies of clients on their own test sets are spread."""
    found = fairness(np.array([test.accuracy for test in tests.values()]))
    values = (found["mean"], found["standard_deviation"], found["worst_decile"])
    return dict(zip(SPREAD, values, strict=True))


def _put_into_rows(rows: Sequence[dict[str, Any]], tests: dict[int, EvaluationSums], names: Sequence[str]) -> None:
    """Each judged participant's figures, the loss before the others."""
    for row in rows:
        if row["client"] in tests:
            own = tests[row["client"]]
            row |= {name: own.figure(name) for name in ("loss", *(name for name in names if name != "loss"))}


def _mean_figure(found: Iterable[EvaluationSums], name: str) -> float:
    """The mean over clients that have this figure (a client of one class has no AUC); nan if none has."""
    known = [value for sums in found if not math.isnan(value := sums.figure(name))]
    return float(np.mean(known)) if known else math.nan
