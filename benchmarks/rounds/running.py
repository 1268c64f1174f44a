"""One run of one system in a process of its own, with or without a look at its memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.memory import descendants, proportional_set_size
from benchmarks.rounds.task import FIRST_STEP, Result, Task, read_result

ROOT = Path(__file__).resolve().parents[2]
SAMPLING_SECONDS = 0.25


@dataclass(frozen=True)
class System:
    """A line of the table: a module of this package, with further options of the system's own command line."""

    name: str
    module: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    result: Result
    start_seconds: float
    """From the start of the process to the first local step of any worker."""
    memory: list[tuple[float, int]]
    """(time, bytes of all processes) at each look."""


class RunError(Exception):
    """A system did not finish."""


def run(system: System, interpreter: str, workload: str, data: Path, rounds: int, *, watch_memory: bool) -> Run:
    """Train this number of rounds; RunError with the end of the system's output if that fails."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        task = Task(workload, str(data), rounds, str(place / "result.json"), list(system.options))
        task.write(place / "task.json")
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            FIRST_STEP: str(place / "first_step"),
            "RAY_worker_niceness": "0",
        }
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # every process would compile its packages anew
        command = [interpreter, "-m", f"benchmarks.rounds.{system.module}", str(place / "task.json")]
        with (place / "output").open("w+") as output:
            launched = time.time()
            process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT)
            memory = _watch(process) if watch_memory else []
            code = process.wait()
            output.seek(0)
            text = output.read()
        if code or not (place / "result.json").exists():
            raise RunError(f"{system.name} on {workload} ended with code {code}:\n{text[-4000:]}")
        first_step = float((place / "first_step").read_text())
        return Run(read_result(place / "result.json"), first_step - launched, memory)


def _watch(process: subprocess.Popen[bytes]) -> list[tuple[float, int]]:
    memory = []
    while process.poll() is None:
        kilobytes = sum(map(proportional_set_size, descendants(process.pid)))
        memory.append((time.time(), kilobytes * 1024))
        time.sleep(SAMPLING_SECONDS)
    return memory


def peak(run: Run) -> int:
    """Bytes, until the last round's end: what follows (evaluation, reports) is not of the rounds."""
    end = run.result.starts[-1] + run.result.seconds[-1]
    return max((size for when, size in run.memory if when <= end), default=0)


def growth(run: Run) -> float:
    """Bytes a round: the least-squares slope after the first round and the first quarter of them, in which workers
    still meet new clients and keep their data; 0 with fewer than two looks."""
    import numpy as np

    starts = run.result.starts
    begin = starts[max(1, len(starts) // 4)]
    looks = [(when, size) for when, size in run.memory if begin <= when < starts[-1]]
    if len(looks) < 2:
        return 0.0
    rounds = np.interp([when for when, _ in looks], starts, range(len(starts)))
    return float(np.polyfit(rounds, [size for _, size in looks], 1)[0])


def log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
