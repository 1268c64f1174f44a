"""Benchmarks that other simulators have published, each as one run of ``python -m raysim.launch``.

    RAYSIM_DATA=... python -m benchmarks.published                       # the short ones, all but pfl-cifar10
    RAYSIM_DATA=... python -m benchmarks.published pfl-cifar10           # 1,500 rounds
    RAYSIM_DATA=... python -m benchmarks.published flute-mnist --rounds 5 --rows /tmp/rows.csv   # whether it works

docs/benchmarks.md says what each case is, who published it, and holds the results; a row of each run, with the head
of its proof and the machine, is added to docs/results/published/rows.csv.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from raysim.storage.environment import environment as surroundings
from raysim.storage.proof_file import PROOF_NAME, read_proof
from raysim.workloads.models.model_options import ModelOptions

if TYPE_CHECKING:
    from raysim.workloads.federated_data import InputSpec
    from raysim.workloads.models.classifier import Classifier

ROOT = Path(__file__).resolve().parent.parent
ROWS = ROOT / "docs" / "results" / "published" / "rows.csv"


@dataclass(frozen=True)
class PflCnn(ModelOptions):
    """pfl-research's simple_cnn: 3x3 convolutions of 32 and 64, two dropouts, 128 units; 1.63 million parameters."""

    name: ClassVar[str] = "simple_cnn"

    def network(self, inputs: InputSpec) -> Classifier:
        from benchmarks.rounds.models import simple_cnn

        return simple_cnn()  # type: ignore[return-value]


@dataclass(frozen=True)
class BlazeCnn(ModelOptions):
    """BlazeFL's network: 5x5 convolutions of 6 and 16, each with max-pooling, then 120 and 84 units."""

    name: ClassVar[str] = "blazefl_cnn"

    def network(self, inputs: InputSpec) -> Classifier:
        from benchmarks.rounds.models import blazefl_cnn

        return blazefl_cnn()  # type: ignore[return-value]


@dataclass(frozen=True)
class Case:
    """A published benchmark."""

    rounds: int
    settings: Mapping[str, object]
    published: str
    """Seconds, and on what."""
    long: bool = False
    """Left out unless it is named."""
    common: Mapping[str, object] = field(
        default_factory=lambda: {"method": "fedavg", "engine.dashboard": False, "pictures": False, "seed": 0}
    )

    def words(self, rounds: int, folder: Path) -> list[str]:
        """The options of raysim.launch."""
        options = {**self.common, **self.settings, "schedule.rounds": rounds, "output": folder}
        return [word for name, value in options.items() for word in (f"--{name}", _text(value))]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def graphs(name: str, published: str) -> Case:
    """fedgraph's graph classification: a set cut over 10 clients, GIN, 200 rounds, Adam."""
    return Case(
        rounds=200,
        settings={
            "workload": "tudataset",
            "workload.sets": name,
            "workload.parts": 10,
            "workload.partition": "iid",
            "model": "gin",
            "training.optimizer": "adam",
            "training.learning_rate": 0.001,
            "training.weight_decay": 5e-4,
            "training.batch_size": 128,
            "schedule.local_epochs": 1,
            "evaluation.every": 200,
        },
        published=published,
    )


