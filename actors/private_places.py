"""Where a Ray that is started here keeps its token and its session: readable for this user alone.

Ray itself writes the token with the mode that the umask leaves, and opens its session's folders to everybody.
"""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

TOKEN = Path("~/.ray/auth_token")
"""Where Ray looks for a token that no variable names, and writes one when there is none."""

LONGEST = 24
"""Characters of a folder for temporary files: Ray's sockets lie below it, and the path of one has 107 at most."""


def make_token() -> None:
    """Write a new token where Ray would, with mode 0600, unless there is one or a variable names another.

    One that is there is taken from the group and the others if it is this user's. What cannot be written is left to
    Ray, which says so.
    """
    path = TOKEN.expanduser()
    if any(os.environ.get(name) for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")):
        return
    if path.exists():
        _close(path)
        return
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix="auth_token-", dir=path.parent)  # of mode 0600
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_hex(32))
            os.link(name, path)  # whole or not at all, and never over another process's
        finally:
            Path(name).unlink()


def _close(path: Path) -> None:
    """Give a file of this user's mode 0600, or less if it has less; through no link."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            found = os.fstat(descriptor)
            if stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid() and found.st_mode & 0o177:
                os.fchmod(descriptor, stat.S_IMODE(found.st_mode) & 0o600)
        finally:
            os.close(descriptor)


def session_folder() -> str | None:
    """A folder for Ray's sessions in one of this user's alone: in ``/tmp/ray-UID``, or another if that name is taken.

    Ray opens the folder itself to everybody, so the one above it has mode 0700. None where RAY_TMPDIR says where the
    sessions are to be.
    """
    if os.environ.get("RAY_TMPDIR"):
        return None
    root = Path(os.environ.get("TMPDIR") or "/tmp")
    if len(str(root)) > LONGEST:
        root = Path("/tmp")
    place = root / f"ray-{os.getuid()}"
    with suppress(OSError):
        with suppress(FileExistsError):
            place.mkdir(mode=0o700)
        found = place.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
            place.chmod(0o700)
            return str(place / "ray")
    return f"{tempfile.mkdtemp(prefix='ray-', dir=root)}/ray"
