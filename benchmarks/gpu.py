"""Everything about raysim that waits for a GPU, in about ten minutes; without a GPU it says so and ends with code 0.

    python -m benchmarks.gpu --rows rows.csv
    python -m benchmarks.gpu --rows docs/results/gpu.csv --table    # nothing is run: a page's table, of its rows

Federated averaging on synthetic images, four rounds, with 1, 4, 8 and 2 client actors on one GPU: W1 to W3 and P2 of
benchmarks/README.md and a ResNet-18, in float32, and P2 and ResNet-18 in bfloat16 too. A row has the median seconds of
all rounds but the first, the GPU's utilization and largest memory (of nvidia-smi, all processes together), and a digest
of the trained model: it must be the same for any number of actors. All cases come with one number of actors before the
next number, so that ``--minutes`` leaves out the last numbers, and says so. W2 has client tasks of one step, merged
into batches and not.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.published import add, machine
from benchmarks.rounds.raysim_models import MODELS
from benchmarks.rounds.task import WORKLOADS
from raysim.storage.proof_file import PROOF_NAME, read_proof
from raysim.units import counted

ROOT = Path(__file__).resolve().parent.parent
ACTORS = (1, 4, 8, 2)
"""The most wanted first."""
LOOK = 0.2
"""Seconds between two looks at the GPU."""
TEST_SAMPLES = 1000
ROUNDS = 4


@dataclass(frozen=True)
class Case:
    """A population with one model."""

    model: str
    clients: int
    samples: int
    batch_size: int
    sampling_rate: float = 1.0
    further: Mapping[str, object] = field(default_factory=dict)

    def words(self, actors: int, folder: Path) -> list[str]:
        """The options of raysim.launch for this number of actors on one GPU."""
        options = {
            "method": "fedavg",
            "model": self.model,
            "workload": "synthetic",
            "workload.train_size": self.clients * self.samples,
            "workload.test_size": TEST_SAMPLES,
            "workload.clients": self.clients,
            "workload.partition": "iid",
            "workload.local_test": "global",
            "training.batch_size": self.batch_size,
            "training.learning_rate": 0.05,
            "schedule.rounds": ROUNDS,
            "schedule.local_epochs": 1,
            "schedule.sampling_rate": self.sampling_rate,
            "evaluation.every": ROUNDS,
            "evaluation.client_limit": 1,
            "engine.actors": actors,
            "engine.gpus_per_client": 1 / actors,
            "engine.cpus_per_client": 0,
            "engine.dashboard": "false",
            "pictures": "false",
            "output": folder,
            **self.further,
        }
        return [word for name, value in options.items() for word in (f"--{name}", str(value))]


def of_rounds(name: str) -> Case:
    """A workload of images of benchmarks.rounds."""
    workload = WORKLOADS[name]
    options = MODELS[workload.model]
    model = f"{type(options).__module__}:{type(options).__name__}"
    share = workload.participants / workload.clients
    return Case(model, workload.clients, workload.samples, workload.batch_size, share)


def cases() -> dict[str, Case]:
    """Cases by name, the most wanted first."""
    bfloat = {"training.precision": "bf16"}
    small, residual, single = of_rounds("P2"), Case("resnet18", 16, 250, 50), of_rounds("W2")
    return {
        "P2": small,
        "ResNet-18": residual,
        "P2, bf16": replace(small, further=bfloat),
        "ResNet-18, bf16": replace(residual, further=bfloat),
        "W1": of_rounds("W1"),
        "W3": of_rounds("W3"),
        "W2": single,
        "W2, steps apart": replace(single, further={"engine.merge_single_steps": "false"}),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=Path, default=Path("gpu.csv"), help="the CSV file that rows are added to")
    parser.add_argument("--minutes", type=float, default=10.0, help="begin nothing after as many")
    parser.add_argument("--table", action="store_true", help="run nothing, print the rows as a table")
    options = parser.parse_args()
    if options.table:
        print("\n".join(table(options.rows)))
        return 0
    name = gpu_name()
    if not name:
        print("no GPU")
        return 0
    end = time.monotonic() + 60 * options.minutes
    return 0 if measure(cases(), end, options.rows, name) else 1


def measure(cases: Mapping[str, Case], end: float, rows: Path, gpu: str) -> bool:
    """Add the rows of all cases to the file; whether all runs finished, each case with the same bits.

    Args:
        end: of ``time.monotonic``, after which no run begins.
        gpu: its name.
    """
    digests: dict[str, set[str]] = {name: set() for name in cases}
    finished = True
    for actors, (name, case) in itertools.product(ACTORS, cases.items()):
        if time.monotonic() > end:
            print(f"left out, no time: {name} with {actors} actors")
            continue
        found = run(case, actors)
        if found is None:
            finished = False
            continue
        digests[name].add(found["digest"])
        row = {"case": name, "actors": actors, **found, "same_bits": len(digests[name]) == 1, "gpu": gpu} | machine()
        add(rows, row)
        print(row, flush=True)
    return finished and all(len(each) <= 1 for each in digests.values())


def table(rows: Path) -> list[str]:
    """The rows as lines of Markdown: a line for each case, its numbers of actors beside each other."""
    with rows.open(newline="", encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    numbers = sorted({int(row["actors"]) for row in found})
    header = ["", *(f"{counted(number, 'actor')}: s a round, busy, MiB" for number in numbers), "bits"]
    lines = [header, ["---"] * len(header)]
    for case in dict.fromkeys(row["case"] for row in found):
        own = {int(row["actors"]): row for row in found if row["case"] == case}
        alone = float(own[numbers[0]]["seconds_round"])
        cells = [_cell(own[number], alone) if number in own else "" for number in numbers]
        digests = {row["digest"] for row in own.values()}
        lines.append([case, *cells, "" if len(own) == 1 else "equal" if len(digests) == 1 else "**differ**"])
    return ["| " + " | ".join(line) + " |" for line in lines]


def _cell(row: Mapping[str, str], alone: float) -> str:
    seconds = float(row["seconds_round"])
    times = "" if seconds == alone else f" ({seconds / alone:.2f}x)"
    return f"{seconds:.3f}{times}, {float(row['utilization_percent']):.0f} %, {int(row['peak_mib']):,}"


def gpu_name() -> str:
    """The first GPU that torch can use; empty if there is none."""
    import torch

    return torch.cuda.get_device_name(0) if torch.cuda.is_available() else ""


def run(case: Case, actors: int) -> dict[str, Any] | None:
    """One run's figures; None if it failed, which has been said."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        looks: list[tuple[int, int]] = []
        with watched(looks):
            command = [sys.executable, "-m", "raysim.launch", *case.words(actors, folder)]
            done = subprocess.run(command, stdout=subprocess.DEVNULL, cwd=ROOT)
        if done.returncode:
            print(f"{case.model} with {actors} actors: code {done.returncode}; what it said is above", file=sys.stderr)
            return None
        return figures(folder, looks)