CASES: Mapping[str, Case] = {
    "pfl-cifar10": Case(
        rounds=1500,
        settings={
            "workload": "cifar10-full",
            "workload.clients": 1000,
            "workload.partition": "iid",
            "workload.local_test": "global",
            "evaluation.client_limit": 1,
            "model": "benchmarks.published:PflCnn",
            "training.learning_rate": 0.1,
            "training.batch_size": 10,
            "schedule.local_epochs": 1,
            "schedule.sampling_rate": 0.05,
            "evaluation.every": 50,
        },
        published="accuracy about 0.70",
        long=True,
    ),
    "blazefl-cifar10": Case(
        rounds=5,
        settings={
            "workload": "cifar10-full",
            "workload.clients": 100,
            "workload.partition": "pathological",
            "workload.shards_per_client": 2,
            "workload.local_test": "global",
            "evaluation.client_limit": 1,
            "model": "benchmarks.published:BlazeCnn",
            "training.learning_rate": 0.1,
            "training.batch_size": 50,
            "schedule.local_epochs": 5,
            "evaluation.every": 1,
        },
        published="94 s, two workers and a GPU; Flower 209 s",
    ),
    "flute-mnist": Case(
        rounds=100,
        settings={
            "workload": "mnist",
            "workload.clients": 1000,
            "workload.partition": "pathological",
            "workload.shards_per_client": 2,
            "workload.local_test": "global",
            "evaluation.client_limit": 1,
            "model": "logistic",
            "training.learning_rate": 0.03,
            "training.batch_size": 10,
            "schedule.local_epochs": 1,
            "schedule.sampling_rate": 0.01,
            "evaluation.every": 20,
        },
        published="200 s on a CPU; Flower 1814 s",
    ),
    "fedgraph-mutag": graphs("MUTAG", "14.5 to 44.9 s for the four sets, a cluster"),
    "fedgraph-bzr": graphs("BZR", "14.5 to 44.9 s for the four sets, a cluster"),
    "fedgraph-cox2": graphs("COX2", "14.5 to 44.9 s for the four sets, a cluster"),
    "fedgraph-imdb-binary": graphs("IMDB-BINARY", "14.5 to 44.9 s for the four sets, a cluster"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"default: the short ones; {', '.join(CASES)}")
    parser.add_argument("--rounds", type=int, help="instead of the published number: whether a case works")
    parser.add_argument("--rows", type=Path, default=ROWS, help="the CSV file that rows are added to")
    options = parser.parse_args()
    if unknown := [name for name in options.cases if name not in CASES]:
        parser.error(f"no case {unknown[0]!r}; there are: {', '.join(CASES)}")
    for name in options.cases or [name for name, case in CASES.items() if not case.long]:
        row = run(name, CASES[name], options.rounds or CASES[name].rounds)
        if row is None:
            return 1
        add(options.rows, row)
        print(json.dumps(row), flush=True)
    return 0


def run(name: str, case: Case, rounds: int) -> dict[str, Any] | None:
    """The row of one run; None if it failed, which has been said."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        command = [sys.executable, "-m", "raysim.launch", *case.words(rounds, folder)]
        load, began = os.getloadavg()[0], time.perf_counter()
        paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        environment = {**os.environ, "PYTHONPATH": paths}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        whole = time.perf_counter() - began
        if done.returncode:
            print(f"{name}: raysim ended with code {done.returncode}:\n{done.stderr[-4000:]}", file=sys.stderr)
            return None
        busy = {"load_before": round(load, 1), "published": case.published}
        return {"case": name} | measured(folder, whole) | busy | machine()


def measured(folder: Path, whole: float) -> dict[str, Any]:
    """Figures of a finished run, which took this many seconds from start to end of its process."""
    with (folder / "rounds.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    seconds = sum(float(row["seconds_round"]) for row in rows)
    judged = [row for row in rows if row.get("accuracy") or row.get("client_accuracy_mean")]
    last = judged[-1] if judged else {}
    return {
        "rounds": len(rows),
        "seconds_rounds": round(seconds, 2),
        "seconds_start_and_end": round(whole - seconds, 2),
        "accuracy": last.get("accuracy") or last.get("client_accuracy_mean"),
        "digest": read_proof(folder / PROOF_NAME)[-1].head,
    }


def line(row: Mapping[str, Any]) -> str:
    """A row as docs/benchmarks.md has it."""
    cells = [row["case"], row["rounds"], row["seconds_rounds"], row["seconds_start_and_end"], row["load_before"]]
    cells += [f"{float(row['accuracy']):.3f}", row["published"], str(row["digest"])[:8]]
    return "| " + " | ".join(map(str, cells)) + " |"


def machine() -> dict[str, Any]:
    """The columns that say where it was measured."""
    found = surroundings()
    versions = found["versions"]
    return {
        "date": found["date"],
        "commit": found["commit"],
        "cpu": found["cpu"],
        "cores": found["cpu_count"],
        "python": found["python"],
        **{name: versions[name] for name in ("torch", "ray")},
    }


def add(path: Path, row: Mapping[str, Any]) -> None:
    """Append a row to a CSV file, which gets its header first.

    Raises:
        SystemExit: the file has other columns.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", newline="", encoding="utf-8") as file:
        file.seek(0)
        columns = next(csv.reader(file), None)
        if columns not in (None, list(row)):
            raise SystemExit(f"{path} has other columns than these rows ({', '.join(row)}): name another file.")
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        if columns is None:
            writer.writeheader()
        writer.writerow(row)


if __name__ == "__main__":
    sys.exit(main())
