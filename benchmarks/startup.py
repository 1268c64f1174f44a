"""From the start of a process to its first local step, and from its last round to its end, split into stages.

    python -m benchmarks.startup                  # fedavg on digits, with and without Ray's dashboard in turn
    python -m benchmarks.startup --repeats 5 --rows docs/results/startup.csv
    python -m benchmarks.startup -- --workload synthetic --model mobilenet

Each run is a ``python -m raysim.launch`` of its own with :class:`Marked`, which is FedAvg that writes down the clock
whenever the engine calls it. So the stages need nothing from the engine but the contract of a method:

- *launching*: from the start of the process until the config is sent to the driver, which is right after Ray is up;
- *driver up*: until the driver's process has it; *data*: until the driver has torch, the data, a model and the server's
  first state; *round 1*: until the first message is made; *first step*: until a client's ``train`` is called, with its
  model and data at hand. Beside these, on the way: *actors up*, when the last client actor of round 1 has torch,
  the config and the data.
- *results*: from the last aggregation to the report; *exit*: from there to the end of the process.

*CPU* is the processor time that each kind of process has taken when the first step begins. It depends less on what else
the machine does than the clock, and with as few cores as two the start takes no less than its sum over the cores.

In the same turn, as a floor: ``ray.init`` and ``import torch`` alone, each in a process of its own.
``--memory`` adds a run of each kind whose memory is looked at, by kind of process (proportional set sizes at the peak);
its rows go to ``--memory-rows``.
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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from benchmarks.memory import descendants, proportional_set_size
from benchmarks.published import add, machine
from raysim.actors.own_ray import processor_time
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
OTHERS = "dashboard, autoscaler, others"
KINDS = (
    "launching process",
    "fork server",
    "driver",
    "client actors",
    "raylet and control store",
    "Ray's agents",
    OTHERS,
)
LOOK = 0.02
"""Seconds between two looks at a run."""
PAUSE = 0.25
"""Seconds between two looks at its memory, which take the system some ten milliseconds a process."""
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
    parser.add_argument("--rows", type=Path, help="the CSV file that a row of each run is added to")
    parser.add_argument("--memory", action="store_true", help="one more run of each kind, for its memory")
    parser.add_argument("--memory-rows", type=Path, help="the CSV file that a row of each of these is added to")
    parser.add_argument("options", nargs="*", help="options of raysim.launch, after --")
    arguments = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # without cached bytecode every process compiles torch anew
    os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parent.parent)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for _ in range(arguments.repeats):
        for dashboard in (True, False):
            name, load = f"dashboard {'on' if dashboard else 'off'}", os.getloadavg()[0]
            figures = one_run(dashboard, arguments.options) | alone(dashboard)
            for part, seconds in figures.items():
                found[name][part].append(seconds)
            if arguments.rows:
                row = {"run": name, "options": " ".join(arguments.options), "load_before": round(load, 1)}
                add(arguments.rows, row | {part: round(value, 3) for part, value in figures.items()} | machine())
    show(found, "median seconds (smallest, largest)")
    if arguments.memory:
        peaks = {
            name: {part: [size / 1024] for part, size in memory(dashboard, arguments.options).items()}
            for name, dashboard in (("dashboard on", True), ("dashboard off", False))
        }
        show(peaks, "MiB at the peak (proportional set sizes)")
        for name, parts in peaks.items() if arguments.memory_rows else ():
            mebibytes = {part: round(size) for part, (size,) in parts.items()}
            add(arguments.memory_rows, {"run": name, "options": " ".join(arguments.options)} | mebibytes | machine())


def alone(dashboard: bool) -> dict[str, float]:
    """Seconds of Ray and torch by themselves, which a run cannot go below."""
    imported, started, ended = numbers(RAY.format(dashboard=dashboard))
    names = ("import ray alone", "ray.init alone", "ray.shutdown alone", "import torch alone")
    return dict(zip(names, (imported, started, ended, numbers(TORCH)[0]), strict=True))


@contextmanager
def launched(dashboard: bool, options: Iterable[str]) -> Iterator[tuple[subprocess.Popen[bytes], Path, Path]]:
    """A launch of its own: the process, the file of its marks, and its run folder, until they are gone."""
    with tempfile.TemporaryDirectory() as directory:
        folder, marks = Path(directory) / "run", Path(directory) / "marks"
        marks.touch()
        command = [sys.executable, "-m", "raysim.launch", "--method", "benchmarks.startup:Marked"]
        command += ["--workload", "digits", "--rounds", "2", *options, "--method.marks", str(marks)]
        command += ["--engine.dashboard", str(dashboard).lower(), "--output", str(folder)]
        with (Path(directory) / "output").open("w+") as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=directory)
            yield process, marks, folder
            if process.wait():
                output.seek(0)
                raise SystemExit(f"the run ended with code {process.returncode}:\n{output.read()[-4000:]}")


def one_run(dashboard: bool, options: Iterable[str]) -> dict[str, float]:
    """Seconds of each stage of one launch, and processor seconds up to its first step."""
    spent: dict[str, float] = {}
    started = time.time()
    with launched(dashboard, options) as (process, marks, folder):
        while process.poll() is None and not spent:
            time.sleep(LOOK)
            if "train " in marks.read_text():
                spent = processor_seconds(process.pid)
        process.wait()
        ended = time.time()
        if not process.returncode:
            report = (folder / "report.html").stat().st_mtime
            found = stages(started, report, ended, marks.read_text().splitlines())
    return found | {f"CPU {part}": seconds for part, seconds in spent.items()} | {"CPU, all": sum(spent.values())}


def stages(started: float, report: float, ended: float, lines: Iterable[str]) -> dict[str, float]:
    """Seconds of each stage.

    Args:
        started: when the process started, ``report`` when its report was written, ``ended`` when it ended.
        lines: those of the file of marks, "what, process, clock".
    """
    times: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for what, process, clock in map(str.split, lines):
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


def processor_seconds(root: int) -> dict[str, float]:
    """Processor seconds that the process and all that it started have taken, by kind."""
    found = dict.fromkeys(KINDS, 0.0)
    for process in descendants(root):
        found[kind(process, root)] += processor_time(process) / os.sysconf("SC_CLK_TCK")
    return found


def memory(dashboard: bool, options: Iterable[str]) -> dict[str, float]:
    """Kilobytes of all processes of one launch at its peak, by kind."""
    peak: dict[str, float] = {}
    with launched(dashboard, options) as (process, _, _):
        while process.poll() is None:
            sizes = dict.fromkeys(KINDS, 0.0)
            for one in descendants(process.pid):
                sizes[kind(one, process.pid)] += proportional_set_size(one)
            peak = max(peak, sizes, key=lambda each: sum(each.values()))
            time.sleep(PAUSE)
    return peak | {"all": sum(peak.values())}


def kind(process: int, root: int) -> str:
    """The kind of a process of the run that ``root`` has launched, one of :data:`KINDS`."""
    if process == root:
        return "launching process"
    try:
        words = (Path("/proc") / str(process) / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:  # it has ended
        return OTHERS
    if Path(words[0]).name in ("raylet", "gcs_server"):
        return "raylet and control store"
    if any(word.endswith("fork_server.py") for word in words[:4]):
        return "fork server"
    if any("agent" in word.lower() for word in words):
        return "Ray's agents"
    if words[0].startswith("ray::"):
        return "driver" if words[0].lower().startswith("ray::driver") else "client actors"
    return OTHERS


def numbers(code: str) -> list[float]:
    """The output of a Python process of its own."""
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    return [float(number) for number in output.split()]


def show(found: Mapping[str, Mapping[str, Sequence[float]]], heading: str) -> None:
    names = list(found)
    print(f"| {heading} | {' | '.join(names)} |")
    print("|---|" + "---|" * len(names))
    for part in found[names[0]]:
        cells = []
        for values in (found[name][part] for name in names):
            digits = 2 if max(values) < 100 else 0
            spread = f" ({min(values):.{digits}f}, {max(values):.{digits}f})" if len(values) > 1 else ""
            cells.append(f"{statistics.median(values):.{digits}f}{spread}")
        print(f"| {part} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
