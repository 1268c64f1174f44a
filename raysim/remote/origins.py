"""The remote states that a local folder comes from, in its ``.remote.json``: whether it may go on there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from raysim.storage.atomic_files import write_atomically
from raysim.storage.untrusted_files import UnreadableFileError, check_types, read_json

_NAME = ".remote.json"


def write_origins(folder: Path, names: Sequence[str]) -> None:
    """Keep the names of the newest remote states that the folder was read from, or is about to write."""
    write_atomically(folder / _NAME, json.dumps({"states": [*names]}).encode())


def read_origins(folder: Path) -> list[str]:
    """The names; none of a folder that no remote one has to do with."""
    try:
        found = read_json(folder / _NAME)
        check_types(found, {"states": list})
    except (OSError, UnreadableFileError):
        return []
    return [str(name) for name in found.get("states", [])]
