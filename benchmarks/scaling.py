"""How a round's time grows with clients, samples, parameters, calls, actors and nodes: tables of docs/scale.md.

    python -m benchmarks.scaling                     # everything, 3 turns
    python -m benchmarks.scaling clients nodes --turns 1 --rows docs/results/scaling.csv

Every line is a run of its own in a process of its own, lines take turns, and a line's time is the median over its
turns of the median over its rounds, without evaluation and without the first two. Beside it stands processor time of a
round, of all processes and of the driver alone, which other programs on the machine change less. Under a table stand
the straight line through its points (least squares of relative errors) and how far the worst point is from it, of
processor time. Training is on synthetic images of CIFAR's shape (calls, actors, nodes) or on views of scikit-learn's
digits. ``--rows FILE`` adds the rows to a CSV file.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.published import add
from benchmarks.startup import processor_seconds
from raysim.engine.observer import Silent

COMMON: dict[str, Any] = {
    "method.name": "fedavg",
    "schedule.local_epochs": 1,
    "schedule.rounds": 12,
    "training.batch_size": 50,
    "evaluation.every": 1000,
    "engine.actors": 2,
    "engine.dashboard": False,
}
VIEWS: dict[str, Any] = {
    "workload.name": "digits",
    "workload.partition": "views",
    "workload.test_share": 0.01,
    "model.name": "mlp",
}
IMAGES: dict[str, Any] = {
    "workload.name": "synthetic",
    "workload.train_size": 4000,
    "workload.partition": "iid",
    "workload.clients": 40,
    "model.name": "cnn",
    "schedule.rounds": 5,
}
SHORT: dict[str, Any] = IMAGES | {
    "workload.train_size": 12500,
    "workload.clients": 200,
    "model.name": "mlp",
    "model.hidden": 64,
    "schedule.rounds": 30,
}
"""Client tasks of a millisecond: what calls cost is much of a round."""


@dataclass(frozen=True)
class Line:
    """One run of a table."""

    size: float
    """The value that changes from run to run of the table."""
    options: dict[str, Any]
    nodes: tuple[int, ...] = ()
    """Cores of each node of a cluster beside a head without any; empty: Ray on this machine."""


TABLES: dict[str, tuple[str, list[Line]]] = {
    "clients": (
        "clients of a round, 100 samples each",
        [Line(n, VIEWS | {"workload.clients": n, "workload.view_samples": 101}) for n in (50, 100, 200, 400, 800)],
    ),
    "samples": (
        "samples a client, 40 clients",
        [
            Line(n, VIEWS | {"workload.clients": 40, "workload.view_samples": n * 100 // 99 + 1})
            for n in (50, 100, 200, 400, 800)
        ],
    ),
    "parameters": (
        "parameters of the model (75 a hidden unit), 40 clients of 100 samples",
        [
            Line(75 * n + 10, VIEWS | {"workload.clients": 40, "workload.view_samples": 101, "model.hidden": n})
            for n in (2_000, 8_000, 32_000, 128_000)
        ],
    ),
    "calls": (
        "calls of a round with 200 clients of 50 images, MLP (two are merged where more take one step)",
        [Line(-(-200 // n), SHORT | {"engine.block_size": n}) for n in (64, 32, 16, 8)],
    ),
    "actors": (
        "actors of one core, 40 clients of 80 images, CNN",
        [Line(n, IMAGES | {"engine.actors": n}) for n in (1, 2)],
    ),
    "nodes": (
        "nodes of one core each beside a head without any, as above",
        [Line(n, IMAGES | {"engine.actors": n, "engine.address": "auto"}, (1,) * n) for n in (1, 2)],
    ),
}


class Spent(Silent):
    """Notes the processor seconds of all processes, by kind, at the end of each round."""

    def __init__(self) -> None:
        self.at: list[dict[str, float]] = []

    def round_finished(self, row: Any) -> None:
        self.at.append(processor_seconds(os.getpid()))


def child(options: dict[str, Any], nodes: Sequence[int]) -> dict[str, float]:
    """Milliseconds of a round of one run in this process: the clock's, of all processors, and the driver's."""
    from raysim.config.run_config import build
    from raysim.running.simulation import run

    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        if nodes:
            import ray
            from ray.cluster_utils import Cluster

            cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
            stack.callback(cluster.shutdown)
            for cores in nodes:
                cluster.add_node(num_cpus=cores)
            ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
            stack.callback(ray.shutdown)
        spent = Spent()
        result = run(build([COMMON | options | {"output": f"{folder}/run"}]), observer=spent)
        seconds: list[float] = result.rounds["seconds_train"].add(result.rounds["seconds_aggregate"]).tolist()
        rounds, (first, last) = len(spent.at) - 2, (spent.at[1], spent.at[-1])
        return {
            "round": 1e3 * statistics.median(seconds[2:]),
            "processors": 1e3 * (sum(last.values()) - sum(first.values())) / rounds,
            "driver": 1e3 * (last["driver"] - first["driver"]) / rounds,
        }


def measure(line: Line) -> dict[str, float]:
    """Milliseconds of a round, from a process of its own."""
    command = [sys.executable, "-m", "benchmarks.scaling", "--child", json.dumps([line.options, line.nodes])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def straight_line(sizes: Sequence[float], seconds: Sequence[float]) -> tuple[float, float, float]:
    """Offset and slope of the line with the least squares of relative errors, and the largest relative error."""
    x, y = np.asarray(sizes, float), np.asarray(seconds, float)
    (offset, slope), *_ = np.linalg.lstsq(np.stack([1 / y, x / y], axis=1), np.ones_like(y), rcond=None)
    return float(offset), float(slope), float(np.abs((offset + slope * x) / y - 1).max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"of {', '.join(TABLES)}; default: all")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--rows", type=Path, help="CSV file that the rows are added to")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        print(json.dumps(child(*json.loads(asked.child))))
        return
    unknown = set(asked.tables) - set(TABLES)
    if unknown:
        parser.error(f"no table {', '.join(sorted(unknown))}; there are {', '.join(TABLES)}")
    for name in asked.tables or TABLES:
        for row in table(name, asked.turns):
            if asked.rows:
                add(asked.rows, row)


def table(name: str, count: int) -> list[dict[str, Any]]:
    """Measure and print a table; its rows."""
    about, lines = TABLES[name]
    load = os.getloadavg()[0]
    turns = [[measure(line) for line in lines] for _ in range(count)]
    rows: list[dict[str, Any]] = []
    print(f"\n{about}\n\n| {name} | a round, ms | of processors, ms | of the driver, ms |\n|---:|---:|---:|---:|")
    for line, found in zip(lines, zip(*turns, strict=True), strict=True):
        row = {part: round(statistics.median(one[part] for one in found), 1) for part in found[0]}
        print(f"| {line.size:,.0f} | {row['round']:.0f} | {row['processors']:.0f} | {row['driver']:.0f} |", flush=True)
        milliseconds = {f"{part}_milliseconds": taken for part, taken in row.items()}
        rows.append(
            {"table": name, "size": line.size, "turns": count, **milliseconds, "programs_at_work": round(load, 1)}
        )
    if len(lines) > 2:
        taken = [row["processors_milliseconds"] for row in rows]
        offset, slope, worst = straight_line([line.size for line in lines], taken)
        print(f"\n{offset:.0f} ms + {slope:.3g} ms each; the worst point is {worst:.0%} off", flush=True)
    return rows


if __name__ == "__main__":
    main()
