"""Where a remote run is on this machine: its working folder, or a copy that is only read."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from raysim.remote.address import COPIES, is_remote, local_folder, occupied, typed_path
from raysim.remote.download import download, patiently
from raysim.remote.origins import read_origins
from raysim.remote.state import whole_states
from raysim.remote.store import Store
from raysim.storage.atomic_files import unused
from raysim.storage.claims import alone
from raysim.storage.process_lock import driving, launching
from raysim.storage.run_folder import is_run


def new_folder(address: str) -> Path:
    """The working folder of a new remote run, of which nothing is made.

    Raises:
        ResultsError: there is a run already.
        UnreachableError: the remote side does not answer.
    """
    store = Store(address)
    if whole_states(store):
        raise occupied(store.address)
    return local_folder(address)


def resumed_folder(address: str) -> Path:
    """The working folder of a remote run, which holds at least what the remote side does.

    A working folder that the remote side comes from is ahead of it, and stays as it is. One that another machine has
    gone on from is put aside under another name.

    Raises:
        ResultsError: there is no run, or a process is at work in the folder that would be put aside.
        DamagedError: what is there is not what a run has written.
        UnreachableError: the remote side does not answer.
    """
    store, folder = Store(address), local_folder(address)
    with alone(folder):  # who comes second finds a run, and must not bring the folder back to what it was
        states = patiently(lambda: whole_states(store))
        if is_run(folder):
            origins = read_origins(folder)
            if origins and (not states or states[-1].name in origins):
                return folder
            aside = unused(folder)
            with launching(folder), driving(folder):  # a process at work would write on under the other name
                folder.rename(aside)
            print(f"note: {folder} is not what {store.address} goes on from; it is now {aside}", file=sys.stderr)
        download(store, folder)
    return folder


def run_folder(path: str | Path, wanted: Callable[[str], bool] = lambda name: True) -> Path:
    """The folder of a run that is only read: as it is given, or for a remote address a copy, brought up to date.

    Args:
        wanted: says of a file's name whether it is needed.

    Raises:
        ResultsError: there is no run at the address.
        DamagedError: what is there is not what a run has written.
        UnreachableError: the remote side does not answer.
    """
    if not isinstance(path, str) or not is_remote(path):
        return typed_path(path)
    folder = local_folder(path, COPIES)
    store = Store(path)
    with alone(folder):
        download(store, folder, wanted)
    return folder


def tables_only(path: str | Path) -> Path:
    """The same without checkpoints, which a page does not need."""
    return run_folder(path, lambda name: not name.startswith(("checkpoints/", "origin/")))
