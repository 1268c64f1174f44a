"""Digests of the source of a run's own methods, workloads and models, so that a changed one is noticed later."""

from __future__ import annotations

import functools
import hashlib
import sys
from pathlib import Path
from typing import Any

from raysim.config import registry
from raysim.config.run_config import RunConfig
from raysim.errors import ResultsError
from raysim.running.source_digest import is_installed, source_of
from raysim.storage.atomic_files import write_atomically
from raysim.storage.process_lock import driving
from raysim.storage.run_folder import json_bytes
from raysim.storage.run_record import read_environment


def own_sources(config: RunConfig) -> dict[str, str]:
    """Name → SHA-256 of the source of each method, workload and model that does not come with raysim.

    The files count whole that its class and its base classes stand in; of a script's or a notebook's own classes, which
    stand beside anything else, those classes alone. What these files import does not count.
    """
    sections = (getattr(config, kind) for kind in registry.KINDS)
    named = zip(registry.KINDS, sections, strict=True)
    classes = {registry.public_name(kind, section): type(section) for kind, section in named}
    return {name: _digest(cls) for name, cls in classes.items() if ":" in name}  # type: ignore[arg-type]  # a class has a hash


def recorded(folder: Path) -> dict[str, list[str]]:
    """Name → digests by which a run was begun and, where they had changed, continued; empty where nothing is recorded.

    Args:
        folder: the run's, whose environment.json is no part of its proof.
    """
    try:
        found: dict[str, list[str]] = read_environment(folder).get("sources", {})
    except ResultsError:  # it says more of the machine, which no run needs
        return {}
    return found


def record_changes(config: RunConfig, folder: Path) -> list[str]:
    """Add the digests of changed sources to the record of a run that goes on; a sentence on each."""
    before, said = recorded(folder), []
    for name, digest in own_sources(config).items():
        if name in before and before[name][-1] != digest:
            before[name].append(digest)
            said.append(
                f"{name} has another source than the rounds so far were computed with. The rounds to come follow the "
                f"new one; python -m raysim.verify {folder.name} --all computes all rounds with it, and says where the "
                "first differs. If it changed more than what failed, begin a new run"
            )
    if said:
        with driving(folder):
            facts = read_environment(folder) | {"sources": before}
            write_atomically(folder / "environment.json", json_bytes(facts))
    return said


def changes_since(config: RunConfig, folder: Path) -> list[str]:
    """Which sources differ between a run and this computation of it, or changed while it went on."""
    now, found = own_sources(config), []
    for name, digests in recorded(folder).items():
        if len(digests) > 1:
            found.append(f"source of {name}: it changed when the run was resumed")
        elif name in now and now[name] != digests[-1]:
            found.append(f"source of {name}: it was changed after the run")
    return found


@functools.cache
def _digest(cls: type[Any]) -> str:
    """The digest as of the first call, which is soon after the import: a later change of the file changes no class."""
    bases = [base for base in cls.__mro__ if not is_installed(base)]
    files = {base: getattr(sys.modules.get(base.__module__), "__file__", None) for base in bases}
    whole = {base: file for base, file in files.items() if file and base.__module__ != "__main__"}
    texts = [source_of(base) for base in bases if base not in whole]
    texts += [_content(Path(file)) for file in dict.fromkeys(whole.values())]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def _content(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:  # inside an archive, say
        return file.name
