"""How busy client actors are in a run whose server steps take updates of several versions (FedBuff).

``python -m benchmarks.busy [--actors 2] [--steps 20] [--turns 3]``: 100 clients on log-normal phones, K = 10, 20 at a
time, a CNN on synthetic images of CIFAR's shape, evaluated at every tenth step. The share is Σ seconds of client tasks
/ (actors × seconds of all rounds); evaluation, which is the actors' work too, does not count. The baseline is the same
with rounds of 10 clients, in which actors wait for the round's last task, the aggregation and the evaluation. Turns
alternate, and each line is the median.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

from raysim.config.run_config import build
from raysim.simulation import run

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
    "pictures": False,
}
MODES: dict[str, dict[str, Any]] = {
    "FedBuff": {"timing.mode": "buffered", "timing.buffer": 10, "timing.concurrency": 20},
    "rounds": {"schedule.sampling_rate": 0.1},
}


def busy(mode: str, actors: int, steps: int) -> float:
    """The share of one run."""
    with tempfile.TemporaryDirectory() as folder:
        own = {"schedule.rounds": steps, "engine.actors": actors, "output": str(Path(folder) / "run")}
        result = run(build([COMMON | MODES[mode] | own]))
        spent, wall = result.clients["seconds_task"].sum(), result.rounds["seconds_round"].sum()
    return float(spent / (actors * wall))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    shares: dict[str, list[float]] = {mode: [] for mode in MODES}
    for _ in range(options.turns):
        for mode, found in shares.items():
            found.append(busy(mode, options.actors, options.steps))
    for mode, found in shares.items():
        turns = ", ".join(f"{share:.1%}" for share in found)
        print(f"{mode}: actors busy with client tasks {statistics.median(found):.1%} of the time ({turns})")


if __name__ == "__main__":
    main()
