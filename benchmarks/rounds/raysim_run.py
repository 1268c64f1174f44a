"""raysim as its users run it, with an observer that notes when rounds begin.

Workloads of images go through the command line; characters and graphs are given as a Python program has them: a list of
every client's data, and a module.
"""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import raysim
from benchmarks.rounds import data, models
from benchmarks.rounds.raysim_models import MODELS
from benchmarks.rounds.task import WORKERS, Task, read_task, write_result
from raysim.config.command_line import parse
from raysim.config.run_config import RunConfig
from raysim.engine.observer import Silent
from raysim.running.python_objects import config_of


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


def settings_of(task: Task, folder: Path) -> dict[str, Any]:
    """Options of raysim for all workloads."""
    workload = task.settings
    return {
        "method": "fedavg",
        "training.learning_rate": workload.learning_rate,
        "training.batch_size": workload.batch_size,
        "schedule.local_epochs": 1,
        "schedule.rounds": task.rounds,
        "schedule.sampling_rate": workload.participants / workload.clients,
        "evaluation.every": 1_000_000,
        "engine.actors": WORKERS,
        "output": str(folder / "run"),
    }


def command_line(task: Task, folder: Path) -> list[str]:
    """The options after ``python -m raysim.launch``; those of the task last, so that they win."""
    model = MODELS[task.settings.model]
    options = settings_of(task, folder) | {
        "model": f"{type(model).__module__}:{type(model).__name__}",
        **{f"model.{field.name}": getattr(model, field.name) for field in dataclasses.fields(model)},
        "workload": "npz",
        "workload.path": task.data,
        "workload.partition": "sites",
    }
    return [*(word for name, value in options.items() for word in (f"--{name}", str(value))), *task.options]


def given(task: Task, folder: Path) -> RunConfig:
    """The config of a call with data and a module: :func:`raysim.run`'s own way to it."""
    workload, arrays = task.settings, data.load(task.data, task.workload)
    clients: list[Any] = [arrays.client(client) for client in range(workload.clients)]
    test: Any = (arrays.test_inputs, arrays.test_labels)
    if arrays.graphs:
        clients = [[arrays.graphs[number] for number in inputs] for inputs, _ in clients]
        tests = np.array_split(arrays.test_inputs, workload.clients)
        test = [[arrays.graphs[number] for number in own] for own in tests]  # graphs have no common test set
    words = iter(task.options)
    options = {word.removeprefix("--"): next(words) for word in words}
    config, _ = config_of(settings_of(task, folder), None, options, models.build(workload.model), clients, test)
    return config


def main() -> None:
    task = read_task()
    recorder = Recorder()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        images = task.settings.kind == "images"
        config = parse(command_line(task, place)).config if images else given(task, place)
        raysim.run(config, observer=recorder)
    # The last round is evaluated before anything else is said of it: its end is taken from its own seconds.
    end = recorder.starts[-1] + recorder.row["seconds_train"] + recorder.row["seconds_aggregate"]
    row = recorder.row
    accuracy = row["client_accuracy_mean"] if task.settings.kind == "graphs" else row["accuracy"]
    write_result(task, recorder.starts, end, accuracy, "torch", "torchvision", "ray")


if __name__ == "__main__":
    main()
