"""Attacks on runs on Ray: a part of it, the driver, an actor or the launching process is killed or frozen.

Each run is drawn from those with wrappers, the modes of virtual time, or has two thousand clients. It goes on by
itself, or ends with one message and is resumed in this process; in both cases with the bits of the undisturbed run.
"""

from __future__ import annotations

import itertools
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from raysim.errors import FAILED, FINISHED, RaysimError
from raysim.running.simulation import run
from tests import virtual_time
from tests.attack.folders import Ending, launch
from tests.attack.place import Attempt, Place
from tests.fingerprint import fingerprint
from tests.launched import Launched
from tests.processes import Killer
from tests.small_runs import IN_PROCESS, small_run, words
from tests.wrapped_runs import BASE, WRAPPED

WAITING = "tests.raysim.user_code:Waiting"
LIMIT, ENDING, START = 8, 20, 450
"""Seconds: the limit of silence, what the end may take after it, and what a start may take on a busy machine."""
SHARED_MEMORY = 80
"""Megabytes of /dev/shm where it is small: about the least object store that Ray allows."""
CROWD: Mapping[str, Any] = {
    "workload.name": "synthetic",
    "workload.clients": 2000,
    "workload.train_size": 8000,
    "workload.min_samples": 2,
    "workload.partition": "iid",
    "workload.test_size": 40,
    "workload.height": 4,
    "workload.width": 4,
    "model.name": "logistic",
    "schedule.rounds": 4,
    "schedule.local_epochs": 1,
    "training.batch_size": 4,
    "evaluation.every": 4,
    "engine.checkpoint_every": 1,
    "engine.dashboard": False,
}
TITLES = {"driver": "ray::DriverActor", "actor": "ray::train[round"}
"""How the processes of each are called while they are at work."""


@dataclass(frozen=True)
class Blow:
    """One thing that is done to a run that waits in its third round."""

    part: str
    """In the command line of the process it is done to; empty: the launching process."""
    number: signal.Signals
    code: int
    """Exit code with which the run must end; FINISHED: it goes on by itself."""
    seconds: float = 0.0
    """Seconds after which a frozen process goes on; 0: never."""


KILL, STOP, TERM = signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM
BLOWS: Mapping[str, Blow] = {
    "control store killed": Blow("gcs_server", KILL, FAILED),
    "control store frozen": Blow("gcs_server", STOP, FAILED),
    "control store frozen for a moment": Blow("gcs_server", STOP, FINISHED, LIMIT / 2),
    "node manager killed": Blow("raylet/raylet", KILL, FAILED),
    "node manager frozen": Blow("raylet/raylet", STOP, FAILED),
    "agents killed": Blow("Agent", KILL, FAILED),
    "agents frozen for a moment": Blow("Agent", STOP, FINISHED, LIMIT / 2),
    "driver frozen": Blow(":DriverActor", STOP, FAILED),
    "driver killed": Blow(":DriverActor", KILL, FINISHED),
    "launcher killed": Blow("", KILL, -KILL),
    "launcher frozen for longer than the limit": Blow("", STOP, FINISHED, 1.5 * LIMIT),
    "SIGTERM to the launcher": Blow("", TERM, 128 + TERM),
}


def part_of_ray(place: Place, random: Random) -> Attempt:
    """A run on a Ray of its own waits in its third round; a part is killed, frozen or told to end."""
    name, kind = random.choice([*BLOWS]), random.choice([*gated()])
    return struck(place, name, kind, SHARED_MEMORY if random.random() < 0.25 else 0)


