"""An error on the terminal: the one place where text of foreign files gets there."""

from __future__ import annotations

import sys

from raysim.storage.folder_files import printable


def complain(error: object, program: str = "raysim") -> None:
    """Print an error to standard error, its control characters written out: it may quote a foreign file."""
    print(f"{program}: {printable(str(error))}", file=sys.stderr)
