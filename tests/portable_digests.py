"""Digests of portable runs, and the processors that gave them: ``portable_digests.json`` beside this file.

``python -m tests.portable_digests`` computes every run with the caps of ``--engine.portable``, compares its digest and
adds this processor with what it agreed on. ``--emulate Haswell`` does so under ``qemu-x86_64 -cpu Haswell`` (Debian's
qemu-user), ``--uncapped`` without the caps, and ``--only "digits, cnn"`` takes one workload alone. After a change of
what is computed ``--anew`` writes the digests as they are then, and forgets what processors gave on the workloads whose
digests changed. Exit code 1 if a digest with the caps differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from raysim import portable
from raysim.storage import environment as surroundings

FILE = Path(__file__).with_name("portable_digests.json")
METHODS = ("fedavg", "fedprox", "scaffold", "fedrad", "fedld", "ditto", "fedpac", "ifca", "feddyn", "moon")
FEATURES = ("fedssp", "gcfl", "fedstar", "fgssl", "fedsage")
GIN = ("apple", "fedcp", "local", "fedavg", "fedprox")
"""Methods on graphs: with the model of their papers, and with GIN."""
WORKLOADS: Mapping[str, Mapping[str, Any]] = {
    "digits, cnn": {"workload.limit": 120, "model.name": "cnn"},
    "table, mlp": {"workload.name": "table", "workload.target": "class", "model.name": "mlp"},
    "text, lstm": {
        "workload.name": "text",
        "workload.length": 20,
        "workload.stride": 11,
        "workload.by": "whole",
        "workload.partition": "iid",
        "model.name": "lstm",
        "model.hidden": 32,
    },
    "graphs": {"workload.name": "toy-graphs", "workload.graphs_per_client": 24},
}
BASE: Mapping[str, Any] = {
    "workload.clients": 3,
    "schedule.rounds": 2,
    "schedule.local_epochs": 1,
    "training.batch_size": 16,
}
PACKAGES = ("numpy", "scikit-learn", "scipy", "torch", "torch-geometric")
Digests = dict[str, dict[str, str]]
"""Workload → method → digest."""


def methods_of(workload: str) -> Sequence[str]:
    """Ten methods for each workload: not every one can do with clients whose graphs have classes of their own."""
    return (*FEATURES, *GIN) if workload == "graphs" else METHODS


def versions() -> dict[str, str]:
    """Those that the digests are of."""
    return {name: metadata.version(name) for name in PACKAGES}


def kept() -> dict[str, Any]:
    """The file: versions, digests and processors."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def computed(runs: Mapping[str, Sequence[str]], *, capped: bool = True, emulate: str = "") -> Digests:
    """The digests of some methods by workload, computed in a process of its own.

    Args:
        capped: with the caps of ``--engine.portable``; without: with none of them.
        emulate: a processor of qemu-x86_64; empty: this one.
    """
    plain = {name: value for name, value in os.environ.items() if name not in portable.VARIABLES}
    emulator = ["qemu-x86_64", "-cpu", emulate] if emulate else []
    command = [*emulator, sys.executable, "-W", "ignore", "-m", "tests.portable_digests", "--here", json.dumps(runs)]
    environment = {**plain, **(portable.VARIABLES if capped else {})}
    root = Path(__file__).resolve().parents[1]
    ended = subprocess.run(command, env=environment, cwd=root, check=False, capture_output=True, text=True)
    if ended.returncode:
        raise SystemExit(f"the runs ended with exit code {ended.returncode}: {ended.stderr[-2000:]}")
    found: Digests = json.loads(ended.stdout.splitlines()[-1])
    return found


def _here(runs: Mapping[str, Sequence[str]]) -> Digests:
    """The same in this process."""
    with tempfile.TemporaryDirectory() as place:
        return {
            workload: {method: _digest(workload, method, Path(place)) for method in methods}
            for workload, methods in runs.items()
        }


