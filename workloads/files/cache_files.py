"""Files that workloads read or keep for later runs: where, and how many processes write them at once."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from raysim.workloads.errors import WorkloadError

Usable = Callable[[Path], bool]
HOW_TO_GET_IT = "; python -m raysim.data list says how to get it"

CACHE = "~/.cache/raysim"
"""The folder of all that is kept, unless an option names another."""


def search_folders(given: str, name: str) -> list[Path]:
    """Where the files of a collection are looked for: in ``given``, else below $RAYSIM_DATA and in ``CACHE``.

    The last is for downloads, as $RAYSIM_DATA may be shared and read-only.
    """
    if given:
        return [Path(given).expanduser()]
    return [Path(base).expanduser() / name for base in (os.environ.get("RAYSIM_DATA"), CACHE) if base]


def published_place(
    name: str, path: str, below: Sequence[str], how: str = HOW_TO_GET_IT, usable: Usable = Path.exists
) -> Path:
    """The file or folder of a published data set: ``path``, or without it the first of these below $RAYSIM_DATA.

    WorkloadError, which ends in ``how``, if none is ``usable``.
    """
    base = os.environ.get("RAYSIM_DATA")
    if not path and not base:
        raise WorkloadError(f"{name}: option path is empty and RAYSIM_DATA is not set; set path{how}")
    places = [Path(place).expanduser() for place in ([path] if path else [f"{base}/{entry}" for entry in below])]
    for place in places:
        if usable(place):
            return place
    raise WorkloadError(f"{name}: there is no {' and no '.join(map(str, places))}{how}")


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A file to write, in a folder made if absent, which takes the name ``path`` when the block ends without an error.

    Its own name is unique, so any number of processes may write the same file at once.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.stem}-{uuid.uuid4().hex}.partial")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A folder to make and fill, which takes the name ``path`` when the block ends without an error; a file may be one.

    It is in a hidden folder beside ``path``, which is gone afterwards.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-", suffix=".partial") as place:
        partial = Path(place) / path.name
        yield partial
        partial.rename(path)
