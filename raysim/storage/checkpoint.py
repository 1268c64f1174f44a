"""The whole state of a run on disk: JSON for structure, safetensors for arrays, no pickle.

A checkpoint is one directory, ``round-000012``. It is written under another name and renamed when every byte is on
the disk, so a kill at any moment leaves the last good one. Its manifest holds the checksum of every file and of itself.
It is read against a template, once these agree. Unchanged states are hard links (client_shards.py).
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from raysim.errors import CheckpointError, DiskFullError
from raysim.storage.atomic_files import FULL, sync_directory, unused, write_durably
from raysim.storage.client_shards import EARLIER, SELECTION, STEM, ClientFiles, is_state_file, numbers, stem
from raysim.storage.folder_files import open_file, read_bytes
from raysim.storage.pytree import JSON
from raysim.storage.state_files import INNER, client_name, damaged, packed, read_pair, shards, write_pair
from raysim.storage.table_marks import checked_facts
from raysim.storage.tree_template import unpack
from raysim.units import byte_count

FORMAT = 3
_NAME = re.compile(r"round-(\d{6,})(?:-(\d+))?")
_PARTIAL = ".partial"
MANIFEST = "manifest.json"
_PASSED_OVER = ".unusable"


@dataclass(frozen=True)
class Checkpoint:
    """A loaded checkpoint: ``round`` rounds are done, ``kept`` holds the state of each client that was saved."""

    round: int
    server: Any
    client_states: dict[int, Any]
    facts: Mapping[str, JSON]
    files: ClientFiles
    """Files that hold the clients' states, for the next ``save``."""
    earlier: Mapping[int, Any]
    """The server's state after earlier rounds that were saved with it, by round."""
    selection: Any = None
    """State that the choice of later cohorts depends on; None if it was not saved, or not asked for."""


def save(  # noqa: PLR0913 - the parts of a checkpoint, and where it goes
    folder: Path,
    round: int,
    server: object,
    changed: Collection[int],
    client_state: Callable[[int], object],
    facts: Mapping[str, JSON],
    keep: int,
    files: ClientFiles,
    earlier: Mapping[int, object] = MappingProxyType({}),
    selection: object = None,
) -> Path:
    """Writes the checkpoint of ``round`` into ``folder`` and removes those beyond the newest ``keep``.

    Args:
        folder: directory of all checkpoints of one run; made if absent. One process may write to it at a time.
        changed: clients whose state is new since the checkpoint that ``files`` describes.
        client_state: a client's state tree; asked lazily, so that only one shard of them is in memory.
        facts: JSON the engine wants back, such as the digest of the config.
        keep: how many checkpoints stay, at least 1.
        files: where the states are that have not changed (nowhere: a new ``ClientFiles``); describes the new
            checkpoint afterwards, and is as it was after an error.
        earlier: the server's state after earlier rounds that is still needed, by round.
        selection: what the choice of later cohorts depends on; None: nothing that is not known anyway.

    Raises:
        DiskFullError: there is no room. What was begun is removed, earlier checkpoints are untouched; so too after:
        CheckpointError: nothing can be written for another reason, or a state holds what cannot be saved.
    """
    partial = folder / f"round-{round:06d}{_PARTIAL}"
    with _disk(folder, round):
        folder.mkdir(parents=True, exist_ok=True)
        for stale in folder.glob(f"round-*{_PARTIAL}"):  # left by a kill
            shutil.rmtree(stale, ignore_errors=True)
        partial.mkdir()
    try:
        entries: dict[str, JSON] = {}

        def write(name: str, data: bytes) -> None:
            with _disk(folder, round):
                write_durably(partial / name, data)
            entries[name] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}

        write_pair(write, "server", *packed(server, "server"))
        if selection is not None:
            write_pair(write, SELECTION, *packed(selection, SELECTION))
        reused, clients = files.plan(changed)
        for number, state in earlier.items():
            before, now = files.server_stem(number), f"{EARLIER}{number}"
            if files.has(before):
                with _disk(folder, round):
                    entries |= files.take_over(before, now, partial)
            else:
                write_pair(write, now, *packed(state, "server"))
        with _disk(folder, round):
            for number in reused:
                entries |= files.take_over(stem(number), stem(number), partial)
        new: dict[int, list[int]] = {}
        for number, (nodes, arrays) in enumerate(shards((c, client_state(c)) for c in clients), files.next_number):
            write_pair(write, stem(number), nodes, arrays)
            new[number] = [client for client, _ in nodes]
        write(MANIFEST, manifest_bytes(round, facts, entries))
        with _disk(folder, round):
            sync_directory(partial)
            # A round saved again (a resumed run that stops where it began) gets a name of its own: a full directory
            # cannot be replaced in one step, and with two a kill between them would lose the newest checkpoint.
            target = unused(folder / f"round-{round:06d}")
            partial.rename(target)
            sync_directory(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)  # gone already after success
    files.moved(target, round, entries)
    for number, members in new.items():
        files.add(number, members)
    _prune(folder, target, round, keep)
    return target


