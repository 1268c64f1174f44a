"""Who watches a run: the progress display, directly or across processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Observer(Protocol):
    """Is told what happens, in order; nothing it does can change a result."""

    def note(self, text: str) -> None:
        """The placement plan, a mended fault, a warning."""
        ...

    def preparing(self, label: str, done: int, total: int) -> None:
        """Before the first round: so many of the parts of ``label`` ("eigendecompositions") are done."""
        ...

    def round_started(self, round: int, local_epochs: int, participants: int) -> None: ...

    def clients_done(self, done: int, participants: int) -> None: ...

    def round_finished(self, row: Mapping[str, Any]) -> None:
        """The round's row of the rounds table."""
        ...


class Silent:
    """An observer that shows nothing."""

    def note(self, text: str) -> None:
        pass

    def preparing(self, label: str, done: int, total: int) -> None:
        pass

    def round_started(self, round: int, local_epochs: int, participants: int) -> None:
        pass

    def clients_done(self, done: int, participants: int) -> None:
        pass

    def round_finished(self, row: Mapping[str, Any]) -> None:
        pass
