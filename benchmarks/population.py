"""Growth of time and memory with the number of clients: tables for docs/scale.md.

    python -m benchmarks.population sizes      # 10³ to 10⁷ clients that exist, 100 of them a round
    python -m benchmarks.population states     # clients' states larger than the object store
    python -m benchmarks.population updates    # a round's updates larger than the object store

Every run is a process of its own on a local Ray of its own (two actors, no dashboard). Memory is the peak of all its
processes as the sum of their proportional set sizes; seconds a round are medians over rounds without evaluation and
without the first, if there are any; of loading and the engine processor seconds. ``--rows FILE`` adds the rows to a
CSV file, ``--turns N`` measures all sizes N times, in turns, and gives medians. The data are views
of scikit-learn's digits unless ``--set`` says otherwise: ``--set method.name=fedbn model.name=mobilenet``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from benchmarks.memory import descendants, proportional_set_size
from benchmarks.published import add
from raysim.engine.observer import Silent

BASE: dict[str, Any] = {
    "workload.name": "digits",
    "workload.partition": "views",
    "model.name": "mlp",
    "schedule.local_epochs": 1,
    "engine.actors": 2,
    "engine.dashboard": False,
    "evaluation.every": 1000,
}
MEBIBYTE = 1 << 20


class Watch(Silent):
    """Notes when the first round began."""

    def __init__(self) -> None:
        self.began = 0.0

    def round_started(self, round: int, local_epochs: int, participants: int) -> None:
        self.began = self.began or time.perf_counter()


def child(options: dict[str, Any], store: int, spill: str) -> dict[str, Any]:
    """One run in this process."""
    import torch  # noqa: F401 - its start is not ours

    from raysim.config.run_config import build
    from raysim.engine.load_federation import load_federation
    from raysim.running.simulation import run
    from raysim.workloads.parallel_map import Sequential

    config = build([options])
    started = time.process_time()
    federation = load_federation(config, Sequential())
    measured: dict[str, Any] = {"load": time.process_time() - started, "pickled": len(pickle.dumps(federation))}
    measured["engine"] = _engine_seconds(config, federation, Path(options["output"] + "-engine"))
    if config.engine.backend == "ray" and store:
        import ray

        ray.init(
            "local",
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            object_store_memory=store,
            object_spilling_directory=spill,
        )
    started, watch = time.perf_counter(), Watch()
    result = run(config, observer=watch)
    rounds = result.rounds
    plain = rounds[rounds["accuracy"].isna()].iloc[1:]
    if plain.empty:
        plain = rounds
    measured["first"] = watch.began - started
    for name in ("train", "aggregate", "round"):
        measured[name] = float(plain[f"seconds_{name}"].median())
    measured["digest"] = _digest(result.folder)
    return measured


def _engine_seconds(config: Any, federation: Any, path: Path) -> float:
    """Processor seconds from loaded data to the plan of the first round, without Ray, after one model was built."""
    from raysim.client_side.worker import Worker
    from raysim.driver.drive import inline_pool
    from raysim.engine.cohort_run import Stopped
    from raysim.engine.observer import RunNotes
    from raysim.engine.rounds import Rounds
    from raysim.storage.run_folder import RunFolder

    Worker(config, federation).model(0)
    folder = RunFolder.create(path, "", {})
    started = time.process_time()
    rounds = Rounds(
        config,
        Worker(config, federation),
        inline_pool(config, federation),
        RunNotes(folder, Silent()),
        lambda: True,
    )
    try:
        rounds.run()  # plans, makes all jobs, and is stopped before the first of them
    except Stopped:
        return time.process_time() - started
    raise RuntimeError("the run was not stopped")


def _digest(folder: Path) -> str:
    """Digest of everything that a run computed: losses of every client task, and the newest states."""
    from raysim.results.result import comparable, load_result
    from raysim.storage import checkpoint

    latest = checkpoint.newest_first(folder / "checkpoints")[0]
    found = hashlib.sha256(comparable(load_result(folder).clients).to_csv().encode())
    for path in sorted(latest.glob("*.safetensors")):
        found.update(path.read_bytes())
    return found.hexdigest()[:12]


def measure(options: dict[str, Any], store: int = 0) -> dict[str, Any]:
    """A run in a process of its own, with its peak memory and the most that it had on the disk by spilling."""
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".population-") as folder:
        spill = Path(folder) / "spill"
        spill.mkdir()
        options = BASE | options | {"output": f"{folder}/run"}
        command = [sys.executable, "-m", "benchmarks.population", "--child", json.dumps(options)]
        command += ["--store", str(store), "--spill", str(spill)]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        peak, spilled = 0, 0
        output: list[str] = []
        reader = threading.Thread(target=lambda: output.extend(running.stdout or ()))
        reader.start()
        while running.poll() is None:
            peak = max(peak, sum(proportional_set_size(process) for process in descendants(running.pid)))
            spilled = max(spilled, _bytes_in(spill))
            time.sleep(0.5)
        reader.join()
        if running.returncode:
            raise SystemExit(f"{options}: exit {running.returncode}")
        found: dict[str, Any] = json.loads(output[-1])
        return found | {"peak": peak * 1024, "spilled": spilled}


def _bytes_in(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:  # just removed
            continue
    return total


def sizes(options: dict[str, Any], populations: list[int], sampled: int, turns: int) -> list[dict[str, Any]]:
    """A row for each population: medians over the turns, the largest peak of memory."""
    found: dict[int, list[dict[str, Any]]] = {clients: [] for clients in populations}
    loads = []
    for _ in range(turns):
        for clients, own in found.items():
            loads.append(os.getloadavg()[0])
            one = {"workload.clients": clients, "schedule.sampling_rate": sampled / clients, "schedule.rounds": 30}
            own.append(measure(one | options))
            print(f"{clients:,} clients: {own[-1]}", flush=True)
    return [
        {
            "method": options["method.name"],
            "clients": clients,
            "sampled": sampled,
            "turns": turns,
            "federation_kib": round(own[0]["pickled"] / 1024),
            "load_cpu_seconds": round(statistics.median(one["load"] for one in own), 3),
            "engine_cpu_milliseconds": round(1000 * statistics.median(one["engine"] for one in own), 1),
            "first_round_after_seconds": round(statistics.median(one["first"] for one in own), 1),
            "round_milliseconds": round(1000 * statistics.median(one["round"] for one in own), 1),
            "peak_mib": round(max(one["peak"] for one in own) / MEBIBYTE),
            "programs_at_work": round(statistics.median(loads), 1),
        }
        for clients, own in found.items()
    ]


def overflow(options: dict[str, Any], stores: list[int]) -> Iterator[dict[str, Any]]:
    """Print and yield a row for each object store."""
    print("| object store | round | of it aggregation | peak memory | spilled | digest |\n" + "|---:" * 6 + "|")
    for store in stores:
        found = measure(options | ({} if store else {"engine.backend": "inline"}), store)
        name = f"{store / MEBIBYTE:.0f} MiB" if store else "in this process"
        print(
            f"| {name} | {found['round']:.2f} s | {found['aggregate']:.2f} s | {found['peak'] / MEBIBYTE:.0f} MiB "
            f"| {found['spilled'] / MEBIBYTE:.0f} MiB | {found['digest']} |",
            flush=True,
        )
        yield {
            "method": options["method.name"],
            "clients": options["workload.clients"],
            "store_mib": store // MEBIBYTE,
            "round_seconds": round(found["round"], 2),
            "aggregate_seconds": round(found["aggregate"], 2),
            "peak_mib": round(found["peak"] / MEBIBYTE),
            "spilled_mib": round(found["spilled"] / MEBIBYTE),
            "digest": found["digest"],
            "programs_at_work": round(os.getloadavg()[0], 1),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("sizes", "states", "updates"))
    parser.add_argument("--populations", type=int, nargs="+", default=[10**3, 10**4, 10**5, 10**6, 10**7])
    parser.add_argument("--sampled", type=int, default=100, help="clients of a round, for sizes")
    parser.add_argument("--turns", type=int, default=1, help="how often all sizes are measured, one after another")
    parser.add_argument("--rows", type=Path, help="CSV file that the rows are added to")
    parser.add_argument("--stores", type=int, nargs="+", default=[80, 2048, 0], help="MiB; 0: without Ray")
    parser.add_argument("--set", nargs="*", default=[], metavar="OPTION=VALUE", help="over the run's options")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--store", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--spill", default="", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        print(json.dumps(child(json.loads(asked.child), asked.store, asked.spill)))
        return
    extra = {name: yaml.safe_load(value) for name, _, value in (pair.partition("=") for pair in asked.set)}
    if asked.what == "sizes":
        rows = sizes({"method.name": "fedavg"} | extra, asked.populations, asked.sampled, asked.turns)
        print(pd.DataFrame(rows).to_string(index=False))
        if asked.rows:
            for row in rows:
                add(asked.rows, row)
        return
    # 77 thousand values, 0.3 MB: a thousand of them are four times the smaller store, as 9 MB are of one of 2 GiB.
    options: dict[str, Any] = {"workload.clients": 1000, "schedule.rounds": 5}
    if "model.name" not in extra:
        options["model.hidden"] = 1024
    if asked.what == "states":
        options |= {"method.name": "local", "engine.checkpoint_every": 3}
    else:
        options |= {"method.name": "fedld"}
    for row in overflow(options | extra, [store * MEBIBYTE for store in asked.stores]):
        if asked.rows:
            add(asked.rows, row)


if __name__ == "__main__":
    main()
