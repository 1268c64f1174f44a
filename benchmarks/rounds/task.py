"""The input and the output of every system, as JSON files; imports nothing but Python's own library."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

WORKERS = 2
FIRST_STEP = "RAYSIM_BENCHMARK_FIRST_STEP"
"""Environment variable: the file in which the first local step of any worker process leaves its time."""


@dataclass(frozen=True)
class Workload:
    """A population of equal clients with one model, which train for one local epoch each."""

    name: str
    model: str
    clients: int
    samples: int
    """Samples of each client."""
    warm_up: int
    """First rounds that are not counted."""
    timed: int
    """Rounds that are."""
    checked: int
    """Rounds of the start that is not timed: enough for the accuracy after them to tell who trains."""
    about: str
    noise: float = 0.0
    """Noise of images and characters, which makes the classes hard to tell."""
    kind: Literal["images", "characters", "graphs"] = "images"
    cohort: int = 0
    """Clients that take part in a round, each system's own choice; 0: all."""
    batch_size: int = 50
    learning_rate: float = 0.05
    learned: float = 0.3
    """Accuracy that says that something was learned."""

    @property
    def participants(self) -> int:
        """Clients that take part in a round."""
        return self.cohort or self.clients


MCMAHAN = "McMahan CNN (two 5x5 convolutions of 32 and 64, 512 units)"
CROSS_DEVICE: dict[str, Any] = {"clients": 1000, "samples": 50, "cohort": 50, "batch_size": 10}
"""pfl-research's published benchmark of CIFAR-10 (Granqvist et al. 2024), with its learning rate in P2."""
WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("W1", "cnn", 20, 500, 1, 2, 3, MCMAHAN, 2.0),
        Workload("W2", "mlp", 200, 50, 20, 20, 12, "MLP 3072-64-10", 2.0),
        Workload("W3", "mobilenet", 10, 500, 1, 2, 8, "torchvision mobilenet_v2 at 32x32", 0.3),
        Workload(
            name="P2",
            model="simple_cnn",
            warm_up=2,
            timed=5,
            checked=12,
            about="pfl-research's simple_cnn (3x3 convolutions of 32 and 64, two dropouts, 128 units)",
            noise=1.0,
            learning_rate=0.1,
            **CROSS_DEVICE,
        ),
        Workload(
            name="P3",
            model="lstm",
            warm_up=1,
            timed=2,
            checked=3,
            about="LEAF's LSTM (8 dimensions, two layers of 256 units) on 80 characters",
            noise=0.2,
            kind="characters",
            learning_rate=0.8,
            learned=0.0,  # it takes hundreds of rounds to
            **CROSS_DEVICE,
        ),
        Workload(
            name="P4",
            model="gin",
            clients=100,
            samples=37,
            warm_up=2,
            timed=5,
            checked=30,
            about="GIN (three convolutions of 64, sum) on NCI1",
            kind="graphs",
            batch_size=10,
            learning_rate=0.01,
            learned=0.55,
        ),
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
    """Measurements of one run."""

    starts: list[float]
    """Time (seconds since the epoch) at which each round began."""
    seconds: list[float]
    """Seconds of each round, until the next began, or the last global model was there; without evaluation."""
    accuracy: float
    """Accuracy of the last global model on the test samples."""
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
