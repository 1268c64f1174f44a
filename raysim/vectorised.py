"""Visits of a group of clients that are trained as one batched program (``engine.vectorise``).

Each client's visit is the same generator as when it is visited alone (raysim/together.py): its half before the local
training, then all clients' local training at once (raysim/stacked.py), then its half after it.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from raysim.errors import ConfigError
from raysim.failure import Failure
from raysim.stacked import train_stacked
from raysim.together import LocalTraining, steps_of
from raysim.visits import seed_globals, too_few_samples, unusable
from raysim.worker import distinct_tasks

if TYPE_CHECKING:
    from raysim.clock import Marks
    from raysim.config import RunConfig
    from raysim.method import Message, Update
    from raysim.training import Trained, Visit
    from raysim.worker import Worker
    from workloads.data import Federation


def check(config: RunConfig, federation: Federation, module: torch.nn.Module) -> None:
    """ConfigError for what cannot be trained as one batched program with the results of the sequential form."""
    where = f"engine.vectorise: {config.engine.vectorise}"
    off = "or set engine.vectorise to 0."
    tasks = distinct_tasks(federation)
    if any(task.kind == "graph" for task in tasks):
        raise ConfigError(
            f"{where}: the samples of {federation.name} are graphs, whose sizes differ from batch to batch, and "
            f"clients can only be trained together on arrays of one shape. Choose another workload, {off}"
        )
    if len(tasks) > 1:
        raise ConfigError(
            f"{where}: the clients of {federation.name} have different inputs or classes, and so different models; "
            f"only equal ones can be trained together. Choose another workload, {off}"
        )
    for name, part in module.named_modules():
        if isinstance(part, torch.nn.modules.dropout._DropoutNd) and part.p > 0:
            raise ConfigError(
                f"{where}: the model's {name} drops values at random (p = {part.p:g}), and clients trained together "
                f"could not draw what each draws alone. Set model.dropout to 0, {off}"
            )


@dataclass
class _Guest:
    """One client of a group."""

    visit: Visit
    message: Message
    kept: Any
    steps: Generator[LocalTraining, Trained, tuple[Update, Any]] | None = None
    """Its visit, waiting for its local training."""
    request: LocalTraining | None = None
    """What it waits for; None once it has an outcome."""
    outcome: tuple[Update | Failure, Any] | None = None

    def fail(self, stage: str, error: Exception) -> None:
        if isinstance(error, torch.OutOfMemoryError):
            raise error  # the GPU's, not the client's
        reason = f"{type(error).__name__}: {error}"
        self._end(Failure(self.visit.client, stage, reason, traceback.format_exc()), self.kept)

    def _end(self, result: Update | Failure, state: Any) -> None:
        self.outcome, self.steps, self.request = (result, state), None, None

    def start(self, worker: Worker, values: torch.Tensor, keeps: bool) -> None:
        """Run up to the local training and leave what is then in the model in ``values`` [N]."""
        stage = "model"
        try:
            model = worker.model(self.visit.client)
            stage = "data"
            data = worker.data(self.visit.client)
            too_few = too_few_samples(model.module, data.samples)
            if too_few:
                self._end(Failure(self.visit.client, "data", too_few), self.kept)
                return
            state = self.kept
            if keeps and state is None:
                stage = "init_client"
                state = worker.first_state(self.visit.client)
            stage = "train"
            steps = steps_of(worker.method)
            assert steps is not None, "checked with the options"
            self.steps = steps(worker.method, model, data, self.message, state, self.visit)
            self.go_on(worker, values, None)
        except Exception as error:
            self.fail(stage, error)

    def go_on(self, worker: Worker, values: torch.Tensor, trained: Any) -> None:
        """Run up to the next local training, or to the end; ``trained`` is None at the start."""
        assert self.steps is not None
        model = worker.built(self.visit.client)
        try:
            if trained is not None:
                model.buffer.copy_(values)
            seed_globals(self.visit)
            try:
                self.request = self.steps.send(trained)
            except StopIteration as finished:
                update, state = finished.value
            else:
                values.copy_(model.buffer)
                return
            failure = unusable(self.visit, model, update, state)
            self._end(failure or update, self.kept if failure else state)
        except Exception as error:
            self.fail("train", error)


def visit_together(
    worker: Worker,
    visits: Sequence[Visit],
    messages: Sequence[Message],
    kept: Sequence[Any],
    keeps: bool,
    marks: Marks,
) -> list[tuple[Update | Failure, Any, float]]:
    """Visit a group of clients: for each its update or failure, its state, and its share of the seconds.

    What fails is the client whose update is not finite or whose half of a visit raised; if the batched program itself
    raises, every client that was in it.
    """
    started = time.perf_counter()
    guests = [_Guest(*each) for each in zip(visits, messages, kept, strict=True)]
    size = worker.built(visits[0].client).buffer
    values = torch.empty(len(guests), size.numel(), dtype=size.dtype, device=size.device)
    for row, guest in enumerate(guests):
        marks("load", guest.visit.client)
        guest.start(worker, values[row], keeps)
    while True:
        waiting = [(row, guest, guest.request) for row, guest in enumerate(guests) if guest.request is not None]
        if not waiting:
            break
        rows = [row for row, _, _ in waiting]
        part = values if len(rows) == len(guests) else values[rows]
        model = worker.built(visits[0].client)
        marks("train")
        try:
            trained = train_stacked(model, part, [g.visit for _, g, _ in waiting], [r for _, _, r in waiting])
        except Exception as error:
            for _, guest, _ in waiting:
                guest.fail("train together", error)
            break
        for (_, guest, _), row_values, result in zip(waiting, part, trained, strict=True):
            marks("update", guest.visit.client)
            guest.request = None
            guest.go_on(worker, row_values, result)
        if part is not values:
            values[rows] = part
    share = (time.perf_counter() - started) / len(guests)
    return [(*guest.outcome, share) for guest in guests if guest.outcome is not None]