def _digest(workload: str, method: str, place: Path) -> str:
    """SHA-256 of the server's and all clients' states at the end of a run, its first 16 digits."""
    from raysim.running.simulation import run
    from raysim.storage.proof_file import PROOF_NAME, read_proof
    from tests.small_runs import small_run

    own: dict[str, Any] = {"engine.portable": not portable.missing(), "method.name": method}
    if workload == "graphs" and method in GIN:
        own["model.name"] = "gin"
    if workload.startswith(("table", "text")):
        own["workload.path"] = str(_data(workload, place))
    folder = place / f"{workload}-{method}".replace(", ", "-")
    entries = read_proof(run(small_run(folder, {**BASE, **WORKLOADS[workload], **own})).folder / PROOF_NAME)
    trained = {"server": entries[-2].content["server"], "states": entries[-1].content["states"]}
    return hashlib.sha256(json.dumps(trained).encode()).hexdigest()[:16]


def _data(workload: str, place: Path) -> Path:
    """The table of wines that comes with scikit-learn, or the text that describes it."""
    from sklearn import datasets

    path = place / ("wine.csv" if workload.startswith("table") else "wine.txt")
    if path.suffix == ".csv":
        datasets.load_wine(as_frame=True).frame.rename(columns={"target": "class"}).to_csv(path, index=False)
    else:
        path.write_text(datasets.load_wine().DESCR, encoding="utf-8")
    return path


def processor(emulate: str = "") -> str:
    """The name of this processor, or of an emulated one, in the file."""
    if emulate:
        said = subprocess.run(["qemu-x86_64", "--version"], check=True, capture_output=True, text=True).stdout
        return f"{emulate}, emulated by qemu-x86_64 {said.split()[2]}"
    wide = "AVX-512" if "avx512f" in Path("/proc/cpuinfo").read_text(encoding="utf-8").split() else "AVX2"
    return f"{surroundings.processor()}, {wide}"


def _added(file: dict[str, Any], found: Digests, name: str) -> list[str]:
    """Add what a processor gave to the file; the runs that differ."""
    entry = next((each for each in file["processors"] if each["name"] == name), None)
    if entry is None:
        file["processors"].append(entry := {"name": name, "date": "", "equal": {}, "differing": []})
    entry["date"] = datetime.now(UTC).date().isoformat()
    new = []
    for workload, digests in found.items():
        other = [method for method, digest in digests.items() if file["digests"][workload][method] != digest]
        entry["equal"][workload] = f"{len(digests) - len(other)} of {len(digests)}"
        new += [f"{workload}: {method}" for method in other]
    rest = [run for run in entry["differing"] if run.partition(":")[0] not in found]
    entry["differing"] = rest + new
    return new


def renewed(file: dict[str, Any], found: Digests) -> dict[str, Any]:
    """The file with these digests; of the processors only what they gave on workloads whose digests did not change."""
    same = {name for name in found if file["versions"] == versions() and file["digests"].get(name) == found[name]}
    processors = [
        {
            **each,
            "equal": {name: count for name, count in each["equal"].items() if name in same},
            "differing": [run for run in each["differing"] if run.partition(":")[0] in same],
        }
        for each in file["processors"]
    ]
    return {"versions": versions(), "digests": found, "processors": [each for each in processors if each["equal"]]}


def main() -> int:
    """The command line; 1 if a digest with the caps differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.portable_digests", description=__doc__)
    parser.add_argument("--only", choices=list(WORKLOADS), nargs="+", default=list(WORKLOADS), help="workloads")
    parser.add_argument("--emulate", default="", metavar="CPU", help="a processor that qemu-x86_64 knows")
    parser.add_argument("--uncapped", action="store_true", help="without the caps")
    parser.add_argument("--anew", action="store_true", help="write the digests as they are here")
    parser.add_argument("--here", type=json.loads, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.here:
        print(json.dumps(_here(asked.here)))
        return 0
    file = kept()
    if not asked.anew and file["versions"] != versions():
        parser.error(f"the digests are of {file['versions']}, and here are {versions()}")
    runs = {name: methods_of(name) for name in (WORKLOADS if asked.anew else asked.only)}
    found = computed(runs, capped=not asked.uncapped, emulate=asked.emulate)
    if asked.anew:
        file = renewed(file, found)
    name = processor(asked.emulate) + (", without the caps" if asked.uncapped else "")
    differing = _added(file, found, name)
    FILE.write_text(json.dumps(file, indent=1) + "\n", encoding="utf-8")
    total = sum(map(len, found.values()))
    print(f"{name}: {total - len(differing)} of {total} runs are equal", *differing, sep="\n  ")
    return 1 if differing and not asked.uncapped else 0


if __name__ == "__main__":
    sys.exit(main())
