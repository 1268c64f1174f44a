"""Addresses of remote run folders, and the local folders that stand for them."""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from pathlib import Path

from raysim.errors import ResultsError

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://(.*)", re.DOTALL)
_MISSPELLED = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)", re.DOTALL)
"""An address in upper case or with one slash; a drive of Windows has one letter."""
_PART = re.compile(r"[^/\\\x00-\x1f\x7f?#]{1,255}")
WORKING, COPIES = Path("runs"), Path("runs/.copies")
"""Where the working folders of remote runs lie, and copies of remote runs that are only read."""


def is_remote(text: object) -> bool:
    """Whether a path is one of another file system, ``s3://bucket/run`` say.

    Raises:
        ResultsError: it is meant as one, and spelled as a folder of this machine would be.
    """
    if not isinstance(text, str):
        return False
    if _SCHEME.fullmatch(text):
        return True
    if found := _MISSPELLED.fullmatch(text):
        scheme = found[1].lower()
        right = f"{scheme}:{'///' if scheme == 'file' else '//'}{found[2]}"
        raise ResultsError(
            f"{text!r} is no remote address. Allowed: a scheme in lower case and two slashes. Write {right!r}, or "
            f"{'./' + text!r} for a folder of this machine."
        )
    return False


def checked(text: str) -> str:
    """The address without a slash at its end.

    Raises:
        ResultsError: it is no bucket and folder, or no folder of this machine can have its name.
    """
    text = text.rstrip("/")
    found = _SCHEME.fullmatch(text)
    parts = found[2].lstrip("/").split("/") if found else []
    if len(parts) < 2 or any(part in (".", "..") or not _PART.fullmatch(part) for part in parts):
        raise ResultsError(
            f"{text!r} is no remote run folder. Allowed: a scheme, a bucket or host and a folder in it, without '..', "
            "'?' and '#': s3://bucket/runs/first say."
        )
    if ":" in parts[0].rpartition("@")[0]:
        raise ResultsError(
            f"{text.partition(':')[0]}://…: an address holds no password: it would be in config.yaml, run.log and "
            "what is published of the run. Give it where the program of this scheme reads it (environment, key file)."
        )
    return text


def occupied(address: str) -> ResultsError:
    """The error of a new run at an address that holds one."""
    return ResultsError(
        f"{address} already holds a run. Go on with it through --resume {address}, or choose another folder."
    )


def local_folder(text: str, root: Path = WORKING) -> Path:
    """The folder of this machine that stands for an address: the same name, and eight digits of the whole address."""
    address = checked(text)
    return root / f"{address.rpartition('/')[2]}-{hashlib.sha256(address.encode()).hexdigest()[:8]}"


def local_path(text: str) -> Path:
    """A path that a command writes on this machine.

    Raises:
        ResultsError: it is the address of a remote folder, misspelled or not.
    """
    if _SCHEME.fullmatch(text) or _MISSPELLED.fullmatch(text):
        raise ResultsError(f"{text}: only a run's own folder may be remote. Give a folder of this machine.")
    return typed_path(text)


def typed_path(text: str | Path) -> Path:
    """A path of this machine as a user has typed it: ``~`` is the home folder, which no shell expands behind ``=``."""
    path = Path(text)
    with suppress(RuntimeError):  # no user has this name: it is that of a folder
        path = path.expanduser()
    return path