def figures(folder: Path, looks: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Those of a finished run, and of the looks at the GPU meanwhile."""
    with (folder / "rounds.csv").open(newline="") as file:
        first, *timed = csv.DictReader(file)
    busy = [use for use, _ in looks if use]
    servers = [entry.content["server"] for entry in read_proof(folder / PROOF_NAME) if "server" in entry.content]
    return {
        "seconds_train": median(float(row["seconds_train"]) for row in timed),
        "seconds_round": median(float(row["seconds_round"]) for row in timed),
        "seconds_first_round": float(first["seconds_round"]),
        "utilization_percent": round(sum(busy) / len(busy), 1) if busy else 0.0,
        "peak_mib": max((memory for _, memory in looks), default=0),
        "accuracy": float(timed[-1]["accuracy"]),
        "digest": servers[-1],
    }


@contextmanager
def watched(looks: list[tuple[int, int]]) -> Iterator[None]:
    """Meanwhile add (utilization in percent, MiB in use) of the first GPU at every look."""
    over = threading.Event()
    query = ["nvidia-smi", "--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits", "--id=0"]

    def look() -> None:
        while not over.wait(LOOK):
            text = subprocess.run(query, capture_output=True, text=True).stdout
            if len(numbers := text.split(",")) == 2:
                looks.append((int(numbers[0]), int(numbers[1])))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


if __name__ == "__main__":
    sys.exit(main())
