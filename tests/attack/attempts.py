"""Attacks on a run, each at random from a seed: what was done, and what was wrong with the outcome.

``ATTACKS`` is the list that the tests (a few attempts) and ``python -m benchmarks.attack`` (many) go through: another
attack is one more function there.
"""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

from raysim.running.simulation import run
from tests.attack.command_lines import command_line
from tests.attack.configurations import configuration
from tests.attack.corruption import corrupt
from tests.attack.crash import Disk
from tests.attack.folders import resume, small
from tests.attack.images import foreign_image
from tests.attack.links import link
from tests.attack.place import Attempt, Place
from tests.attack.proofs import forgery, honest
from tests.attack.read_only import read_only


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
    attack.__name__: attack
    for attack in (
        *(corruption, kill, power_cut, configuration, command_line, link, read_only, foreign_image),
        *(forgery, honest),
    )
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
        what.append(f"operation {moment}")
        try:
            with disk.watched():
                run(small(worked), resume=worked if source else None)
        except Exception:
            return Attempt(", ".join(what), "it did not go on", traceback.format_exc())
        if not disk.crashed:  # it was over before that moment
            break
        if source is None and moment <= place.creation:
            return Attempt(f"{', '.join(what)}: no run yet", "", made=False)
        source = image
    if source is None:
        return Attempt("not killed", "", made=False)
    shutil.copytree(source, folder)
    return judged(place, folder, ", ".join(what), always=True)


def judged(place: Place, folder: Path, what: str, always: bool = False) -> Attempt:
    """Resume, and compare; ``always``: it must go on, whatever was lost."""
    ending = resume(folder)
    fault = ending.fault_of_run(folder, place.expected)
    if always and ending.code:
        fault = fault or "refused"
    if not fault:
        for path in place.root.glob(f"{folder.name}*"):
            shutil.rmtree(path)
    return Attempt(what, fault, ending.error)
