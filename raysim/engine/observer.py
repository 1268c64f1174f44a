"""Who watches a run: the progress display, the live page's record, metrics; directly or across processes."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from raysim.errors import code_error, warn

if TYPE_CHECKING:
    from raysim.exchange.pool_protocol import Seat
    from raysim.storage.run_folder import RunFolder


@dataclass(frozen=True)
class ChunkReturned:
    """A chunk of clients is back from its remote call."""

    clients: tuple[int, ...]
    failed: tuple[int, ...]
    """Those among them that gave no usable update."""
    seconds: float
    """How long the worker was busy with them."""
    seat: Seat
    sends: int
    """How often they were sent: more than once if what held them died."""


class Observer(Protocol):
    """Is told what happens, in order; nothing it does can change a result.

    A class that inherits from it writes only what it wants to hear of.
    """

    def note(self, text: str) -> None:
        """A warning, or what is good to know."""
        return

    def hint(self, text: str) -> None:
        """Something about data, model or settings that is allowed, and may be a mistake."""
        self.note(text)

    def placed(self, plan: str) -> None:
        """Where clients run: before the first round, and whenever nodes have joined or left."""
        self.note(plan)

    def fault(self, text: str) -> None:
        """Something was lost and mended, or left out: an actor that died, a client that failed."""
        self.note(text)

    def preparing(self, label: str, done: int, total: int) -> None:
        """Before the first round, ``done`` of ``total`` parts of ``label`` ("eigendecompositions") are done.

        A single part is a step that takes a while ("starting Ray").
        """
        return

    def round_started(self, round: int, local_epochs: int, participants: int) -> None:
        """A round (from 1) begins."""
        return

    def tasks_started(self, clients: Sequence[int]) -> None:
        """The round's participants, whose tasks are about to be sent."""
        return

    def chunk_returned(self, chunk: ChunkReturned) -> None:
        """Some of them are back."""
        return

    def clients_done(self, done: int, participants: int) -> None:
        """How many of them are back in all."""
        return

    def clients_finished(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """The rows of the clients table of a whole round, in client order, before its ``round_finished``."""
        return

    def round_finished(self, row: Mapping[str, Any]) -> None:
        """The round's row of the rounds table."""
        return


HEARD = tuple(name for name in vars(Observer) if not name.startswith("_"))
"""An observer's functions."""


@contextmanager
def step(observer: Observer, label: str) -> Iterator[None]:
    """Shows that the run is at one step of its start, which has no parts to count."""
    observer.preparing(label, 0, 1)
    yield
    observer.preparing(label, 1, 1)


@dataclass(frozen=True)
class RunNotes:
    """Tells an observer what happens besides rounds, and writes it to run.log.

    What the rounds hand on is this object's functions, not their own: those would keep the rounds' arrays alive.
    """

    folder: RunFolder
    observer: Observer

    def note(self, text: str) -> None:
        """A sentence that a user may want to know."""
        self.folder.log(text)
        self.observer.note(text)

    def hint(self, text: str) -> None:
        """A sentence on something that is allowed, and may be a mistake."""
        self.folder.log(text)
        self.observer.hint(text)

    def fault(self, text: str) -> None:
        """A fault that was mended."""
        self.folder.log(text)
        self.observer.fault(text)


class Silent(Observer):
    """An observer that shows nothing."""


class Hints(Observer):
    """An observer that makes Python's warnings of hints, and shows nothing else."""

    def hint(self, text: str) -> None:
        """As the warning it is."""
        warn(text)


class Forwarding:
    """An observer that does the same with everything that it is told."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return functools.partial(self.tell, name)

    def tell(self, name: str, *arguments: Any) -> None:
        """Take the call of one of an observer's functions."""
        raise NotImplementedError


COSTLY = ("tasks_started", "chunk_returned", "clients_finished")
"""Functions whose calls are many, or hold much: they are sent from one process to another only where one listens."""


def heard_by(observer: Observer) -> frozenset[str]:
    """Those of :data:`COSTLY` that an observer has functions of its own for."""
    if isinstance(observer, Several):
        return frozenset().union(*map(heard_by, observer.observers))
    if isinstance(observer, Named):
        return heard_by(observer.observer)
    if isinstance(observer, Forwarding):
        return frozenset({"clients_finished"})
    return frozenset(name for name in COSTLY if getattr(type(observer), name) is not getattr(Observer, name))


class Named(Forwarding):
    """An observer of a user's own, whose errors name it and its function; ``sys.exit`` in it is one.

    It raises RaysimError.
    """

    def __init__(self, observer: Observer) -> None:
        self.observer = observer

    def tell(self, name: str, *arguments: Any) -> None:
        """Pass the call on."""
        try:
            getattr(self.observer, name)(*arguments)
        except (Exception, SystemExit) as error:
            where = f"observer {type(self.observer).__name__}.{name}"
            raise code_error(where, error, traceback.format_exc()) from error


class Several(Forwarding):
    """Tells each of several observers, in order."""

    def __init__(self, *observers: Observer) -> None:
        self.observers = observers

    def tell(self, name: str, *arguments: Any) -> None:
        """Pass the call on."""
        for observer in self.observers:
            getattr(observer, name)(*arguments)
