"""A long run under faults: bit for bit the undisturbed one, and nothing leaks.

    python -m benchmarks.soak                              # 500 rounds, a random fault every 5 s
    python -m benchmarks.soak --rounds 100 --every 3 --method local

A cluster of three raylets on this machine (a head without a core for clients, two workers with one each) does the run
through the command line, while a fault of a random kind is made again and again: a client actor is killed, or frozen
past the deadline; a worker node is killed, and another takes its place; the driver is killed. At the end the tables and
checkpoints are compared with those of the same run in one process. Before, during and after it counts what could leak.
Exit code 1 if anything differs or the run does not end well.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.memory import descendants

FAULTS = ("kill actor", "freeze actor", "kill node", "kill driver")
DEADLINE = 10
HEALTH = {  # a node is found dead after two seconds instead of twenty
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 4,
}


class Machines:
    """The cluster, and the faults."""

    def __init__(self, chance: random.Random) -> None:
        from ray.cluster_utils import Cluster

        self._chance = chance
        head = {"num_cpus": 0, "include_dashboard": False, "_system_config": HEALTH}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.workers = [self.cluster.add_node(num_cpus=1) for _ in range(2)]

    def fault(self, kind: str) -> bool:
        """Make a fault; false if there is nothing to make it on at the moment."""
        if kind == "kill node":
            self.cluster.remove_node(self.workers.pop(self._chance.randrange(2)), allow_graceful=False)
            self.workers.append(self.cluster.add_node(num_cpus=1))
            return True
        found = named("ray::DriverActor" if kind == "kill driver" else "ray::ClientActor", "ray::train[")
        if not found:
            return False
        os.kill(self._chance.choice(found), signal.SIGSTOP if kind == "freeze actor" else signal.SIGKILL)
        return True


def named(*titles: str) -> list[int]:
    """Our processes whose titles begin so."""
    return sorted(process for process in descendants(os.getpid()) if process_title(process).startswith(titles))


def process_title(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def handles(process: int) -> int:
    try:
        return len(os.listdir(f"/proc/{process}/fd"))  # noqa: PTH208 - names only
    except OSError:
        return 0


def size(folder: Path) -> int:
    """Bytes on the disk of all files below, each counted once."""
    seen: dict[int, int] = {}
    for path in folder.rglob("*"):
        try:
            status = path.lstat()
        except OSError:
            continue
        seen[status.st_ino] = status.st_blocks * 512
    return sum(seen.values())


def store_bytes() -> float:
    """Bytes in the object stores of all nodes that are alive."""
    import ray
    from ray._private.internal_api import node_stats

    used = 0.0
    for node in ray.nodes():
        if node["Alive"]:
            try:
                found = node_stats(node["NodeManagerAddress"], node["NodeManagerPort"], False)
            except Exception:  # it died just now
                continue
            used += found.store_stats.object_store_bytes_used
    return used


def measure(folder: Path, machines: Machines, temporary: Path) -> dict[str, float]:
    raylets = [worker.all_processes["raylet"][0].process.pid for worker in machines.workers]
    head_node: Any = machines.cluster.head_node
    head = head_node.all_processes["raylet"][0].process.pid
    drivers = named("ray::DriverActor")
    actors = named("ray::ClientActor", "ray::train[", "ray::evaluate[")
    return {
        "processes": len(list(descendants(os.getpid()))),
        "client actors": len(actors),
        "driver actors": len(drivers),
        "handles of the driver": max(map(handles, drivers), default=0),
        "handles of the head's raylet": handles(head),
        "handles of the workers' raylets": max(map(handles, raylets)),
        "object store, MB": store_bytes() / 1e6,
        "Ray's folder, MB": size(temporary) / 1e6,
        "run folder, MB": size(folder) / 1e6,
    }


def round_of(folder: Path) -> int:
    try:
        return int(json.loads((folder / "status.json").read_text())["round"])
    except (OSError, ValueError, KeyError):
        return 0


def disturb(
    process: subprocess.Popen[bytes], machines: Machines, every: float, chance: random.Random, look: Callable[[], int]
) -> Counter[str]:
    """Faults until the run ends; ``look`` measures, and gives the round."""
    made: Counter[str] = Counter()
    furthest = 0
    while process.poll() is None:
        try:
            process.wait(every)
        except subprocess.TimeoutExpired:
            kind = chance.choice(FAULTS)
            reached = look()
            # A driver that dies again and again before a new round is whole is given up, and rightly so.
            if kind == "kill driver" and reached <= furthest:
                continue
            if machines.fault(kind):
                made[kind] += 1
                furthest = max(furthest, reached) if kind == "kill driver" else furthest
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two faults")
    parser.add_argument("--method", default="local", help="local keeps state with clients: nodes take it with them")
    parser.add_argument("--model", default="cnn")
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--local_epochs", type=int, default=4, help="of a round: how long it takes")
    parser.add_argument("--seed", type=int, default=0, help="of the faults")
    parser.add_argument("--output", type=Path, help="write all that was measured to this JSON file")
    options = parser.parse_args()
    temporary = Path(tempfile.mkdtemp(prefix="soak-"))
    os.environ |= {"RAY_TMPDIR": str(temporary / "r"), "RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
    os.environ["RAY_AUTH_MODE"] = "disabled"  # of all processes alike; only loopback is involved
    (temporary / "r").mkdir()
    try:
        return soak(options, temporary)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def soak(options: argparse.Namespace, temporary: Path) -> int:
    import ray

    from tests.fingerprint import fingerprint

    common = [
        f"--method={options.method}",
        f"--model={options.model}",
        f"--workload.clients={options.clients}",
        f"--rounds={options.rounds}",
        f"--local_epochs={options.local_epochs}",
        "--evaluation.every=10",
        "--engine.checkpoint_every=2",
    ]
    launch = [sys.executable, "-m", "raysim.launch", *common]
    calm, folder = temporary / "undisturbed", temporary / "run"
    subprocess.run([*launch, "--engine.backend=inline", f"--output={calm}"], check=True, stderr=subprocess.DEVNULL)
    chance = random.Random(options.seed)
    machines = Machines(chance)
    ray.init(address=machines.cluster.address, log_to_driver=False, logging_level=logging.ERROR)
    samples: list[tuple[int, dict[str, float]]] = []

    def look() -> int:
        reached = round_of(folder)
        samples.append((reached, measure(folder, machines, temporary / "r")))
        return reached - 1  # is whole

    try:
        before = measure(folder, machines, temporary / "r")
        started = time.monotonic()
        arguments = [f"--engine.address={machines.cluster.address}", f"--engine.task_deadline={DEADLINE}"]
        with (temporary / "log").open("wb") as log:
            process = subprocess.Popen([*launch, *arguments, f"--output={folder}"], stderr=log, stdout=log)
            try:
                made = disturb(process, machines, options.every, chance, look)
            finally:
                process.kill()  # no-op after its end
        seconds = time.monotonic() - started
        time.sleep(8.0)  # frozen processes are killed five seconds after they are given up
        after = measure(folder, machines, temporary / "r")
    finally:
        ray.shutdown()
        machines.cluster.shutdown()
    text = (temporary / "log").read_text(errors="replace")
    if process.returncode:
        print(text[-5000:])
        print(f"the run ended with exit code {process.returncode}")
        return 1
    equal = fingerprint(folder) == fingerprint(calm)
    log_lines = (folder / "run.log").read_text().splitlines()
    returns = sum("the run goes on from" in line or "starts again from" in line for line in log_lines)
    status = json.loads((folder / "status.json").read_text())
    print(
        f"{options.rounds} rounds of {options.method}, {seconds:.0f} s; "
        f"faults: {', '.join(f'{count} x {kind}' for kind, count in made.items()) or 'none'}; "
        f"{status['counts']['requeued']} client tasks done again, {returns} times back to a checkpoint"
    )
    print(f"bit for bit equal to the undisturbed run: {'yes' if equal else 'NO'}\n")
    rows = table(before, after, samples)
    print("\n".join(rows))
    if options.output:
        found = {"options": vars(options) | {"output": str(options.output)}, "faults": made, "equal": equal}
        found |= {"seconds": seconds, "returns": returns, "before": before, "after": after, "samples": samples}
        options.output.write_text(json.dumps(found, indent=1) + "\n")
    return 0 if equal else 1


def table(before: dict[str, float], after: dict[str, float], samples: list[tuple[int, dict[str, float]]]) -> list[str]:
    """Before the run, middle and most while it went on, after it, and the slope over samples: growth in 100 of them."""
    lines = ["| | before | median | most | after | growth per 100 faults |", "|---|---|---|---|---|---|"]
    for name in before:
        values = np.array([sample[name] for _, sample in samples] or [before[name]])
        # The first few belong to the start.
        late = values[len(values) // 5 :]
        slope = float(np.polyfit(np.arange(len(late)), late, 1)[0]) * 100 if len(late) > 2 else float("nan")
        cells = (before[name], float(np.median(values)), float(values.max()), after[name], slope)
        lines.append(f"| {name} | " + " | ".join(f"{value:.1f}".removesuffix(".0") for value in cells) + " |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
