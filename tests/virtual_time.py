"""Every method of a list in every mode of virtual time: the same bits however the run was computed.

``python -m tests.virtual_time [--methods fedavg …] [--modes sync …] [--ways process actors driver]``: each run in this
process, and again. ``process``: stopped and resumed after every round (in mid-buffer too), and resumed from what a
killed driver leaves in every round; ``actors``: on one, and on three of which one dies; ``driver``: on two actors, and
Ray's driver is killed in round 4. Exit code 1 if anything differs. A part of it is in the tests
(tests/raysim/virtual_time/test_virtual_time.py, tests/actors/test_every_method.py).
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from raysim.config.run_config import RunConfig, build
from raysim.running.open_run import prepare
from raysim.running.simulation import execute, run
from tests.actors.runs import Lender
from tests.fingerprint import fingerprint
from tests.processes import Killer
from tests.small_runs import small_run
from tests.watch import Watch, stopped

ROUNDS, DEADLY = 7, 4
BASE: dict[str, Any] = {
    "workload.clients": 6,
    "workload.limit": 200,
    "model.name": "mlp",
    "model.hidden": (16,),
    "schedule.rounds": ROUNDS,
    "schedule.local_epochs": 2,
    "training.batch_size": 8,
    "evaluation.every": 3,
    "devices.preset": "phones",
    "devices.drop_probability": 0.1,
    "engine.checkpoint_every": 2,
    "engine.dashboard": False,
}
METHODS: dict[str, dict[str, Any]] = {
    "fedavg": {},
    "fedprox": {},
    "fedrad": {"schedule__joins": (2, 2, 2), "schedule__join_every": 4},
    "fedld": {},
    "ifca": {},
    "scaffold": {},
    "feddyn": {},
    "local": {},
}
MODES: dict[str, dict[str, Any]] = {
    "sync": {},
    "deadline": {"timing__deadline": 0.7},
    "quorum": {"timing__quorum": 0.5, "timing__late": "carry"},
    "async": {"timing__concurrency": 2},
    "buffered": {"timing__buffer": 2, "timing__concurrency": 2},
}


class Copying(Watch):
    """Copies the run folder at the first client task of every round, which is what a killed driver leaves."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder, self.copies = folder, dict[int, Path]()

    def clients_done(self, done: int, of: int) -> None:
        if self.round > 1 and self.round not in self.copies:
            self.copies[self.round] = self.folder.with_name(f"{self.folder.name}-killed-{self.round}")
            shutil.copytree(self.folder, self.copies[self.round])


def compared(
    folder: Path, method: str, mode: str, ways: Sequence[str], lender: Lender | None
) -> Iterator[tuple[str, bool]]:
    """Ways to compute one run, and whether each gave the bits of the undisturbed run in this process."""

    def config(name: str, **engine: Any) -> RunConfig:
        own = METHODS[method] | MODES[mode] | {"method__name": method, "timing__mode": mode}
        return small_run(folder / name, BASE, **own, **engine)

    settings = config("whole")
    path = prepare(settings)
    copying = Copying(path)
    assert execute(settings, path, copying).status == "finished"
    expected = fingerprint(path)
    for number, copy in copying.copies.items() if "process" in ways else ():
        run(settings, resume=copy)
        yield f"killed in round {number}", fingerprint(copy) == expected
    for number in range(1, ROUNDS) if "process" in ways else ():
        settings = config(f"stopped-{number}")
        path = stopped(settings, number)
        run(settings, resume=path)
        yield f"stopped after {number}", fingerprint(path) == expected
    if "actors" in ways and lender is not None:
        yield "1 actor", lender.run(config("one", engine__backend="ray"), 1) == expected
        yield "3 actors, one dies", lender.run(config("three", engine__backend="ray"), 3, dies=True) == expected
    if "driver" in ways:
        killer = Killer("ray::DriverActor", DEADLY)
        path = run(config("driver", engine__backend="ray", engine__actors=2), observer=killer).folder
        yield "driver killed on Ray", len(killer.killed) == 1 and fingerprint(path) == expected


def main() -> int:
    """The command line; 1 if a run differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.virtual_time", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=[*METHODS])
    parser.add_argument("--modes", nargs="+", choices=MODES, default=[*MODES])
    parser.add_argument("--ways", nargs="+", choices=("process", "actors", "driver"), default=["process"])
    asked = parser.parse_args()
    differing = 0
    with Lender() if asked.ways != ["process"] else nullcontext() as lender:
        for method, mode in itertools.product(asked.methods, asked.modes):
            if mode == "async" and build([{"method.name": method}]).method.traits.stale != "any":
                continue  # it is refused
            with tempfile.TemporaryDirectory() as folder:
                found = dict(compared(Path(folder), method, mode, asked.ways, lender))
            wrong = [way for way, same in found.items() if not same]
            differing += len(wrong)
            print(f"{method}, {mode}: {len(found) - len(wrong)} of {len(found)} equal", *wrong, sep="; ", flush=True)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
