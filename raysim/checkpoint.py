"""Whole state of a run on disk: JSON for structure, safetensors for arrays, no pickle.

A checkpoint is one directory, ``round-000012``. It is written under another name and renamed when every byte is on
the disk, so a kill at any moment leaves the last good one. It is read against a template, once its checksums agree.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from raysim.errors import CheckpointError
from raysim.tree import JSON, Array, nbytes, pack, unpack

FORMAT = 2
SHARD_BYTES = 256 << 20  # bounds the memory of a save: client states are gathered and written shard by shard
_NAME = re.compile(r"round-(\d{6,})(?:-(\d+))?")
_PARTIAL = ".partial"
_MANIFEST = "manifest.json"
_DTYPES = frozenset({np.dtype(bool), np.dtype("complex64"), *map(np.dtype, ("float16", "float32", "float64"))}).union(
    np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)
)  # what safetensors writes from numpy


@dataclass(frozen=True)
class Checkpoint:
    """A loaded checkpoint: ``round`` rounds are done, ``kept`` holds the state of each client that was saved."""

    round: int
    server: Any
    kept: dict[int, Any]
    facts: Mapping[str, JSON]


def save(
    folder: Path,
    round: int,
    server: object,
    kept: Iterable[tuple[int, object]],
    facts: Mapping[str, JSON],
    keep: int,
) -> Path:
    """Writes the checkpoint of ``round`` into ``folder`` and removes those beyond the newest ``keep``.

    Args:
        folder: directory of all checkpoints of one run; made if absent. One process may write to it at a time.
        round: number of the last finished round.
        server: state tree of the server.
        kept: (client, state tree) pairs; read once, lazily, so that only one shard of them is in memory.
        facts: JSON the engine wants back, such as the digest of the config.
        keep: how many checkpoints stay, at least 1.

    Raises:
        CheckpointError: nothing more can be written (disk full, say), or a state holds what cannot be saved. What was
            begun is removed, earlier checkpoints are untouched.
    """
    partial = folder / f"round-{round:06d}{_PARTIAL}"
    with _disk(folder, round):
        folder.mkdir(parents=True, exist_ok=True)
        for stale in folder.glob(f"round-*{_PARTIAL}"):  # left by a kill
            shutil.rmtree(stale, ignore_errors=True)
        partial.mkdir()
    try:
        files: dict[str, JSON] = {}

        def write(name: str, data: bytes) -> None:
            with _disk(folder, round):
                _write(partial / name, data)
            files[name] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}

        structure, arrays = _packed(server, "server")
        _write_pair(write, "server", structure, arrays)
        for number, shard in enumerate(_shards(kept)):
            _write_pair(write, f"clients-{number:05d}", *shard)
        manifest: dict[str, JSON] = {"format": FORMAT, "round": round, "facts": dict(facts), "files": dict(files)}
        write(_MANIFEST, json.dumps(manifest, indent=1).encode())
        with _disk(folder, round):
            _sync_directory(partial)
            target = _free_name(folder, round)
            partial.rename(target)
            _sync_directory(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)  # gone already after success
    _prune(folder, target, round, keep)
    return target


def latest(folder: Path) -> Path | None:
    """The newest complete checkpoint in ``folder``, or ``None``; unfinished ones are never taken for one."""
    found = _checkpoints(folder)
    return found[-1][2] if found else None


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a checkpoint: ``round``, ``facts``, ``files`` (name → sha256, bytes)."""
    try:
        manifest = json.loads((path / _MANIFEST).read_bytes())
        found = manifest["format"]
        if found == FORMAT:
            files = {name: (str(entry["sha256"]), int(entry["bytes"])) for name, entry in manifest["files"].items()}
            if any(Path(name).name != name for name in files):
                raise ValueError("it names files outside the checkpoint")
            return {"round": int(manifest["round"]), "facts": dict(manifest["facts"]), "files": files}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(path, _MANIFEST, str(error)) from error
    raise CheckpointError(f"{path} has format {found!r}, this raysim reads {FORMAT}; use the version that wrote it.")


def load(path: Path, server_template: object, kept_template: Callable[[int], object]) -> Checkpoint:
    """Reads a checkpoint and gives it the types of the templates; ``raysim.tree.unpack`` says what may be left open.

    Raises:
        CheckpointError: a file is damaged or missing (the message says which, and how to go on from the checkpoint
            before), or the state does not fit (the message names the leaf, what was expected and what was found).
    """
    manifest = read_manifest(path)
    for name, (checksum, size) in manifest["files"].items():
        _verify(path, name, checksum, size)
    kept: dict[int, Any] = {}
    try:
        node, arrays = _read_pair(path, "server")
        server = unpack(node, arrays, server_template, "server")
        for stem in sorted(Path(name).stem for name in manifest["files"] if re.fullmatch(r"clients-\d+\.json", name)):
            nodes, arrays = _read_pair(path, stem)
            for client, node in nodes:
                kept[client] = unpack(node, arrays, kept_template(client), _client(client))
    except ValueError as error:
        raise CheckpointError(
            f"Checkpoint {path} does not fit this run: {error}. It was written with another method, model or version; "
            "resume with the configuration it was written with, or start a new run."
        ) from error
    except OSError as error:
        raise CheckpointError(f"Cannot read checkpoint {path}: {error}.") from error
    return Checkpoint(round=manifest["round"], server=server, kept=kept, facts=manifest["facts"])


