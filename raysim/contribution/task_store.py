"""A store of client tasks keyed by digest: one whose inputs are equal to an earlier one's is not computed again."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

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


class TaskStore:
    """Results of client tasks of one run's settings, by digest of message, client state, client and round."""

    def __init__(self) -> None:
        self.computed = 0
        """Tasks that were computed."""
        self.taken = 0
        """Tasks that were taken from here instead."""
        self._held: OrderedDict[str, tuple[Cohort | None, Any, int]] = OrderedDict()
        self._bytes = 0

    def get(self, key: str, cohort: Cohort) -> Any:
        """The result of a task; None if it is not known.

        Args:
            cohort: the numbers of its round, which count where the task has read them.
        """
        read, result, _ = self._held.get(key, (None, None, 0))
        if result is None or (read is not None and read != cohort):
            return None
        self._held.move_to_end(key)
        self.taken += 1
        return result

    def put(self, key: str, read: Cohort | None, result: Any, size: int) -> None:
        """Keep the result of a task.

        Args:
            read: the numbers of its round, where the task has read them; else None.
            size: in bytes.
        """
        self.computed += 1
        self._bytes += size - self._held.pop(key, (None, None, 0))[2]
        self._held[key] = (read, result, size)
        while self._bytes > BYTES:
            self._bytes -= self._held.popitem(last=False)[1][2]


class _WatchedTask(ClientTask):
    """A client task that knows whether its cohort was read: of one where it was not, other cohorts give the same."""

    was_read = False

    def __getattribute__(self, name: str) -> Any:
        if name == "cohort":
            object.__setattr__(self, "was_read", True)
        return super().__getattribute__(name)


class StoringWorker(Worker):
    """A worker that takes client tasks from a store where they are there."""

    def __init__(self, config: RunConfig, federation: Federation, device: str, store: TaskStore) -> None:
        super().__init__(config, federation, device)
        self._store = store

    def train(self, task: ClientTask, message: Message, state: ClientState | None) -> tuple[Update, ClientState | None]:
        """A client's task, computed or taken from the store."""
        parts = (task.client, task.round, task.local_epochs, task.learning_rate)
        digests = (MessageDigests().of(message), None if state is None else state_digest(state))
        key = hashlib.sha256(json.dumps([parts, digests]).encode()).hexdigest()
        found: tuple[Update, ClientState | None] | None = self._store.get(key, task.cohort)
        if found is not None:
            return found
        watched = _WatchedTask(**vars(task))
        result = super().train(watched, message, state)
        read = task.cohort if watched.was_read else None
        size = result[0].delta.nbytes + pytree.nbytes(dict(result[0].extra)) + pytree.nbytes(result[1])
        self._store.put(key, read, result, size)
        return result