def struck(place: Place, name: str, kind: str, shared_memory: int = 0) -> Attempt:
    """One blow to a run of one kind."""
    what = f"{name}, {kind}" + (f", {shared_memory} MB of /dev/shm" if shared_memory else "")
    blow, folder, gates = BLOWS[name], place.new(), place.new()
    gates.mkdir()
    settings = {**gated()[kind], "method.name": WAITING, "method.gate": f"{gates}/{{}}"}
    engine = {"engine.backend": "ray", "engine.actors": 2, "engine.cpus_per_client": 0.5}
    engine |= {"engine.checkpoint_every": 1, "engine.heartbeat_limit": LIMIT, "output": folder}
    launched = Launched(gates, words({**settings, **engine}), shared_memory)
    try:
        fault = _strike(launched, blow, gates)
    finally:
        gone = launched.end()
    said = launched.log.read_text()
    if blow.code == FAILED:
        fault = fault or Ending(FAILED, said).fault()
    _open(gates)
    expected = fingerprint(run(small_run(place.new(), settings)).folder)
    if not fault and blow.code != FINISHED:
        ending = launch(["--resume", str(folder), "--method", WAITING, "--engine.backend=inline"])
        said += ending.error
        fault = ending.fault() or ("it cannot be resumed" if ending.code else "")
    if not fault and fingerprint(folder) != expected:
        fault = "another result"
    return Attempt(what, fault or ("" if gone else "processes are left"), said)


def _strike(launched: Launched, blow: Blow, gates: Path) -> str:
    """Do it to a run in its third round; the fault if that is not reached, or the end is late or another one."""
    if not launched.has_two_rounds(START):
        return "no second round"
    struck = launched.signal(blow.part, blow.number)
    if not struck:
        return "no such process"
    if blow.seconds:
        time.sleep(blow.seconds)
        launched.signal(blow.part, signal.SIGCONT)
    if blow.code == FINISHED:
        _open(gates)
    allowed = START if blow.code == FINISHED else LIMIT + ENDING
    try:
        code = launched.process.wait(allowed)
    except subprocess.TimeoutExpired:
        return f"still there {allowed} s later"
    return "" if code == blow.code else f"exit code {code}"


def _open(gates: Path) -> None:
    for round in range(3, 9):
        (gates / str(round)).touch()


def gated() -> Mapping[str, Mapping[str, Any]]:
    """Kinds of runs of FedAvg, whose client tasks can be told to wait: with wrappers, and in virtual time."""
    found = {name: _wrapped(name) for name, own in WRAPPED.items() if "method__name" not in own}
    for mode in virtual_time.MODES:
        found[mode] = _timed("fedavg", mode) | {"schedule.rounds": 4}
    return found


def all_kinds() -> Mapping[str, Mapping[str, Any]]:
    """Every run with wrappers, every method of the list in every mode of virtual time, and two thousand clients."""
    pairs = itertools.product(virtual_time.METHODS, virtual_time.MODES)
    timed = {f"{method}, {mode}": _timed(method, mode) for method, mode in pairs}
    return {name: _wrapped(name) for name in WRAPPED} | timed | {"two thousand clients": CROWD}


def _wrapped(name: str) -> dict[str, Any]:
    return _settings(BASE, WRAPPED[name])


def _timed(method: str, mode: str) -> dict[str, Any]:
    own = virtual_time.METHODS[method] | virtual_time.MODES[mode]
    return _settings(virtual_time.BASE, own | {"method__name": method, "timing__mode": mode})


def _settings(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    chosen = IN_PROCESS | dict(base) | {name.replace("__", "."): value for name, value in own.items()}
    return {path: value for path, value in chosen.items() if value is not None}


def actor_or_driver(place: Place, random: Random) -> Attempt:
    """On the Ray that this process keeps, an actor or the driver is killed at work in some round."""
    kinds = all_kinds()
    kind = random.choice([*kinds]) if random.random() < 0.9 else "two thousand clients"
    return fallen(place, kind, random.choice([*TITLES]), random.randint(2, 4))


def fallen(place: Place, kind: str, who: str, round: int) -> Attempt:
    """One death in a run of one kind; the run must go on by itself."""
    what, settings = f"{who} killed in round {round}, {kind}", all_kinds()[kind]
    try:
        whole = run(small_run(place.new(), settings)).folder
    except RaysimError as error:  # some methods cannot have late updates
        return Attempt(f"{what}: refused", "", str(error), made=False)
    killer, folder = Killer(TITLES[who], round), place.new()
    path = {"engine__backend": "ray", "engine__actors": 2, "engine__cpus_per_client": 0.5}
    run(small_run(folder, settings, **path), observer=killer)
    fault = "" if fingerprint(folder) == fingerprint(whole) else "another result"
    if not fault:
        shutil.rmtree(folder)
        shutil.rmtree(whole)
    return Attempt(what, fault, "\n".join(killer.notes), made=bool(killer.killed))
