"""Utilities of coalitions as they are kept on disk, so that a command that was ended goes on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from raysim.errors import ResultsError
from raysim.storage.atomic_files import append_whole
from raysim.studies.command import keep_request

UTILITIES = "utilities.csv"
_HEADER = "clients,utility"


class KeptUtilities:
    """The table of utilities in a folder: a line a coalition, its clients separated by spaces.

    Args:
        folder: made if it is not there.
        request: decides the utilities: a folder with another one is refused.

    Raises:
        ConfigError: the folder holds those of another request.
        ResultsError: the table is damaged.
    """

    def __init__(self, folder: Path, request: Mapping[str, Any]) -> None:
        other = f"{folder} holds another run's utilities, or another measure's. Choose another --output."
        keep_request(folder / "request.yaml", request, other)
        self._path = folder / UTILITIES
        self.known: dict[frozenset[int], float] = {}
        text = self._path.read_text() if self._path.exists() else ""
        whole = text[: text.rfind("\n") + 1]  # a kill tears the last line
        if whole != text or not whole:
            self._path.write_text(whole or f"{_HEADER}\n")
        for number, line in enumerate(whole.splitlines()[1:], start=2):
            clients, _, utility = line.partition(",")
            try:
                self.known[frozenset(map(int, clients.split()))] = float(utility)
            except ValueError as error:
                raise ResultsError(f"{self._path} is damaged: line {number} is no coalition and its utility") from error

    def keep(self, coalition: frozenset[int], utility: float) -> None:
        """Add a line."""
        append_whole(self._path, f"{' '.join(map(str, sorted(coalition)))},{utility!r}\n".encode())
