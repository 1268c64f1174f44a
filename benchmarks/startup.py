"""From the start of a process to its first local step, and from its last round to its end, split into stages.

    python -m benchmarks.startup                  # fedavg on digits, with and without Ray's dashboard in turn
    python -m benchmarks.startup --repeats 5 -- --workload synthetic --model mobilenet

Each run is a ``python -m raysim.launch`` of its own with :class:`Marked`, which is FedAvg that writes down the clock
whenever the engine calls it. So the stages need nothing from the engine but the contract of a method:

- *launching*: from the start of the process until the config is sent to the driver, which is right after Ray is up;
- *driver up*: until the driver's process has it; *data*: until the driver has torch, the data, a model and the server's
  first state; *round 1*: until the first message is made; *first step*: until a client's ``train`` is called, with its
  model and data at hand. Beside these, on the way: *actors up*, when the last client actor of round 1 has torch,
  the config and the data.
- *results*: from the last aggregation to the report; *exit*: from there to the end of the process.

In the same turn, as what nobody can go below: ``ray.init`` and ``import torch`` alone, each in a process of its own.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from raysim.methods.fedavg import FedAvg
from raysim.workloads.option_types import Help

if TYPE_CHECKING:
    from raysim.flat_model import FlatModel
    from raysim.method import ClientTask, Context, Message, Update, Updates, Vector
    from raysim.workloads.federated_data import ClientData

RAY = (
    "import time; a = time.time(); import ray; b = time.time(); "
    "ray.init('local', include_dashboard={dashboard}, log_to_driver=False, logging_level='ERROR'); "
    "c = time.time(); ray.shutdown(); print(b - a, c - b, time.time() - c)"
)
TORCH = "import time; a = time.time(); import torch; print(time.time() - a)"
STAGES = ("launching", "driver up", "data", "round 1", "first step")


@dataclass(frozen=True)
class Marked(FedAvg):
    """FedAvg that appends "what, process, clock" to a file at each call of the engine."""

    marks: Annotated[str, Help("the file")] = ""

    def mark(self, what: str) -> None:
        if self.marks:
            with Path(self.marks).open("a") as file:
                file.write(f"{what} {os.getpid()} {time.time()}\n")

    def __getstate__(self) -> dict[str, Any]:
        self.mark("sent")
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)
        self.mark("received")

    def init_server(self, model: FlatModel) -> Vector:
        self.mark("server")
        server: Vector = super().init_server(model)
        return server

    def message(self, server: Vector, client: int) -> Message:
        self.mark("message")
        return super().message(server, client)

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: Any, task: ClientTask
    ) -> tuple[Update, None]:
        self.mark("train")
        return super().train(model, data, message, state, task)

    def aggregate(self, server: Vector, updates: Updates, context: Context) -> Vector:
        aggregated: Vector = super().aggregate(server, updates, context)
        self.mark("aggregated")
        return aggregated


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("options", nargs="*", help="options of raysim.launch, after --")
    arguments = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # without cached bytecode every process compiles torch anew
    os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parent.parent)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for _ in range(arguments.repeats):
        for dashboard in (True, False):
            name = f"dashboard {'on' if dashboard else 'off'}"
            for part, seconds in one_run(dashboard, arguments.options).items():
                found[name][part].append(seconds)
            imported, started, ended = numbers(RAY.format(dashboard=dashboard))
            found[name]["import ray alone"].append(imported)
            found[name]["ray.init alone"].append(started)
            found[name]["ray.shutdown alone"].append(ended)
            found[name]["import torch alone"].append(numbers(TORCH)[0])
    show(found)


def one_run(dashboard: bool, options: Iterable[str]) -> dict[str, float]:
    """Seconds of each stage of one launch."""
    with tempfile.TemporaryDirectory() as directory:
        folder, marks = Path(directory) / "run", Path(directory) / "marks"
        command = [sys.executable, "-m", "raysim.launch", "--method", "benchmarks.startup:Marked"]
        command += ["--workload", "digits", "--rounds", "2", *options, "--method.marks", str(marks)]
        command += ["--engine.dashboard", str(dashboard).lower(), "--output", str(folder)]
        started = time.time()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=directory)
        ended = time.time()
        report = (folder / "report.html").stat().st_mtime
        lines = [line.split() for line in marks.read_text().splitlines()]
    times: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for what, process, clock in lines:
        times[what].append((float(clock), int(process)))
    driver = times["server"][0][1]
    trainers = {process for _, process in times["train"]}
    arrived = next(clock for clock, process in times["received"] if process == driver)
    points = [
        started,
        # The last time: the launching process also pickles the config before Ray starts, to see whether it can be sent.
        max(clock for clock, _ in times["sent"] if clock < arrived),
        arrived,
        times["server"][0][0],
        times["message"][0][0],
        times["train"][0][0],
    ]
    found = {stage: after - before for stage, before, after in zip(STAGES, points, points[1:], strict=False)}
    first_received = [min(clock for clock, process in times["received"] if process == one) for one in trainers]
    return found | {
        "start to first step": points[-1] - started,
        "(start to actors up)": max(first_received) - started,
        "results": report - times["aggregated"][-1][0],
        "exit": ended - report,
        "last round to exit": ended - times["aggregated"][-1][0],
        "whole run": ended - started,
    }


def numbers(code: str) -> list[float]:
    """The output of a Python process of its own."""
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    return [float(number) for number in output.split()]


def show(found: dict[str, dict[str, list[float]]]) -> None:
    names = list(found)
    print(f"| median seconds (smallest, largest) | {' | '.join(names)} |")
    print("|---|" + "---|" * len(names))
    for part in found[names[0]]:
        cells = [
            f"{statistics.median(times):.2f} ({min(times):.2f}, {max(times):.2f})"
            for times in (found[name][part] for name in names)
        ]
        print(f"| {part} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
