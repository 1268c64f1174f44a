"""How busy client actors are in a run whose server steps take updates of several versions (FedBuff).

``python -m benchmarks.busy [--actors 2] [--steps 20] [--turns 3]``: 100 clients on log-normal phones, K = 10, 20 at a
time, a CNN on synthetic images of CIFAR's shape, evaluated at every tenth step. Two shares of actors × seconds of all
rounds, from the profile of the run: at client tasks, and with a call (client tasks or evaluation, from when it is sent
to a free actor until it returns). The rest is waiting for the driver. The baseline is the same with rounds of 10
clients, in which actors wait for the round's last task, the aggregation and the evaluation. Turns alternate, and the
last two lines are medians.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd

from raysim.config.run_config import build
from raysim.exchange.profile_marks import WAIT
from raysim.monitor.profiler import SLOTS
from raysim.running.simulation import run

COMMON: dict[str, Any] = {
    "method.name": "fedavg",
    "workload.name": "synthetic",
    "workload.train_size": 10_000,
    "workload.clients": 100,
    "model.name": "cnn",
    "schedule.local_epochs": 1,
    "training.batch_size": 50,
    "evaluation.every": 10,
    "evaluation.client_limit": 1,
    "devices.preset": "phones",
    "engine.dashboard": False,
    "engine.profile": True,
    "pictures": False,
}
MODES: dict[str, dict[str, Any]] = {
    "FedBuff": {"timing.mode": "buffered", "timing.buffer": 10, "timing.concurrency": 20},
    "rounds": {"schedule.sampling_rate": 0.1},
}


def busy(mode: str, actors: int, steps: int) -> tuple[float, float]:
    """The two shares of one run."""
    with tempfile.TemporaryDirectory() as folder:
        own = {"schedule.rounds": steps, "engine.actors": actors, "output": str(Path(folder) / "run")}
        result = run(build([COMMON | MODES[mode] | own]))
        table = pd.read_csv(result.folder / "profile.csv")
    slots = table[table["lane"] == SLOTS]
    seconds = slots["seconds"].sum()  # the mean over slots, of all rounds
    waiting = slots.loc[slots["phase"] == WAIT, "seconds"].sum()
    return float(result.clients["seconds_task"].sum() / (actors * seconds)), float(1 - waiting / seconds)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    shares: dict[str, list[tuple[float, float]]] = {mode: [] for mode in MODES}
    for _ in range(options.turns):
        for mode, found in shares.items():
            found.append(busy(mode, options.actors, options.steps))
            print(f"{mode}: at client tasks {found[-1][0]:.1%}, with a call {found[-1][1]:.1%}", flush=True)
    for mode, found in shares.items():
        tasks, calls = (statistics.median(column) for column in zip(*found, strict=True))
        print(f"{mode}, median of {len(found)}: at client tasks {tasks:.1%}, with a call {calls:.1%}")


if __name__ == "__main__":
    main()
