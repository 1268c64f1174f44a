"""FedBuff among 100 clients of log-normal devices, raysim beside APPFL's ``vsim``: the order of events, and seconds.

``python -m benchmarks.vsim [--updates 1000] [--turns 3] [--actors 0] [--optimize-memory]``. Both train raysim's
``synthetic`` images (50 a client) with an MLP 3072-64-10, one epoch of one batch, all clients at a time; APPFL has
``base_step_time`` set, and collects no garbage unless ``--optimize-memory`` is given. With a buffer of one update
neither draws anything, so clients, staleness and times of all arrivals must agree, or the command fails. With a buffer
of ten they need not: APPFL gives a client whose update waits a new task, raysim does not. Seconds run from the start of
the simulation, when data and processes are there, to the last update; raysim's tables are in them, and no checkpoints,
as APPFL has none. Turns alternate, and each line is the median.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rounds import environments
from raysim import seeds
from raysim.config.run_config import RunConfig, build
from raysim.engine.observer import Silent
from raysim.running.simulation import run

CLIENTS, SAMPLES, STEP_SECONDS = 100, 50, 0.5
COMMON: dict[str, Any] = {
    "method.name": "fedavg",
    "workload.name": "synthetic",
    "workload.clients": CLIENTS,
    "workload.partition": "iid",
    "workload.local_test": "global",
    "workload.train_size": CLIENTS * SAMPLES,
    "model.name": "mlp",
    "model.hidden": (64,),
    "schedule.local_epochs": 1,
    "training.batch_size": SAMPLES,
    "training.learning_rate": 0.05,
    "evaluation.every": 1_000_000,
    "evaluation.client_limit": 1,
    "devices.preset": "trace",
    "devices.latency": 0.0,
    "engine.dashboard": False,
    "pictures": False,
}


def config(folder: Path, updates: int, buffer: int, actors: int) -> RunConfig:
    """raysim's run."""
    own = {
        "schedule.rounds": updates // buffer,
        "timing.mode": "buffered",
        "timing.buffer": buffer,
        "timing.concurrency": CLIENTS,
        "engine.checkpoint_every": 1_000_000,
        "devices.trace": str(folder / "trace.csv"),
        "engine.backend": "ray" if actors else "inline",
        "engine.actors": actors,
    }
    return build([COMMON | own])


