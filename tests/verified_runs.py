"""Runs of different kinds, made in this process and verified on client actors.

``python -m tests.verified_runs [--actors 2] [--rows FILE]``: each run's folder is checked against its proof, and the
whole run is computed again on that number of actors (0: in this process), as ``python -m raysim.verify --all`` does it.
Every second run has a proof of clients. Exit code 1 unless all are equal.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import raysim
from raysim.running.simulation import run
from raysim.verification.recompute import placed
from raysim.verification.verdict import Verdict
from raysim.verify import verify, verify_given
from tests.actors.runs import options, quick
from tests.attack.crash import Disk
from tests.attack.folders import small
from tests.own_data import QUICK, samples, seeded, three_clients
from tests.small_runs import small_run
from tests.watch import stopped
from tests.witness import BASE
from tests.wrapped_runs import BASE as WRAPPED_BASE
from tests.wrapped_runs import WRAPPED

Kind = Callable[[Path, str, int], Verdict]
"""Makes a run of a kind in a folder, with this proof, and verifies it on a number of actors."""
METHODS = (
    *("fedavg", "fedrad", "local", "scaffold", "fedpac", "ditto", "fedbn", "ifca", "clustered", "feddyn"),
    *("moon", "fedala", "pfedme", "fedproto", "fedssp", "gcfl", "fedsage", "apple"),
)
VIRTUAL: Mapping[str, Mapping[str, Any]] = {
    "buffered": {**options("scaffold"), "timing__buffer": 2, "timing__concurrency": 4},
    "async": {**options("ifca"), "schedule__rounds": 6},
    "quorum": options("fedavg"),
    "over-select": options("fedavg"),
}


def _again(folder: Path, config: Any, actors: int) -> Verdict:
    return verify(folder, placed(config, actors), rounds=None)


def _of(base: Mapping[str, Any], settings: Mapping[str, Any]) -> Kind:
    def kind(folder: Path, proof: str, actors: int) -> Verdict:
        config = small_run(folder, base, **{**settings, "engine__proof": proof})
        return _again(run(config).folder, config, actors)

    return kind


def _method(name: str) -> Kind:
    model = {} if "workload__name" in options(name) else {"model__name": options(name).get("model__name", "cnn")}
    return _of(BASE, {**model, **quick(name)})


def _virtual(mode: str) -> Kind:
    few = {"workload__limit": 400, "schedule__local_epochs": 1, "model__name": "mlp"}
    return _of(BASE, {**VIRTUAL[mode], **few, "timing__mode": mode, "devices__preset": "phones"})


def _resumed(folder: Path, proof: str, actors: int) -> Verdict:
    config = small(folder, engine__proof=proof)
    stopped(config, 3)
    run(config, resume=folder)
    return _again(folder, config, actors)


def _extended(folder: Path, proof: str, actors: int) -> Verdict:
    run(small(folder, engine__proof=proof, schedule__rounds=4))
    config = small(folder, engine__proof=proof)
    run(config, resume=folder)
    return _again(folder, config, actors)


def _killed(folder: Path, proof: str, actors: int) -> Verdict:
    disk = Disk(folder.with_name("killed"), 60, False, folder, Random(0))
    with disk.watched():
        run(small(disk.folder, engine__proof=proof))
    assert disk.crashed
    config = small(folder, engine__proof=proof)
    run(config, resume=folder)
    return _again(folder, config, actors)


def _own_data(folder: Path, proof: str, actors: int) -> Verdict:
    given: dict[str, Any] = {"model": seeded(), "clients": three_clients(), "test": samples(20, 9)}
    engine = {**QUICK["engine"], "proof": proof}
    raysim.run("fedprox", **given, **{**QUICK, "engine": engine}, output=str(folder))
    return verify_given(folder, rounds=None, actors=actors, **given)


KINDS: Mapping[str, Kind] = {
    **{name: _method(name) for name in METHODS},
    **{f"virtual time, {mode}": _virtual(mode) for mode in VIRTUAL},
    **{name: _of(WRAPPED_BASE, settings) for name, settings in [*WRAPPED.items()][:6]},
    "resumed": _resumed,
    "extended": _extended,
    "killed and resumed": _killed,
    "own data and model": _own_data,
}


def main() -> int:
    """The command line; 1 if a run differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.verified_runs", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--actors", type=int, default=2, help="of the computation; 0: in this process")
    parser.add_argument("--rows", type=Path, help="CSV that a row a run is written to")
    asked = parser.parse_args()
    rows = []
    for number, (name, kind) in enumerate(KINDS.items()):
        proof = ("rounds", "clients")[number % 2]
        with tempfile.TemporaryDirectory() as place:
            verdict = kind(Path(place) / "run", proof, asked.actors)
        rows.append((name, proof, asked.actors, "equal" if verdict.equal else "differs"))
        print(f"{name}, proof of {proof}: {verdict.text()}", flush=True)
    equal = sum(row[-1] == "equal" for row in rows)
    print(f"{equal} of {len(rows)} runs are equal")
    if asked.rows:
        with asked.rows.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([("run", "proof", "actors", "found"), *rows])
    return 0 if equal == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
