"""What happens in a run besides its rounds: told to who watches, and kept in run.log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from raysim.engine.observer import Observer
    from raysim.storage.run_folder import RunFolder


@dataclass(frozen=True)
class RunNotes:
    """Both at once. An object of its own: what the rounds hand on must not hold them, or their arrays outlive them."""

    folder: RunFolder
    observer: Observer

    def note(self, text: str) -> None:
        """What one may want to know."""
        self.folder.log(text)
        self.observer.note(text)

    def fault(self, text: str) -> None:
        """What went wrong and was mended."""
        self.folder.log(text)
        self.observer.fault(text)
