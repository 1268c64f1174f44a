"""What every system is given and what it gives back, as JSON files; imports nothing but Python's own library."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LEARNING_RATE = 0.05
BATCH_SIZE = 50
WORKERS = 2
FIRST_STEP = "RAYSIM_BENCHMARK_FIRST_STEP"
"""Environment variable: the file in which the first local step of any worker process leaves its time."""


@dataclass(frozen=True)
class Workload:
    """A population of equal clients with one model; every client takes part in every round, for one local epoch."""

    name: str
    model: str
    clients: int
    samples: int
    """Of each client."""
    warm_up: int
    """First rounds that are not counted."""
    timed: int
    """Rounds that are."""
    checked: int
    """Rounds of the start that is not timed: enough for the accuracy after them to tell who trains."""
    noise: float
    """Of the images: how hard the classes are to tell."""
    about: str


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("W1", "cnn", 20, 500, 1, 2, 3, 2.0, "McMahan CNN (two 5x5 convolutions of 32 and 64, 512 units)"),
        Workload("W2", "mlp", 200, 50, 20, 20, 12, 2.0, "MLP 3072-64-10"),
        Workload("W3", "mobilenet", 10, 500, 1, 2, 8, 0.3, "torchvision mobilenet_v2 at 32x32"),
    )
}


@dataclass(frozen=True)
class Task:
    """One run of one system."""

    workload: str
    data: str
    """The .npz file with all samples."""
    rounds: int
    result: str
    """The file to write the result to."""
    options: list[str] = field(default_factory=list)
    """Further options of the system's own command line."""

    @property
    def settings(self) -> Workload:
        return WORKLOADS[self.workload]

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(dataclasses.asdict(self)))


def read_task() -> Task:
    """The task in the file that the command line names."""
    return Task(**json.loads(Path(sys.argv[1]).read_text()))


@dataclass(frozen=True)
class Result:
    """What a run measured."""

    starts: list[float]
    """Time (seconds since the epoch) at which each round began."""
    seconds: list[float]
    """Of each round, until the next began or, after the last, until the new global model was there; no evaluation."""
    accuracy: float
    """Of the last global model on the test samples."""
    versions: dict[str, str]


def write_result(task: Task, starts: list[float], end: float, accuracy: float, *packages: str) -> None:
    """Leave the result of a run whose last round ended at ``end``."""
    if len(starts) != task.rounds:
        raise RuntimeError(f"{task.rounds} rounds were asked for, {len(starts)} began")
    seconds = [after - before for before, after in itertools.pairwise([*starts, end])]
    result = Result(starts, seconds, accuracy, versions(*packages))
    Path(task.result).write_text(json.dumps(dataclasses.asdict(result)))


def read_result(path: Path) -> Result:
    return Result(**json.loads(path.read_text()))


def versions(*packages: str) -> dict[str, str]:
    from importlib.metadata import version

    return {package: version(package) for package in packages}


class FirstStep:
    """A forward hook that leaves the time of the first training step of all processes, then takes itself away."""

    def __init__(self, module: Any) -> None:
        self._handle = module.register_forward_pre_hook(self)

    def __call__(self, module: Any, inputs: Any) -> None:
        if not module.training:
            return
        self._handle.remove()
        path = os.environ.get(FIRST_STEP)
        if path:
            try:
                with Path(path).open("x") as file:
                    file.write(repr(time.time()))
            except FileExistsError:  # another process was first
                pass
