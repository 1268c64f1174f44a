"""One comparison: a method of raysim, the same in another program, and what is changed there to make it the same."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor

import raysim
from benchmarks.agreement import problem
from benchmarks.agreement.problem import Values
from raysim.client_side.worker import Worker
from raysim.engine.load_federation import load_federation
from raysim.results.newest_state import newest_state
from raysim.results.result import RunResult
from raysim.storage.run_folder import RunFolder
from raysim.workloads.parallel_map import Sequential


@dataclass(frozen=True)
class Change:
    """Something that is changed in the other program while it runs.

    ``why`` begins with its kind: a *defect* there is mended, a *decision* that raysim has taken differently is taken so
    there too, or both *start* from the same.
    """

    why: str
    apply: Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Case:
    """A method with some options, in both programs."""

    method: str
    theirs: Callable[[], Values]
    options: Mapping[str, object] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    batch_norm: bool = False
    batch: int = problem.BATCH
    run: Callable[[Case, Iterable[str]], Values] | None = None
    """The values that are wanted as raysim has them; None: of a run on the clients of the problem."""


@dataclass(frozen=True)
class Difference:
    """How far the other program's values are from raysim's, by the largest of a model: the most of all its models."""

    unchanged: float
    changed: float


def compared(case: Case) -> Difference:
    """Run both, and the other program also without the changes."""
    with mock.patch.object(problem, "BATCH", case.batch):
        plain = theirs(case, ())
        changed = theirs(case, case.changes) if case.changes else plain
        own = (case.run or ours)(case, changed)
    return Difference(largest(own, plain), largest(own, changed))


def largest(one: Values, other: Values) -> float:
    return max(distance(one[name], other[name]) for name in other)


def distance(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max() / other.abs().max())


def theirs(case: Case, changes: tuple[Change, ...]) -> Values:
    with ExitStack() as stack:
        for change in changes:
            stack.enter_context(change.apply())
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        return case.theirs()


def ours(case: Case, wanted: Iterable[str]) -> Values:
    """The server's model and every client's, as far as they are wanted, as raysim has them."""
    settings: dict[str, Any] = {
        "schedule.rounds": problem.ROUNDS,
        "schedule.local_epochs": problem.EPOCHS,
        "training.batch_size": problem.BATCH,
        "training.learning_rate": problem.RATE,
        "training.momentum": 0.0,
        "engine.backend": "inline",
        **case.options,
    }
    data = [(inputs.numpy(), labels.numpy()) for inputs, labels in problem.clients()]
    with TemporaryDirectory() as place, problem.unshuffled(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = raysim.run(
            case.method,
            model=problem.network(case.batch_norm),
            clients=data,
            test=data,
            output=str(Path(place) / "run"),
            **settings,
        )
        return {name: value(result, name) for name in wanted}


def value(result: RunResult, name: str) -> Tensor:
    """The values of this name as raysim has them."""
    if name == "server":
        return server(result)
    if name in ("control", "correction"):
        return torch.from_numpy(np.array(getattr(state_of(result), name)))
    if name == "tuned":
        last = result.clients.groupby("client")["tuned_loss"].last()
        return torch.tensor([*last, result.rounds["tuned_loss"].iloc[-1]])
    number = int(name[-1])
    if name.startswith("model"):
        return torch.from_numpy(np.array(state_of(result).models[number]))
    if name.startswith("predictions"):
        with torch.inference_mode():
            predicted: Tensor = result.client_model(number)(problem.points()).argmax(dim=1)
        return predicted.bincount(minlength=problem.CLASSES).float()
    return client(result, number)


def client(result: RunResult, number: int) -> Tensor:
    return problem.vector(result.client_model(number).parameters())


def server(result: RunResult) -> Tensor:
    """The server's part of the model, whether or not a client is judged by it."""
    state = state_of(result)
    return torch.from_numpy(np.array(getattr(state, "parameters", state)))


def state_of(result: RunResult) -> Any:
    """The server's last state."""
    assert result.settings is not None
    worker = Worker(result.settings, load_federation(result.settings, Sequential()))
    return newest_state(RunFolder(result.folder), worker).server
