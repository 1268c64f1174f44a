"""A run's checkpoints: what has changed since the last one, and the way back to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from raysim import checkpoint
from raysim.client_files import ClientFiles
from raysim.errors import DiskFullError

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from raysim.pool import Pool
    from raysim.results import RunFolder
    from raysim.worker import Worker
    from workloads.data import Federation, Task


@dataclass
class State:
    """All that a run is between two rounds."""

    server: Any
    round: int = 0
    epochs: int = 0
    kept: MutableMapping[int, Any] = field(default_factory=dict)
    """Handle of each client's kept state, by client."""


class Saves:
    """Writes and reads the checkpoints of one run.

    Args:
        folder: the run's.
        keep: how many checkpoints stay.
        pool: holds clients' states.
        first: the server's state before the first round.
        note: is told of a disk that is full, and that it no longer is.
    """

    def __init__(self, folder: RunFolder, keep: int, pool: Pool, first: Any, note: Callable[[str], None]) -> None:
        self._folder, self._keep, self._pool, self._first, self._note = folder, keep, pool, first, note
        self._round = 0
        """Of the last checkpoint."""
        self._files = ClientFiles()
        self._changed: set[int] = set()
        """Clients whose state is new since then."""
        self._failed = 0
        """How many times in a row the disk refused."""

    @property
    def overdue(self) -> bool:
        """The last checkpoint could not be written: it is due after every round until one can."""
        return self._failed > 0

    def changed(self, clients: Iterable[int]) -> None:
        """These clients have new states."""
        self._changed.update(clients)

    def save(self, state: State) -> None:
        """Write a checkpoint of the last whole round, unless there is one.

        Raises:
            DiskFullError: it cannot be written; the one before is untouched.
            LostError: a client's state is lost.
        """
        if state.round == self._round:
            return
        self._folder.flush()  # a checkpoint of a round without its rows would leave a hole in the tables
        checkpoint.save(
            self._folder.checkpoints,
            state.round,
            state.server,
            self._changed,
            lambda client: self._pool.fetch(state.kept[client]),
            {},
            self._keep,
            self._files,
        )
        if self._failed:
            self._note(f"the checkpoint of round {state.round} could be written again")
        self._round, self._failed = state.round, 0
        self._changed.clear()

    def try_to_save(self, state: State) -> None:
        """The same in mid-run, where a full disk is no end: room may come until the next round."""
        try:
            self.save(state)
        except DiskFullError as error:
            self._failed += 1
            if self._failed & (self._failed - 1) == 0:  # the 1st, 2nd, 4th, 8th … time
                self._note(f"{error} The run goes on, and tries again after every round")

    def latest(self, worker: Worker, federation: Federation) -> State | None:
        """The state of the last checkpoint; the tables lose what came after it. None if there is no checkpoint."""
        path = checkpoint.latest(self._folder.checkpoints)
        if path is None:
            return None
        templates: dict[Task, Any] = {}

        def template(client: int) -> Any:
            task = federation.task(client)
            if task not in templates:
                templates[task] = worker.first_state(client)
            return templates[task]

        found = checkpoint.load(path, self._first, template, hold=self._pool.share)
        self._round, self._files = found.round, found.files
        self._changed.clear()
        self._folder.truncate(found.round)
        return State(found.server, found.round, 0, found.kept)

    def none(self) -> State:
        """The state before the first round, with empty tables."""
        self._round, self._files = 0, ClientFiles()
        self._changed.clear()
        self._folder.truncate(0)
        return State(self._first)
