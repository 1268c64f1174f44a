"""A replay's origin: the run whose first rounds it has, in ``origin.json`` and in the first line of its proof.

The state that a replay goes on from lies in a folder of its own beside its checkpoints and is never removed, so that
its rounds can be computed again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from raysim.storage import checkpoint
from raysim.storage.atomic_files import write_atomically
from raysim.storage.folder_files import is_there
from raysim.storage.run_record import read_facts
from raysim.storage.untrusted_files import check_types

ORIGIN_NAME = "origin.json"
_KINDS: Mapping[str, Any] = {"run": str, "head": str, "rounds": int, "head_there": str, "changes": list}


@dataclass(frozen=True)
class Origin:
    """The run that a replay differs from, and how."""

    run: str
    """Name of its folder."""
    head: str
    """Head of its proof."""
    rounds: int
    """Rounds that were taken from it, the first ones."""
    head_there: str
    """Head of its proof after these rounds; empty of none."""
    changes: tuple[str, ...]
    """Settings that are others from then on: ``method.mu: 0.01 → 0.1``."""

    def plain(self) -> dict[str, Any]:
        """The entries of the file and of the proof."""
        return {**asdict(self), "changes": [*self.changes]}


def write_origin(folder: Path, origin: Origin) -> None:
    """Write it into a replay's folder."""
    text = json.dumps(origin.plain(), indent=1, ensure_ascii=False)
    write_atomically(folder / ORIGIN_NAME, f"{text}\n".encode())


def read_origin(folder: Path) -> dict[str, Any]:
    """The entries of a replay's ``origin.json``; empty of another run.

    Raises:
        ResultsError: it cannot be read as one.
    """
    if not is_there(folder / ORIGIN_NAME):
        return {}
    return read_facts(folder, ORIGIN_NAME, lambda found: check_types(found, _KINDS))


def kept_checkpoints(folder: Path) -> dict[int, Path]:
    """The checkpoints of a run by round, with the one that a replay began from."""
    places = (folder / "origin", folder / "checkpoints")
    paths = [path for place in places for path in checkpoint.newest_first(place)]
    return {checkpoint.read_manifest(path)["round"]: path for path in paths}


def copy_with_facts(path: Path, folder: Path, facts: Mapping[str, Any]) -> None:
    """Copy a checkpoint into ``folder`` with other facts."""
    target = folder / path.name
    shutil.copytree(path, target)
    manifest = checkpoint.read_manifest(path)
    content = checkpoint.manifest_bytes(manifest["round"], facts, manifest["files"])
    write_atomically(target / checkpoint.MANIFEST, content)
