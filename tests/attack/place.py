"""What attacks have in common: the outcome of one, and the directory in which they happen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

from raysim.config.run_config import RunConfig
from raysim.running.open_run import prepare
from raysim.running.simulation import run
from tests.attack.crash import Disk
from tests.attack.folders import small
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
    made: bool = True
    """Whether the attack took place: a run may be over, or refused, before it can."""


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
        return self._count("counted", run)

    @cached_property
    def creation(self) -> int:
        """How many of them make the folder."""
        return self._count("created", prepare)

    def _count(self, name: str, done: Callable[[RunConfig], object]) -> int:
        disk = Disk(self.root / name, None, False, self.root, Random(0))
        with disk.watched():
            done(small(disk.folder))
        return disk.operations

    @cached_property
    def halfway(self) -> Path:
        """A run that was killed in its last round."""
        folder = self.root / "killed"
        disk = Disk(self.root / "halfway", int(0.8 * self.operations), False, folder, Random(0))
        with disk.watched():
            run(small(disk.folder))
        assert disk.crashed
        return folder

    def new(self) -> Path:
        """A path that nothing has yet."""
        self._attempts += 1
        return self.root / f"attempt-{self._attempts}"
