"""Who watches a run: the progress display, the live page's record, metrics; directly or across processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from raysim.engine.backend import Seat


@dataclass(frozen=True)
class Visited:
    """One remote call's clients have returned."""

    clients: tuple[int, ...]
    failed: tuple[int, ...]
    """Those among them that gave no usable update."""
    seconds: float
    """How long the worker was busy with them."""
    seat: Seat
    sends: int
    """How often they were sent: more than once if what held them died."""


class Observer(Protocol):
    """Is told what happens, in order; nothing it does can change a result."""

    def note(self, text: str) -> None:
        """A warning, or what is good to know."""
        ...

    def placed(self, plan: str) -> None:
        """Where clients run: before the first round, and whenever nodes have joined or left."""
        ...

    def fault(self, text: str) -> None:
        """Something was lost and mended, or left out: an actor that died, a client that failed."""
        ...

    def preparing(self, label: str, done: int, total: int) -> None:
        """Before the first round: so many of the parts of ``label`` ("eigendecompositions") are done; a single part is
        a step that takes a while ("starting Ray")."""
        ...

    def round_started(self, round: int, local_epochs: int, participants: int) -> None: ...

    def visits_started(self, clients: Sequence[int]) -> None:
        """The round's participants, whose tasks are about to be sent."""
        ...

    def visited(self, visit: Visited) -> None:
        """Some of them are back."""
        ...

    def clients_done(self, done: int, participants: int) -> None: ...

    def round_finished(self, row: Mapping[str, Any]) -> None:
        """The round's row of the rounds table."""
        ...


@contextmanager
def step(observer: Observer, label: str) -> Iterator[None]:
    """Shows that the run is at one step of its start, which has no parts to count."""
    observer.preparing(label, 0, 1)
    yield
    observer.preparing(label, 1, 1)


class Silent:
    """An observer that shows nothing."""

    def note(self, text: str) -> None:
        pass

    def placed(self, plan: str) -> None:
        self.note(plan)

    def fault(self, text: str) -> None:
        self.note(text)

    def preparing(self, label: str, done: int, total: int) -> None:
        pass

    def round_started(self, round: int, local_epochs: int, participants: int) -> None:
        pass

    def visits_started(self, clients: Sequence[int]) -> None:
        pass

    def visited(self, visit: Visited) -> None:
        pass

    def clients_done(self, done: int, participants: int) -> None:
        pass

    def round_finished(self, row: Mapping[str, Any]) -> None:
        pass


class Several:
    """Tells each of several observers, in order."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def note(self, text: str) -> None:
        for observer in self._observers:
            observer.note(text)

    def placed(self, plan: str) -> None:
        for observer in self._observers:
            observer.placed(plan)

    def fault(self, text: str) -> None:
        for observer in self._observers:
            observer.fault(text)

    def preparing(self, label: str, done: int, total: int) -> None:
        for observer in self._observers:
            observer.preparing(label, done, total)

    def round_started(self, round: int, local_epochs: int, participants: int) -> None:
        for observer in self._observers:
            observer.round_started(round, local_epochs, participants)

    def visits_started(self, clients: Sequence[int]) -> None:
        for observer in self._observers:
            observer.visits_started(clients)

    def visited(self, visit: Visited) -> None:
        for observer in self._observers:
            observer.visited(visit)

    def clients_done(self, done: int, participants: int) -> None:
        for observer in self._observers:
            observer.clients_done(done, participants)

    def round_finished(self, row: Mapping[str, Any]) -> None:
        for observer in self._observers:
            observer.round_finished(row)
