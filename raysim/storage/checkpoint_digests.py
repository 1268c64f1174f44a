"""Digests of the states in a checkpoint, read without the code that made them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raysim.errors import DamagedError
from raysim.storage.checkpoint import read_manifest, verify_file
from raysim.storage.client_shards import EARLIER, SELECTION, STEM, numbers, stem
from raysim.storage.state_digest import packed_digest
from raysim.storage.state_files import damaged, read_pair


@dataclass(frozen=True)
class CheckpointDigests:
    """Digests of the parts of a checkpoint."""

    round: int
    server: str
    """Digest of the server's state."""
    earlier: Mapping[int, str]
    """The same after each earlier round that it holds."""
    clients: Mapping[int, str]
    """Digest of every client's newest state."""
    facts: Mapping[str, Any]
    selection: str | None
    """Digest of what the choice of later cohorts depends on; None if there is nothing."""


def read_digests(path: Path) -> CheckpointDigests:
    """The digests of a checkpoint's states.

    Raises:
        DamagedError: a file is not what was written, or is missing.
        CheckpointError: another version of raysim wrote it.
    """
    manifest = read_manifest(path)
    for name, entry in manifest["files"].items():
        verify_file(path / name, entry["sha256"], entry["bytes"])
    try:
        server = packed_digest(*read_pair(path, "server"))
        chosen = packed_digest(*read_pair(path, SELECTION)) if f"{SELECTION}.json" in manifest["files"] else None
        earlier = {
            number: packed_digest(*read_pair(path, f"{EARLIER}{number}"))
            for number in numbers(manifest["files"], EARLIER)
        }
        clients: dict[int, str] = {}
        for number in sorted(numbers(manifest["files"], STEM), reverse=True):  # the newest state counts
            nodes, arrays = read_pair(path, stem(number))
            for client, node in nodes:
                if client not in clients:
                    clients[client] = packed_digest(node, arrays)
    except DamagedError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise damaged(path, f"a state cannot be read: {error}") from error
    return CheckpointDigests(manifest["round"], server, earlier, clients, manifest["facts"], chosen)
