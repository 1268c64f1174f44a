"""Attacks on a run, each at random from a seed: what was done, and what was wrong with the outcome.

``ATTACKS`` is the list that the tests (a few attempts) and ``python -m benchmarks.attack`` (many) go through: another
attack is one more function there.
"""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

from raysim.simulation import prepare, run
from tests.attack.corruption import corrupt
from tests.attack.crash import Crash, Disk
from tests.attack.folders import resume, small
from tests.fingerprint import fingerprint


@dataclass(frozen=True)
class Attempt:
    """One attack."""

    what: str
    """What was done."""
    fault: str
    """What was wrong with the outcome; "" if nothing was."""
    error: str = ""
    """What the command line said."""


class Place:
    """A directory for attacks, with the undisturbed run that all are compared with."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._attempts = 0

    @cached_property
    def whole(self) -> Path:
        """A finished run."""
        return run(small(self.root / "whole")).folder

    @cached_property
    def expected(self) -> dict[str, Any]:
        return fingerprint(self.whole)

    @cached_property
    def operations(self) -> int:
        """How many operations on files a whole run is."""
        disk = Disk(self.root / "counted", None, False, self.root, Random(0))
        with disk.watched():
            run(small(disk.folder))
        return disk.operations

    @cached_property
    def creation(self) -> int:
        """How many of them make the folder."""
        disk = Disk(self.root / "created", None, False, self.root, Random(0))
        with disk.watched():
            prepare(small(disk.folder))
        return disk.operations

    @cached_property
    def halfway(self) -> Path:
        """A run that was killed in its last round."""
        folder = self.root / "killed"
        disk = Disk(self.root / "halfway", int(0.8 * self.operations), False, folder, Random(0))
        with disk.watched():
            try:
                run(small(disk.folder))
            except Crash:
                return folder
        raise AssertionError("it was not killed")

    def new(self) -> Path:
        """A path that nothing has yet."""
        self._attempts += 1
        return self.root / f"attempt-{self._attempts}"


def corruption(place: Place, random: Random) -> Attempt:
    """Something in the folder of a finished or of a killed run is damaged; it is resumed."""
    folder = place.new()
    shutil.copytree(random.choice([place.whole, place.halfway]), folder)
    what = corrupt(folder, random)
    return judged(place, folder, what)


def kill(place: Place, random: Random) -> Attempt:
    """The process ends at a random operation on a file."""
    return _crash(place, random, power=False)


def power_cut(place: Place, random: Random) -> Attempt:
    """The machine ends at a random operation on a file; what was not synced may be lost."""
    return _crash(place, random, power=True)


ATTACKS: Mapping[str, Callable[[Place, Random], Attempt]] = {
    attack.__name__: attack for attack in (corruption, kill, power_cut)
}


def _crash(place: Place, random: Random, power: bool) -> Attempt:
    """Killed, resumed and killed again up to three times, then resumed to its end."""
    folder, what = place.new(), []
    source: Path | None = None
    for life in range(random.randint(1, 3)):
        moment = random.randrange(place.operations)
        worked, image = folder.with_name(f"{folder.name}-life-{life}"), folder.with_name(f"{folder.name}-image-{life}")
        if source is not None:
            shutil.copytree(source, worked)
        disk = Disk(worked, moment, power, image, random)
        with disk.watched():
            try:
                run(small(worked), resume=worked if source else None)
                break  # it was over before that moment
            except Crash:
                what.append(f"operation {moment}")
            except Exception:
                return Attempt(f"{', '.join(what)}, operation {moment}", "it did not go on", traceback.format_exc())
        if source is None and moment <= place.creation:
            return Attempt(f"{', '.join(what)}: no run yet", "")
        source = image
    if source is None:
        return Attempt("not killed", "")
    shutil.copytree(source, folder)
    return judged(place, folder, ", ".join(what), always=True)


def judged(place: Place, folder: Path, what: str, always: bool = False) -> Attempt:
    """Resume, and compare; ``always``: it must go on, whatever was lost."""
    ending = resume(folder)
    fault = ending.fault(folder, place.expected)
    if always and ending.code:
        fault = fault or "refused"
    if not fault:
        for path in place.root.glob(f"{folder.name}*"):
            shutil.rmtree(path)
    return Attempt(what, fault, ending.error)
