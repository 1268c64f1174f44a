"""A run whose folder is mirrored to a remote address while it goes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raysim.config.run_config import RunConfig
from raysim.engine.observer import Observer, Several, Silent
from raysim.errors import RaysimError
from raysim.remote.address import checked, is_remote
from raysim.remote.mirror import Mirror
from raysim.storage.run_folder import take_back


@dataclass(frozen=True)
class Mirrored:
    """A run's observers, and its mirror if it has one."""

    observer: Observer
    mirror: Mirror | None = None

    @property
    def address(self) -> str:
        """The remote address; empty of a run on this machine alone."""
        return self.mirror.address if self.mirror else ""

    def incomplete(self) -> str:
        """A sentence on what the remote side lacks; empty if nothing."""
        return self.mirror.incomplete() if self.mirror else ""


class _Rounds(Silent):
    """Tells a mirror of rounds, and an observer what has happened to the mirror."""

    def __init__(self, mirror: Mirror, observer: Observer) -> None:
        self._mirror, self._observer = mirror, observer

    def round_finished(self, row: Mapping[str, Any]) -> None:
        """Its rows are in the folder."""
        for note in self._mirror.round_finished():
            self._observer.note(note)


def remote_output(config: RunConfig, resume: object) -> str:
    """The address that a new run is to be written to; empty for a folder, and for a run that is resumed.

    A run's folder, which may be anybody's, does not say where it is sent.
    """
    return checked(config.output) if resume is None and is_remote(config.output) else ""


@contextmanager
def mirrored(address: str, folder: Path, observer: Observer, *, resumed: bool) -> Iterator[Mirrored]:
    """Mirror a run's folder to ``address``, if that is not empty, until the block's end.

    Raises:
        UnreachableError: a new run's remote side does not answer; the run's folder is taken back.
    """
    if not address:
        yield Mirrored(observer)
        return
    try:
        mirror = Mirror(address, folder, resumed=resumed)
    except (RaysimError, KeyboardInterrupt):
        if not resumed:
            take_back(folder)
        raise
    try:
        yield Mirrored(Several(observer, _Rounds(mirror, observer)), mirror)
    finally:
        mirror.close()
    if mirror.left_out:
        observer.hint(mirror.left_out)
