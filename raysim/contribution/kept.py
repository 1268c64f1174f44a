"""Utilities of coalitions as they are kept on disk, so that a command that was ended goes on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from raysim.errors import ResultsError
from raysim.storage.atomic_files import append_whole, write_atomically
from raysim.storage.folder_files import is_there
from raysim.storage.untrusted_files import UnreadableFileError, read_text
from raysim.studies.command import keep_request

UTILITIES, REQUEST = "utilities.csv", "request.yaml"
_HEADER = "clients,utility"
LARGEST = 2**26
"""Bytes of a table that is read: a million coalitions of ten clients."""


class KeptUtilities:
    """The table of utilities in a folder: a line a coalition, its clients separated by spaces.

    Args:
        folder: made with the first utility, if it is not there.
        request: decides the utilities: a folder with another one is refused.

    Raises:
        ConfigError: the folder holds those of another request.
        ResultsError: the table is damaged.
    """

    def __init__(self, folder: Path, request: Mapping[str, Any]) -> None:
        self._path, self._request = folder / UTILITIES, request
        self.known: dict[frozenset[int], float] = {}
        if is_there(folder / REQUEST) or is_there(self._path):
            self._claim()
        try:
            text = read_text(self._path, LARGEST, own=True) if is_there(self._path) else ""
        except (OSError, UnreadableFileError) as error:
            raise ResultsError(f"{self._path} is no table of utilities: {error}") from error
        whole = text[: text.rfind("\n") + 1]  # a kill tears the last line
        if not whole:
            self._path.unlink(missing_ok=True)
        elif whole != text:
            write_atomically(self._path, whole.encode())
        for number, line in enumerate(whole.splitlines()[1:], start=2):
            clients, _, utility = line.partition(",")
            try:
                self.known[frozenset(map(int, clients.split()))] = float(utility)
            except ValueError as error:
                raise ResultsError(f"{self._path} is damaged: line {number} is no coalition and its utility") from error

    def keep(self, coalition: frozenset[int], utility: float) -> None:
        """Add a line."""
        if not is_there(self._path):
            self._claim()  # not before: what never had a utility, a measure with a slip say, may not take the folder
            write_atomically(self._path, f"{_HEADER}\n".encode())
        append_whole(self._path, f"{' '.join(map(str, sorted(coalition)))},{utility!r}\n".encode())

    def _claim(self) -> None:
        """Write the request; ConfigError if another one is there."""
        folder = self._path.parent
        other = f"{folder} holds utilities of another run, measure or device. Choose another --output."
        keep_request(folder / REQUEST, self._request, other)
