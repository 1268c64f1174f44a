"""Trains one client twice before the first round: code of a user's own must give the same bits again.

Global generators of Python, NumPy and torch are seeded for each client task. What still differs (the time, threads, a
generator of its own, an attribute that ``forward`` changes, a graph that it writes to) would make results depend on
retries and on which clients an actor has served before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from raysim.client_side import process_state
from raysim.client_side.drift import Moment
from raysim.client_side.train_chunk import kept_globals, seed_globals
from raysim.errors import ConfigError
from raysim.exchange.payload import Packed, Packer
from raysim.exchange.pool_protocol import Job, results_of
from raysim.exchange.returned_values import check_messages, check_metrics
from raysim.flat_model import to_numpy
from raysim.method import ClientTask
from raysim.storage import pytree
from raysim.workloads.given.given_data import GivenModel

if TYPE_CHECKING:
    from raysim.client_side.worker import Worker
    from raysim.config.run_config import RunConfig
    from raysim.engine.rounds import Rounds
    from raysim.workloads.federated_data import Samples


def check_repeats(rounds: Rounds, note: Callable[[str], None]) -> None:
    """Train the smallest client of the first round twice, on a worker of the pool, where the config asks for it.

    Args:
        rounds: the run, none of whose rounds is done.
        note: is told how long it took.

    Raises:
        ConfigError: a bit differs; it names client and tensor.
    """
    config, pool = rounds.config, rounds.pool
    if not wanted(config):
        return
    plan = rounds.next_plan()
    if not plan.clients:
        return
    client = min(plan.clients, key=lambda each: plan.samples[each])
    try:
        message = rounds.method.message(rounds.state.server, client)
        check_messages({client: message}, 1)
    except (Exception, SystemExit):  # raised again in the first round, where the stage is named
        return
    packed = Packer(pool).pack([client], [message], {})
    federation = rounds.worker.federation
    task = ClientTask(
        config.seed,
        1,
        client,
        1,
        plan.learning_rate,
        config.training,
        federation.input_spec(client).classes,
        rounds.worker.objective,
        config.evaluation.batch_size,
        plan.cohort,
    )
    job = Job(TrainTwice(task, packed), packed.inputs, label="training a client twice", name="repeat check")
    ((found, seconds),) = results_of(pool, [job], note)
    name = federation.client_name(client).removeprefix("client ")
    if found:
        raise ConfigError(
            f"client {name} was trained and judged twice from the same values, and {found}. Code that was given "
            "depends on more than its arguments and Python's, NumPy's and torch's global random numbers: on the time, "
            "threads, a generator of its own, an attribute that it changes, or a graph that it writes to. Mend that; "
            "or set engine.repeat_check to never, and the run cannot be repeated."
        )
    note(
        f"client {name} was trained twice with the same bits, in {seconds:.2g} s (--engine.repeat_check never: not so)"
    )


def wanted(config: RunConfig) -> bool:
    """Whether the check is asked for, or a model, a loss or metrics were given as objects.

    A method, model or workload of a user's own that is named (``package.module:Class``) is checked where that is asked.
    """
    loss, metrics = getattr(config.workload, "functions", (None, {}))
    given = isinstance(config.model, GivenModel) or loss is not None or bool(metrics)
    return config.engine.repeat_check == "always" or (config.engine.repeat_check == "given" and given)


@dataclass(frozen=True)
class TrainTwice:
    """Train a client twice: the difference in words, and seconds; empty where there is none, or one training fails."""

    task: ClientTask
    packed: Packed

    def run(self, worker: Worker, inputs: Sequence[Any]) -> tuple[tuple[str, float], list[Any]]:
        """Train and judge it, twice."""
        worker.at(Moment(self.task.round))
        began, before = time.perf_counter(), process_state.snapshot()
        with kept_globals(own_code=True):
            try:
                first, second = (self._once(worker, inputs) for _ in range(2))
            except (Exception, SystemExit):  # raised again in the first round, where client and stage are named
                return ("", 0.0), []
            finally:
                process_state.put_back(before)
        worker.built(self.task.client).reset()
        return (next(_differences(first, second), ""), time.perf_counter() - began), []

    def _once(self, worker: Worker, inputs: Sequence[Any]) -> Mapping[str, Any]:
        """All that a training and an evaluation give, by what they are called."""
        client = self.task.client
        ((message, _),) = self.packed.unpack(inputs)
        state = worker.first_state(client)
        seed_globals(self.task, own_code=True)
        update, after = worker.train(self.task, message, state)
        model = worker.built(client)
        values = to_numpy(model.buffer).copy()
        found: dict[str, Any] = {entry.name: values[entry.start : entry.stop] for entry in model.entries}
        parts = {"update": update.delta, "extra": dict(update.extra), "client state": after}
        found |= {f"{what}{name}": leaf for what, part in parts.items() for name, leaf in pytree.leaves(part)}
        check_metrics(update.metrics, worker.objective.columns)  # what raises here is said in the first round
        found |= update.metrics
        judged = {f"{part} samples": worker.judged(client, model, samples) for part, samples in self._judged(worker)}
        names = [name for name in worker.objective.columns if name != "balanced_accuracy"]
        return found | {f"{name} on {part}": sums.figure(name) for part, sums in judged.items() for name in names}

    def _judged(self, worker: Worker) -> Iterator[tuple[str, Samples]]:
        """Samples of each kind that a model may be judged on, by the name of the kind."""
        data = worker.data(self.task.client)
        size = min(worker.federation.global_test_size, worker.config.evaluation.batch_size)
        yield "test", worker.global_test(0, size) if size else data.test
        yield "validation", data.validation
        yield "training", data.train


def _differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    for name, one in first.items():
        other = second.get(name)
        one, other = np.asarray(one), np.asarray(other)
        if one.tobytes() != other.tobytes():
            same_kind = one.shape == other.shape and one.dtype.kind == "f"
            apart = f" by up to {np.abs(one - other).max():.3g}" if same_kind else ""
            yield f"{name} differed{apart}"