def newest_first(folder: Path) -> list[Path]:
    """All complete checkpoints in ``folder``; unfinished ones are never taken for one."""
    return [path for _, _, path in reversed(_checkpoints(folder))]


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a checkpoint: ``round``, ``facts``, ``files`` (name → sha256, bytes).

    Raises:
        DamagedError: it is not what was written, or lies in the directory of another round.
        CheckpointError: another version of raysim wrote it.
    """
    try:
        manifest = json.loads(read_bytes(path / MANIFEST, INNER), object_pairs_hook=_once)
        found = manifest["format"]
        # Up to format 2 there was no checksum of the manifest.
        if (found >= FORMAT or "sha256" in manifest) and manifest.pop("sha256") != _checksum(manifest):
            raise ValueError("its content has changed since it was written (SHA-256)")
        if found != FORMAT:
            error = CheckpointError(
                f"{path} has format {found}, this raysim reads {FORMAT}: go on with the version of raysim that wrote "
                "it, or start the run again in a new folder"
            )
            error.resumable = False
            raise error
        files = {
            name: {"sha256": str(entry["sha256"]), "bytes": int(entry["bytes"])}
            for name, entry in manifest["files"].items()
        }
        if (wrong := next((name for name in files if not is_state_file(name)), None)) is not None:
            raise ValueError(f"it names {wrong[:80]!a}, which is no file of a checkpoint")
        match = _NAME.fullmatch(path.name)
        if match and int(match[1]) != manifest["round"]:
            raise ValueError(f"it is of round {manifest['round']}")
        return {"round": int(manifest["round"]), "facts": checked_facts(manifest["facts"]), "files": files}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise damaged(path / MANIFEST, reason) from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; ValueError if it has a name twice, of which a reader would see only the last."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("it has a name twice")
    return found


def manifest_bytes(round: int, facts: Mapping[str, JSON], files: Mapping[str, JSON]) -> bytes:
    """The content of a manifest, with its checksum."""
    manifest: dict[str, JSON] = {"format": FORMAT, "round": round, "facts": dict(facts), "files": dict(files)}
    manifest["sha256"] = _checksum(manifest)
    return json.dumps(manifest, indent=1).encode()


def set_aside(path: Path) -> None:
    """Take a checkpoint that cannot be gone on from out of the way; it goes when its round is saved."""
    target = path.with_name(path.name + _PASSED_OVER)
    shutil.rmtree(target, ignore_errors=True)
    path.rename(target)


def load(
    path: Path,
    server_template: object,
    state_template: Callable[[int], object],
    hold: Callable[[Any], Any] = lambda state: state,
    wanted: Collection[int] | None = None,
    selection_template: object = None,
) -> Checkpoint:
    """Reads a checkpoint and gives it the types of the templates; ``tree_template.unpack`` says what may be left open.

    ``hold`` takes a client's state as soon as it is read and gives what stands for it in ``client_states``: with one
    that stores it elsewhere, no more than a file of them is in memory. ``wanted`` are the clients whose states are
    asked for; None: all. Without ``selection_template`` the selection is not read.

    Raises:
        DamagedError: a file is not what was written, or is missing.
        CheckpointError: the state does not fit (the message names the leaf, what was expected and what was found).
    """
    manifest = read_manifest(path)
    for name, entry in manifest["files"].items():
        verify_file(path / name, entry["sha256"], entry["bytes"])
    client_states: dict[int, Any] = {}
    files = ClientFiles()
    files.moved(path, manifest["round"], manifest["files"])
    try:
        node, arrays = read_pair(path, "server")
        server = unpack(node, arrays, server_template, "server")
        selection = selection_template and unpack(*read_pair(path, SELECTION), selection_template, SELECTION)
        earlier = {
            number: unpack(*read_pair(path, f"{EARLIER}{number}"), server_template, "server")
            for number in sorted(numbers(manifest["files"], EARLIER))
        }
        # The newest state of a client is the one that counts.
        for number in sorted(numbers(manifest["files"], STEM), reverse=True):
            nodes, arrays = read_pair(path, stem(number))
            found = dict(nodes)
            for client in files.add(number, found):
                if wanted is not None and client not in wanted:
                    continue
                client_states[client] = hold(unpack(found[client], arrays, state_template(client), client_name(client)))
    except ValueError as error:
        raise CheckpointError(
            f"Checkpoint {path} does not fit this run: {error}. It was written with another method, model or version; "
            "resume with the configuration it was written with, or start a new run."
        ) from error
    except OSError as error:
        raise damaged(path, str(error)) from error
    states = dict(sorted(client_states.items()))
    return Checkpoint(manifest["round"], server, states, manifest["facts"], files, earlier, selection)


def verify_file(path: Path, checksum: str, size: int) -> None:
    """DamagedError unless a file of a checkpoint has this SHA-256 and this number of bytes."""
    try:
        with io.BufferedReader(open_file(path, inner=INNER)) as file:
            found = os.fstat(file.fileno()).st_size
            if found != size:
                raise damaged(path, f"it has {found} bytes, {size} were written")
            if hashlib.file_digest(file, "sha256").hexdigest() != checksum:
                raise damaged(path, "its content has changed since it was written (SHA-256)")
    except OSError as error:
        raise damaged(path, error.strerror or str(error)) from error


@contextmanager
def _disk(folder: Path, round: int) -> Iterator[None]:
    """Turn an error of the operating system about writing into one message with the next step."""
    try:
        yield
    except OSError as error:
        existing = next(place for place in (folder, *folder.absolute().parents) if place.is_dir())
        free = shutil.disk_usage(existing).free
        kind = DiskFullError if error.errno in FULL else CheckpointError
        raise kind(
            f"Cannot save the checkpoint of round {round} in {folder}: {error.strerror or error}; "
            f"{byte_count(free)} are free there. Earlier checkpoints are untouched: free some space (or lift the "
            "quota), then use --resume."
        ) from error


def _checksum(manifest: Mapping[str, JSON]) -> str:
    """SHA-256 of a manifest's contents, independent of its layout."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _checkpoints(folder: Path) -> list[tuple[int, int, Path]]:
    """Round, attempt and path of each complete checkpoint, oldest first."""
    found = [(_NAME.fullmatch(path.name), path) for path in folder.glob("round-*")]
    return sorted((int(match[1]), int(match[2] or 1), path) for match, path in found if match)


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
    for path in folder.glob(f"round-*{_PASSED_OVER}"):
        match = _NAME.fullmatch(path.name.removesuffix(_PASSED_OVER))
        if match and int(match[1]) <= round:
            shutil.rmtree(path, ignore_errors=True)
