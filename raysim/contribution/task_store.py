"""A store of client tasks keyed by digest: one whose inputs are equal to an earlier one's is not computed again."""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from raysim.client_side.worker import Worker
from raysim.exchange.task_digests import MessageDigests
from raysim.method import ClientTask
from raysim.storage import pytree
from raysim.storage.state_digest import state_digest

if TYPE_CHECKING:
    from raysim.client_side.worker import ClientState
    from raysim.cohort import Cohort
    from raysim.config.run_config import RunConfig
    from raysim.method import Message, Update
    from raysim.workloads.federated_data import Federation

BYTES = 2**30
"""Upper bound of what is kept; the tasks that were asked for least recently go first."""


Computed = tuple["Cohort | None", Any, int]
"""A computed task: the numbers of its round, where it has read them (else None), its result, and that one's bytes."""


class Store(Protocol):
    """Keeps results of client tasks of one run's settings, by digest of message, client state, client and round."""

    computed: int
    """Tasks that were computed."""
    taken: int
    """Tasks that were taken from here instead."""

    def once(self, key: str, cohort: Cohort, compute: Callable[[], Computed]) -> Any:
        """The result of a task, which is computed unless it is here.

        Args:
            cohort: the numbers of its round, which count where the task has read them.
        """


class TaskStore:
    """A store in this process."""

    def __init__(self) -> None:
        self.computed = 0
        self.taken = 0
        self._held: OrderedDict[tuple[str, Cohort | None], tuple[Any, int]] = OrderedDict()
        self._bytes = 0

    def once(self, key: str, cohort: Cohort, compute: Callable[[], Computed]) -> Any:
        """As of :class:`Store`."""
        for place in ((key, None), (key, cohort)):
            if place in self._held:
                self._held.move_to_end(place)
                self.taken += 1
                return self._held[place][0]
        read, result, size = compute()
        self.computed += 1
        self._bytes += size
        self._held[key, read] = result, size
        while self._bytes > BYTES:
            self._bytes -= self._held.popitem(last=False)[1][1]
        return result


class SharedTaskStore:
    """A store that several processes of one command share: each task is computed by one of them.

    Args:
        held: the results, which all of them see.
        locks: a folder for a lock of each task.
        bytes: upper bound of what this process puts into it; tasks beyond that are computed by each anew.
    """

    def __init__(self, held: MutableMapping[str, Any], locks: Path, bytes: int) -> None:
        self.computed = 0
        self.taken = 0
        self._held, self._locks, self._room = held, locks, bytes

    def once(self, key: str, cohort: Cohort, compute: Callable[[], Computed]) -> Any:
        """As of :class:`Store`; waits while another process computes the task. A process that dies lets go of it."""
        own = hashlib.sha256(repr(cohort).encode()).hexdigest()
        places = {None: key, cohort: f"{key}-{own}"}
        with (self._locks / f"{key}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for place in places.values():
                if (found := self._held.get(place)) is not None:
                    self.taken += 1
                    return found
            read, result, size = compute()
            self.computed += 1
            self._room -= size
            if self._room >= 0:
                self._held[places[read]] = result
            return result


class _WatchedTask(ClientTask):
    """A client task that knows whether its cohort was read: of one where it was not, other cohorts give the same."""

    was_read = False

    def __getattribute__(self, name: str) -> Any:
        if name == "cohort":
            object.__setattr__(self, "was_read", True)
        return super().__getattribute__(name)


class StoringWorker(Worker):
    """A worker that takes client tasks from a store where they are there."""

    def __init__(self, config: RunConfig, federation: Federation, device: str, store: Store) -> None:
        super().__init__(config, federation, device)
        self._store = store

    def train(self, task: ClientTask, message: Message, state: ClientState | None) -> tuple[Update, ClientState | None]:
        """A client's task, computed or taken from the store."""
        parts = (task.client, task.round, task.local_epochs, task.learning_rate)
        digests = (MessageDigests().of(message), None if state is None else state_digest(state))
        key = hashlib.sha256(json.dumps([parts, digests]).encode()).hexdigest()
        train = super().train

        def compute() -> Computed:
            watched = _WatchedTask(**vars(task))
            update, after = train(watched, message, state)
            size = update.delta.nbytes + pytree.nbytes(dict(update.extra)) + pytree.nbytes(after)
            return task.cohort if watched.was_read else None, (update, after), size

        found: tuple[Update, ClientState | None] = self._store.once(key, task.cohort, compute)
        return found
