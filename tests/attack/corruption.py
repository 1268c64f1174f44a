"""Ways in which a file of a run folder is damaged."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

Change = Callable[[bytes, Random], bytes]
"""New content of a file from the old."""


def cut(content: bytes, random: Random) -> bytes:
    return content[: random.randrange(max(1, len(content)))]


def empty(content: bytes, random: Random) -> bytes:
    return b""


def all_nul(content: bytes, random: Random) -> bytes:
    return bytes(len(content))


def some_nul(content: bytes, random: Random) -> bytes:
    start = random.randrange(max(1, len(content)))
    stop = random.randrange(start, len(content) + 1)
    return content[:start] + bytes(stop - start) + content[stop:]


def doubled(content: bytes, random: Random) -> bytes:
    return content + content


def one_byte(content: bytes, random: Random) -> bytes:
    if not content:
        return b"x"
    place = random.randrange(len(content))
    return content[:place] + bytes([content[place] ^ random.randrange(1, 256)]) + content[place + 1 :]


def one_digit(content: bytes, random: Random) -> bytes:
    """A digit becomes another one: what no parser minds."""
    places = [place for place, byte in enumerate(content) if chr(byte).isdigit()]
    if not places:
        return one_byte(content, random)
    place = random.choice(places)
    digit = (content[place] - ord("0") + random.randrange(1, 10)) % 10
    return content[:place] + str(digit).encode() + content[place + 1 :]


def row_deleted(content: bytes, random: Random) -> bytes:
    lines = content.splitlines(keepends=True)
    place = random.randrange(max(1, len(lines)))
    return b"".join(lines[:place] + lines[place + 1 :])


def row_doubled(content: bytes, random: Random) -> bytes:
    lines = content.splitlines(keepends=True)
    place = random.randrange(max(1, len(lines)))
    return b"".join(lines[: place + 1] + lines[place:])


def rows_swapped(content: bytes, random: Random) -> bytes:
    lines = content.splitlines(keepends=True)
    if len(lines) > 1:
        first, second = random.sample(range(len(lines)), 2)
        lines[first], lines[second] = lines[second], lines[first]
    return b"".join(lines)


CHANGES: Mapping[str, Change] = {
    change.__name__: change
    for change in (cut, empty, all_nul, some_nul, doubled, one_byte, one_digit, row_deleted, row_doubled, rows_swapped)
}


def other_round(folder: Path, random: Random) -> str:
    """A manifest that says another round."""
    path = random.choice(sorted(folder.glob("checkpoints/round-*/manifest.json")))
    manifest: dict[str, Any] = json.loads(path.read_text())
    manifest["round"] = random.choice([number for number in range(8) if number != manifest["round"]])
    path.write_text(json.dumps(manifest))
    return f"{path.relative_to(folder)}: round {manifest['round']}"


def without_client_files(folder: Path, random: Random) -> str:
    """A manifest that names no client files, and the files gone."""
    path = random.choice(sorted(folder.glob("checkpoints/round-*/manifest.json")))
    manifest: dict[str, Any] = json.loads(path.read_text())
    manifest["files"] = {name: entry for name, entry in manifest["files"].items() if not name.startswith("clients-")}
    path.write_text(json.dumps(manifest))
    for file in path.parent.glob("clients-*"):
        file.unlink()
    return f"{path.relative_to(folder)}: no client files"


def checkpoints_swapped(folder: Path, random: Random) -> str:
    """Two checkpoints under each other's names."""
    found = sorted(folder.glob("checkpoints/round-*"))
    if len(found) > 1:
        first, second = random.sample(found, 2)
        aside = first.rename(first.with_name("aside"))
        second.rename(first)
        aside.rename(second)
    return "two checkpoints swapped"


def files_swapped(folder: Path, random: Random) -> str:
    """A file of one checkpoint in the place of another's."""
    found = sorted(folder.glob("checkpoints/round-*/*"))
    first = random.choice(found)
    second = random.choice([path for path in found if path != first])
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)
    return f"{first.relative_to(folder)} and {second.relative_to(folder)} swapped"


def without_checkpoints(folder: Path, random: Random) -> str:
    for path in sorted(folder.glob("checkpoints/round-*/*")):
        path.unlink()
    return "no checkpoint"


WHOLE_FOLDER = (other_round, without_client_files, checkpoints_swapped, files_swapped, without_checkpoints)


def corrupt(folder: Path, random: Random) -> str:
    """Damage something in a run folder at random; what was done."""
    if random.random() < 0.2:
        return random.choice(WHOLE_FOLDER)(folder, random)
    path = random.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
    return corrupt_file(folder, path, random.choice(["missing", *CHANGES]), random)


def corrupt_file(folder: Path, path: Path, how: str, random: Random) -> str:
    """Damage one file in one way: a key of ``CHANGES``, or "missing"."""
    if how == "missing":
        path.unlink()
    else:
        content = CHANGES[how](path.read_bytes(), random)
        path.unlink()  # a new file: what is shared with another checkpoint stays as it is there
        path.write_bytes(content)
    return f"{path.relative_to(folder)}: {how}"