def prepare(folder: Path) -> dict[str, Any]:
    """Write devices and samples for both; what APPFL is to do with them."""
    draw = np.random.default_rng(0)
    factors, bandwidths = np.exp(0.5 * draw.standard_normal((2, CLIENTS)))
    bandwidths *= 20.0
    with (folder / "trace.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["seconds_per_sample", "bandwidth_down", "bandwidth_up"])
        rows.writerows(zip(STEP_SECONDS * factors / SAMPLES, bandwidths, bandwidths, strict=True))
    settings = config(folder, 1, 1, 0)
    federation = settings.workload.load(lambda purpose: seeds.numpy_generator(settings.seed, purpose))
    arrays: dict[str, Any] = {}
    for client in range(CLIENTS):
        (batch,) = federation.client(client, "cpu", channels_last=False).train.batches(10 * SAMPLES)
        arrays |= {f"x{client}": batch.x.numpy(), f"y{client}": batch.y.numpy()}
        assert len(batch) == SAMPLES, f"client {client} has {len(batch)} samples"
    np.savez(folder / "data.npz", **arrays)
    return {
        "data": str(folder / "data.npz"),
        "factors": factors.tolist(),
        "bandwidths": bandwidths.tolist(),
        "step_seconds": STEP_SECONDS,
        "batch_size": SAMPLES,
        "learning_rate": 0.05,
        "concurrency": CLIENTS,
    }


class Clock(Silent):
    """When the simulation began, after the data were loaded, and when the last round ended: wall and processor time."""

    def __init__(self) -> None:
        self.began = self.ended = (0.0, 0.0)

    def preparing(self, label: str, done: int, total: int) -> None:
        if label == "building the model" and not done:
            self.began = time.perf_counter(), time.process_time()

    def placed(self, plan: str) -> None:
        if self.began == (0.0, 0.0):  # on Ray: now all actors are there
            self.began = time.perf_counter(), time.process_time()

    def round_finished(self, row: Any) -> None:
        self.ended = time.perf_counter(), time.process_time()


def raysim(folder: Path, updates: int, buffer: int, actors: int) -> dict[str, Any]:
    """Arrivals (client, virtual seconds, staleness) in order, and seconds."""
    clock = Clock()
    with tempfile.TemporaryDirectory() as output:
        settings = replace(config(folder, updates, buffer, actors), output=str(Path(output) / "run"))
        result = run(settings, observer=clock)
        rows = result.clients.sort_values(["arrived", "round"])[["client", "arrived", "staleness"]]
    wall, processor = (after - before for before, after in zip(clock.began, clock.ended, strict=True))
    return {"arrivals": rows.to_numpy().tolist(), "seconds": wall, "cpu": processor}


def appfl(folder: Path, updates: int, buffer: int, python: str, task: dict[str, Any]) -> dict[str, Any]:
    """The same of APPFL."""
    path, result = folder / "task.json", folder / "result.json"
    path.write_text(json.dumps(task | {"updates": updates, "buffer": buffer, "result": str(result)}))
    script = Path(__file__).with_name("appfl_run.py")
    done = subprocess.run([python, str(script), str(path)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, Any] = json.loads(result.read_text())
    return found


def compare(ours: list[Any], theirs: list[Any]) -> bool:
    """Whether all updates arrive from the same clients, equally stale, and at the same time up to rounding; says so."""
    first, second = np.array(ours), np.array(theirs)
    if len(first) != len(second) or (first[:, (0, 2)] != second[:, (0, 2)]).any():
        print("order of arrivals and staleness DIFFER")
        return False
    apart = float(np.abs(first[:, 1] - second[:, 1]).max())
    print(f"{len(first)} arrivals: clients and staleness agree, times are at most {apart:.1e} virtual seconds apart")
    return apart < 1e-6


def main() -> int:
    """The command line; 1 if the order of events differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--actors", type=int, default=0, help="of raysim; 0: in one process, as APPFL")
    parser.add_argument("--appfl", default="", help="an interpreter that has APPFL; by default one is made with uv")
    parser.add_argument(
        "--optimize-memory", action="store_true", help="as APPFL's default has it: garbage is collected at every update"
    )
    options = parser.parse_args()
    python, same = options.appfl or environments.python("appfl", environments.CACHE), True
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        task = prepare(folder) | {"optimize_memory": options.optimize_memory}
        systems: dict[str, Callable[[int], dict[str, Any]]] = {
            "APPFL": lambda buffer: appfl(folder, options.updates, buffer, python, task),
            "raysim": lambda buffer: raysim(folder, options.updates, buffer, options.actors),
        }
        raysim(folder, 10, 1, options.actors)  # what is imported late is imported now
        for buffer in (1, 10):
            results = {name: list[dict[str, Any]]() for name in systems}
            for _ in range(options.turns):
                for name, system in systems.items():
                    results[name].append(system(buffer))
            if buffer == 1:
                same = compare(results["raysim"][0]["arrivals"], results["APPFL"][0]["arrivals"])
            medians = {
                name: tuple(statistics.median(one[what] for one in found) for what in ("seconds", "cpu"))
                for name, found in results.items()
            }
            for name, (wall, processor) in medians.items():
                print(f"buffer of {buffer}: {name} {wall:.2f} s, {processor:.2f} s of processor time", flush=True)
            ratios = [own / other for own, other in zip(medians["raysim"], medians["APPFL"], strict=True)]
            print(
                f"buffer of {buffer}: raysim to APPFL {ratios[0]:.2f}x, of processor time {ratios[1]:.2f}x", flush=True
            )
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
