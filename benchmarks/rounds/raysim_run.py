"""raysim as its command line runs it, with an observer that notes when rounds begin."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import raysim
from benchmarks.rounds.models import MODELS
from benchmarks.rounds.task import BATCH_SIZE, LEARNING_RATE, WORKERS, Task, read_task, write_result
from raysim.config.command_line import parse
from raysim.engine.observer import Silent


class Recorder(Silent):
    """Keeps the time at which each round began, and the last round's row."""

    def __init__(self) -> None:
        self.starts: list[float] = []
        self.row: Mapping[str, Any] = {}

    def note(self, text: str) -> None:
        print(text, flush=True)

    def round_started(self, round: int, local_epochs: int, participants: int) -> None:
        self.starts.append(time.time())

    def round_finished(self, row: Mapping[str, Any]) -> None:
        self.row = row


def command_line(task: Task, folder: Path) -> list[str]:
    """The options after ``python -m raysim.launch``; those of the task last, so that they win."""
    model = MODELS[task.settings.model]
    options = {
        "method": "fedavg",
        "model": f"{type(model).__module__}:{type(model).__name__}",
        **{f"model.{field.name}": getattr(model, field.name) for field in dataclasses.fields(model)},
        "workload": "npz",
        "workload.path": task.data,
        "workload.partition": "sites",
        "training.learning_rate": LEARNING_RATE,
        "training.batch_size": BATCH_SIZE,
        "schedule.local_epochs": 1,
        "schedule.rounds": task.rounds,
        "evaluation.every": 1_000_000,
        "engine.actors": WORKERS,
        "output": folder / "run",
    }
    return [*(word for name, value in options.items() for word in (f"--{name}", str(value))), *task.options]


def main() -> None:
    task = read_task()
    recorder = Recorder()
    with tempfile.TemporaryDirectory() as folder:
        config = parse(command_line(task, Path(folder))).config
        raysim.run(config, observer=recorder)
    # The last round is evaluated before anything else is said of it: its end is taken from its own seconds.
    end = recorder.starts[-1] + recorder.row["seconds_train"] + recorder.row["seconds_aggregate"]
    write_result(task, recorder.starts, end, recorder.row["accuracy"], "torch", "torchvision", "ray")


if __name__ == "__main__":
    main()
