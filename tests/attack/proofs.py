"""Attacks on proofs: every forgery is found by the mode that promises it, and no honest folder is accused."""

from __future__ import annotations

import contextlib
import io
import shutil
import traceback
import warnings
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from raysim.config.run_config import build
from raysim.errors import FAILED, FINISHED, RaysimError
from raysim.running.open_run import prepare
from raysim.running.simulation import execute, run
from raysim.verify import main
from tests.attack.configurations import drawn
from tests.attack.crash import Disk
from tests.attack.folders import BASE, Ending, small
from tests.attack.forgeries import COMPUTED, FOLDER
from tests.attack.place import Attempt, Place
from tests.small_runs import IN_PROCESS, dotted
from tests.watch import Watch
from tests.wrapped_runs import BASE as WRAPPED_BASE
from tests.wrapped_runs import WRAPPED

ORIGINALS: Mapping[str, Mapping[str, Any]] = {
    "mean": {"method__name": "fedavg"},
    "client tasks": {"method__name": "fedavg", "engine__proof": "clients"},
    "client states": {},
    "wrapped": {"method__name": "fedavg", "compression__kind": "top-k", "attack__kind": "sign-flip"},
    "virtual": {
        "method__name": "fedavg",
        "devices__preset": "classes",
        "timing__mode": "buffered",
        "timing__buffer": 2,
    },
}
"""Runs that are forged."""
MODES = ("buffered", "async", "quorum", "over-select")
_SMALL = {**IN_PROCESS, **BASE}
HONEST: Mapping[str, Mapping[str, object]] = {
    **{name: {**_SMALL, **dotted(options)} for name, options in ORIGINALS.items()},
    **{
        f"virtual time, {mode}": {**_SMALL, "method.name": "fedavg", "devices.preset": "phones", "timing.mode": mode}
        for mode in MODES
    },
    **{name: {**IN_PROCESS, **WRAPPED_BASE, **dotted(options)} for name, options in WRAPPED.items()},
}
"""Runs of half a second that are left alone or disturbed."""
DISTURBANCES = ("none", "stopped", "resumed", "killed", "killed and resumed", "extended")


def forgery(place: Place, random: Random) -> Attempt:
    """A run's folder is forged; the mode of ``raysim.verify`` that promises it must find it."""
    name = random.choice([*FOLDER, *COMPUTED])
    kinds = [kind for kind in ORIGINALS if name != "byte_of_model" or kind != "client states"]
    kind = "client states" if name == "value_of_client" else random.choice(kinds)
    mine, other = (_original(place, kind, seed) for seed in (0, 5))
    folder = place.new()
    shutil.copytree(mine, folder)
    change = FOLDER.get(name) or COMPUTED[name]
    what = f"{name}, {kind}: {change(folder, other, random)}"
    ending = verified(folder, *(() if name in FOLDER else ("--all",)))
    fault = "" if ending.code == FAILED else f"it was not found (exit code {ending.code})"
    if not fault:
        shutil.rmtree(folder)
    return Attempt(what, fault, ending.error)


def honest(place: Place, random: Random) -> Attempt:
    """A small run, or one with random options, disturbed or not: nothing may be said against its folder."""
    folder, kind = place.new(), random.choice([*HONEST])
    options = HONEST[kind] if random.random() < 0.9 else drawn(random)
    disturbance = random.choice(DISTURBANCES)
    words = ("--all",) if random.random() < 0.3 else ()
    what = f"{disturbance}{', --all' if words else ''}: {kind if options is HONEST[kind] else options}"
    try:
        with warnings.catch_warnings(action="ignore"):  # options that a split does not read
            folder = _disturbed(folder, {**options, "seed": random.randrange(1000)}, disturbance, random)
    except RaysimError as error:  # these options do not go together
        return Attempt(f"{what}: refused: {error}", "", made=False)
    except Exception:
        return Attempt(what, "the run failed", traceback.format_exc())
    if not (folder / "rounds.csv").exists():
        return Attempt(f"{what}: no round yet", "", made=False)
    ending = verified(folder, *words)
    without_round = "there is nothing to check" in ending.error
    fault = "" if ending.code == FINISHED or without_round else f"exit code {ending.code}"
    if not fault:
        shutil.rmtree(folder)
    return Attempt(what, fault, ending.error, made=not without_round)


def verified(folder: Path, *words: str) -> Ending:
    """``python -m raysim.verify FOLDER``, in this process."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        try:
            code = main([str(folder), *words])
        except Exception:
            traceback.print_exc()
            code = -1
    return Ending(code, said.getvalue())


def _original(place: Place, kind: str, seed: int) -> Path:
    """A finished run, made once."""
    folder = place.root / f"{kind.replace(' ', '-')}-{seed}"
    if not folder.exists():
        run(small(folder, seed=seed, **ORIGINALS[kind]))
    return folder


def _disturbed(folder: Path, options: Mapping[str, object], disturbance: str, random: Random) -> Path:
    """The folder of a run that was disturbed so."""

    def config(output: Path, rounds: int | None = None) -> Any:
        length = {} if rounds is None else {"schedule.rounds": rounds}
        settings = {path: value for path, value in options.items() if value is not None}
        return build([{**settings, **length, "output": str(output)}])

    whole = config(folder)
    if disturbance in ("stopped", "resumed"):
        watch, rounds = Watch(), random.randint(1, 2)
        outcome = execute(whole, prepare(whole), watch, stopping=lambda: watch.round > rounds)
        if outcome.status == "failed":  # it diverges with these options
            raise RaysimError(outcome.message)
    elif disturbance.startswith("killed"):
        image = folder.with_name(f"{folder.name}-image")
        disk = Disk(folder, random.randint(5, 90), False, image, random)
        with disk.watched():
            run(whole)
        if disk.crashed and (image / "config.yaml").exists():
            shutil.rmtree(folder, ignore_errors=True)  # gone where nothing was computed yet
            image.rename(folder)
            if disturbance == "killed":
                return folder
            run(config(folder), resume=folder)
        return folder
    elif disturbance == "extended" and "schedule.epochs" not in options:
        run(config(folder, max(1, whole.schedule.rounds - random.randint(1, 2))))
    else:
        run(whole)
    if disturbance in ("resumed", "extended"):
        run(whole, resume=folder)
    return folder