def _client(client: int) -> str:
    return f"clients[{client}]"


def _packed(state: object, name: str) -> tuple[JSON, dict[str, Array]]:
    try:
        structure, arrays = pack(state, name)
    except TypeError as error:
        raise CheckpointError(f"This state cannot be saved: {error}.") from error
    for leaf, array in arrays.items():
        if array.dtype not in _DTYPES:
            allowed = ", ".join(sorted(str(dtype) for dtype in _DTYPES))
            raise CheckpointError(f"This state cannot be saved: {leaf} is {array.dtype}; allowed are {allowed}.")
    return structure, arrays


def _shards(kept: Iterable[tuple[int, object]]) -> Iterator[tuple[JSON, dict[str, Array]]]:
    nodes: list[JSON] = []
    arrays: dict[str, Array] = {}
    size = 0
    for client, state in kept:
        structure, own = _packed(state, _client(client))
        if nodes and size + nbytes(state) > SHARD_BYTES:
            yield nodes, arrays
            nodes, arrays, size = [], {}, 0
        nodes.append([int(client), structure])
        arrays.update(own)
        size += nbytes(state)
    if nodes:
        yield nodes, arrays


def _write_pair(write: Callable[[str, bytes], None], stem: str, structure: JSON, arrays: dict[str, Array]) -> None:
    from safetensors.numpy import save as to_bytes

    write(f"{stem}.json", json.dumps(structure).encode())
    # safetensors reads the buffer as it lies: a transposed view would be saved in the wrong order.
    write(f"{stem}.safetensors", to_bytes({name: np.asarray(array, order="C") for name, array in arrays.items()}))


def _read_pair(path: Path, stem: str) -> tuple[Any, dict[str, Array]]:
    from safetensors import SafetensorError
    from safetensors.numpy import load as from_bytes

    try:
        return json.loads((path / f"{stem}.json").read_bytes()), from_bytes((path / f"{stem}.safetensors").read_bytes())
    except (SafetensorError, ValueError) as error:
        raise _damaged(path, stem, str(error)) from error


def _verify(path: Path, name: str, checksum: str, size: int) -> None:
    try:
        with (path / name).open("rb") as file:
            found = os.fstat(file.fileno()).st_size
            if found != size:
                raise _damaged(path, name, f"it has {found} bytes, {size} were written")
            if hashlib.file_digest(file, "sha256").hexdigest() != checksum:
                raise _damaged(path, name, "its content has changed since it was written (SHA-256)")
    except OSError as error:
        raise _damaged(path, name, str(error)) from error


def _damaged(path: Path, name: str, reason: str) -> CheckpointError:
    return CheckpointError(
        f"Checkpoint {path} is damaged in {name}: {reason}. "
        "Remove this directory and resume again: the run then goes on from the checkpoint before it."
    )


@contextmanager
def _disk(folder: Path, round: int) -> Iterator[None]:
    """Turns what the operating system says about writing into one message with the next step."""
    try:
        yield
    except OSError as error:
        existing = next(place for place in (folder, *folder.absolute().parents) if place.is_dir())
        free = shutil.disk_usage(existing).free / (1 << 20)
        raise CheckpointError(
            f"Cannot save the checkpoint of round {round} in {folder}: {error.strerror or error}; {free:.1f} MiB are "
            "free there. Earlier checkpoints are untouched: free some space (or lift the quota), then use --resume."
        ) from error


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _checkpoints(folder: Path) -> list[tuple[int, int, Path]]:
    """Round, attempt and path of each complete checkpoint, oldest first."""
    found = [(_NAME.fullmatch(path.name), path) for path in folder.glob("round-*")]
    return sorted((int(match[1]), int(match[2] or 1), path) for match, path in found if match)


def _free_name(folder: Path, round: int) -> Path:
    # A round saved again (a resumed run that stops where it began) gets a name of its own: a full directory cannot be
    # replaced in one step, and with two steps a kill between them would lose the newest checkpoint.
    target, attempt = folder / f"round-{round:06d}", 1
    while target.exists():
        attempt += 1
        target = folder / f"round-{round:06d}-{attempt}"
    return target


def _prune(folder: Path, written: Path, round: int, keep: int) -> None:
    found = [(number, path) for number, _, path in _checkpoints(folder) if path != written]
    replaced = [path for number, path in found if number == round]
    earlier = [path for number, path in found if number < round]
    # Later rounds, of a run that was set back by hand, are left alone.
    for path in replaced + earlier[: max(0, len(earlier) - max(keep, 1) + 1)]:
        # Renamed first: a kill within the removal must not leave half a checkpoint under a good name. What cannot be
        # removed now is tried again at the next save.
        with suppress(OSError):
            shutil.rmtree(path.rename(path.with_name(path.name + _PARTIAL)))
