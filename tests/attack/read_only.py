"""A run's folder on a file system that can only be read, and everything that is done with a folder."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from raysim.errors import FINISHED
from tests.attack.links import DOORS, through
from tests.attack.place import Attempt, Place


def read_only(place: Place, random: Random) -> Attempt:
    """One thing is done with a folder that cannot be written: it is done, or what cannot be written is said."""
    folder, door = place.new(), random.choice(sorted(DOORS))
    shutil.copytree(random.choice([place.whole, place.halfway]), folder)
    with _unwritable(folder) as allowed:
        if not allowed:
            return Attempt("mounting a file system is not allowed here", "", made=False)
        ending = through(DOORS[door], folder)
    fault = ending.fault()
    if not fault and ending.code != FINISHED and f"Cannot write {folder}" not in ending.error:
        fault = "it is not said what cannot be written"
    if not fault:
        shutil.rmtree(folder)
    return Attempt(door, fault, ending.error)


@contextmanager
def _unwritable(folder: Path) -> Iterator[bool]:
    """The folder mounted over itself, to be read only; False where that is not allowed. Root may write all others."""
    allowed = subprocess.run(["mount", "--bind", folder, folder], capture_output=True).returncode == 0
    try:
        if allowed:
            subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
        yield allowed
    finally:
        if allowed:
            subprocess.run(["umount", folder], check=True)
