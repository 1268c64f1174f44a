"""Places that a study file names: its page, its pictures and its results, each reached without following a link.

A study may come from anyone, as a run folder may, and a link beside it may point to any file of the user's.
"""

from __future__ import annotations

import os
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING

from raysim.columns import EACH_CLIENT, TUNED
from raysim.errors import ConfigError
from raysim.storage.csv_table import TEXT_COLUMNS
from raysim.storage.folder_files import LinkError, check_links, harmless, open_file
from raysim.storage.untrusted_files import UnreadableFileError, read_text

if TYPE_CHECKING:
    import pandas as pd

MAX_TEXT_BYTES = 2**22
"""Largest page of a study that is read: a text that people read has some hundred kilobytes at most."""
NEEDED = ("round", "epochs_total")
"""Columns of a kept table that costs and measures count by."""
ADVICE = "Put the file or folder itself there, or name another place."


def place(study: Path, named: str, suffix: str = "", *, trusted: bool = False) -> Path:
    """The absolute path of what a study file names, which counts from the file's folder; nothing need be there.

    Links on the way to the study file are the user's own and are followed; those on the way from there are not.

    Args:
        suffix: how the name must end, so that a study's page or picture replaces no file of another kind.
        trusted: it may be any place of this machine; otherwise one in the folder above the study's, ``../results`` say.

    Raises:
        ConfigError: it ends otherwise, is no path, or lies where it may not; or a link, or something else than a
            regular file or folder, is there, on the way there, or in the folder that is there.
    """
    if "\0" in named:
        raise ConfigError(f"{study}: {named!r} is not allowed. Allowed: a path, without the character NUL.")
    folder = study.parent.resolve()
    found = Path(os.path.normpath(folder / named))
    if not found.name.endswith(suffix):
        raise ConfigError(f"{study}: {named} is not allowed. Allowed: a path that ends in {suffix}.")
    if not (trusted or found.is_relative_to(folder.parent)):
        raise ConfigError(
            f"{study} writes {harmless(str(found))}, which is not in {folder.parent}, and a file alone cannot ask for "
            f"that. If you want it, add --trust {study.parent}; or name another place."
        )
    shared = Path(os.path.commonpath([folder, found]))
    inner = [found] if Path(named).is_absolute() else [one for one in (found, *found.parents) if shared in one.parents]
    for path in reversed(inner):
        if path.is_symlink():
            raise ConfigError(f"{harmless(str(path))} is a link, which is neither read nor written. {ADVICE}")
        if path.exists() and not path.is_file() and not path.is_dir():
            raise ConfigError(f"{harmless(str(path))} is neither a regular file nor a folder. {ADVICE}")
    if found.is_dir():
        check_links(found, ADVICE)
    return found


def folder_place(study: Path, named: str, *, trusted: bool = False) -> Path:
    """The same for a folder: there is one, or nothing yet.

    Raises:
        ConfigError: as of :func:`place`, or a file is there or on the way there.
    """
    found = place(study, named, trusted=trusted)
    there = next(path for path in (found, *found.parents) if path.exists())
    if not there.is_dir():
        raise ConfigError(f"{study}: {named} is not allowed: {harmless(str(there))} is a file. Allowed: a folder.")
    return found


def text_of(path: Path) -> str | None:
    """The text of a study's page, or of a cell's failure; None if there is none.

    Raises:
        ConfigError: it is a link, no regular file, larger than 4 MB, not UTF-8, or may not be read.
    """
    try:
        return read_text(path, MAX_TEXT_BYTES, own=True)
    except FileNotFoundError:
        return None
    except (OSError, UnreadableFileError) as error:
        raise _unreadable(path, error) from error


def cell_table(path: Path) -> pd.DataFrame:
    """The kept rounds table of a cell, at ``RESULTS/COLUMN/NAME.csv``.

    Raises:
        ConfigError: it or its folder is a link; or it is no regular file with a table of rounds, lacks ``round`` or
            ``epochs_total``, or has clients' accuracies that no run writes.
    """
    import pandas as pd

    try:
        with open_file(path, inner=1) as file, BufferedReader(file) as content:
            found = pd.read_csv(content)
        plain = {str(name): pd.api.types.is_numeric_dtype(found[name]) for name in found}
        words = [name for name, is_number in plain.items() if not is_number and name not in TEXT_COLUMNS]
        if words:
            raise ValueError(f"its column {words[0][:40]!a} holds no numbers")
        for name in NEEDED:
            if name not in found:
                raise ValueError(f"it has no column {name}, which every run writes")
        for name in (EACH_CLIENT, f"{TUNED}{EACH_CLIENT}"):
            if name in found and not all(map(_are_accuracies, found[name].dropna())):
                raise ValueError(f"its column {name} does not hold each client's accuracy, 0=0.5 1=0.25 say")
        return found
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def _are_accuracies(value: object) -> bool:
    """Whether this is ``0=0.5 1=0.25``, each client's number with its accuracy."""
    parts = [part.partition("=") for part in str(value).split()]
    try:
        return bool([(int(client), float(accuracy)) for client, _, accuracy in parts])
    except ValueError:
        return False


def _unreadable(path: Path, error: Exception) -> ConfigError:
    reason = error.strerror if isinstance(error, LinkError) else error
    return ConfigError(f"{harmless(str(path))}: cannot be read: {reason}. {ADVICE}")
