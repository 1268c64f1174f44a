"""One file of a set of images is no image, or not the one that its name says; a run trains on the set."""

from __future__ import annotations

import io
import shutil
import sys
import time
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from PIL import Image

from tests.attack.folders import launch
from tests.attack.place import Attempt, Place
from tests.bad_files import saved
from tests.small_runs import words

WITHIN = 60.0
"""Seconds that a run may take; an honest one takes about one."""
HEADER = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n"
BINARY = b"\xc5\xd0\xd3\xc6" + (30).to_bytes(4, "little")
"""How an EPS with a preview begins: its mark, and where the PostScript in it does."""
SOUND = 24
"""Images that are what they should be, beside the one that is not."""
RUN = {
    "method.name": "fedavg",
    "model.name": "logistic",
    "workload.clients": 2,
    "workload.size": 8,
    "workload.partition": "iid",
    "schedule.rounds": 1,
    "schedule.local_epochs": 1,
    "training.batch_size": 4,
    "engine.backend": "inline",
    "pictures": False,
}


def _postscript(random: Random) -> bytes:
    """A program of Ghostscript's that draws, that never ends, or that writes a file."""
    body = random.choice([b"showpage", b"{ } loop", b"(postscript-was-here) (w) file closefile showpage"])
    content = HEADER + body + b"\n%%EOF\n"
    start = random.choice([b"", BINARY + len(content).to_bytes(4, "little") + bytes(18), b"%!PS\n", b"\n"])
    return start + content


def _other_format(random: Random) -> bytes:
    return _encoded(random.choice(["PPM", "TGA", "ICO", "PCX", "PDF", "SGI", "JPEG2000", "IM", "DDS", "GIF", "BMP"]))


def _damaged(random: Random) -> bytes:
    """An image of a format that is read, with bytes changed, or cut off."""
    content = bytearray(_encoded(random.choice(["PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP"])))
    for _ in range(random.randint(1, 20)):
        content[random.randrange(len(content))] = random.randrange(256)
    return bytes(content[: random.randrange(len(content))] if random.random() < 0.3 else content)


def _huge(random: Random) -> bytes:
    """A PNG that says it has up to 2 billion pixels a side, and holds 64."""
    content = bytearray(_encoded("PNG"))
    content[16:24] = random.choice([5_000, 13_000, 50_000, 2**31 - 1]).to_bytes(4, "big") * 2
    content[29:33] = zlib.crc32(content[12:29]).to_bytes(4, "big")
    return bytes(content)


def _noise(random: Random) -> bytes:
    return random.choice([b"", b"%PDF-1.4\n", b"<svg/>", b"PK\x03\x04", b"\x1f\x8b"]) + random.randbytes(50)


CONTENTS: Mapping[str, Callable[[Random], bytes]] = {
    "PostScript": _postscript,
    "another format": _other_format,
    "damaged": _damaged,
    "huge": _huge,
    "noise": _noise,
}


def _encoded(kind: str) -> bytes:
    content = io.BytesIO()
    Image.fromarray(np.full((8, 8, 3), 100, np.uint8)).save(content, format=kind)
    return content.getvalue()


def foreign_image(place: Place, random: Random) -> Attempt:
    """The run finishes or ends with one message, soon; no program is started, and nothing is written elsewhere."""
    kind, name = random.choice([*CONTENTS]), f"x.{random.choice(['png', 'jpg', 'tiff', 'bmp'])}"
    return trained(place, kind, CONTENTS[kind](random), name, random.choice([*LAYOUTS]))


def trained(place: Place, kind: str, content: bytes, name: str, layout: str) -> Attempt:
    """One run on a data set with such a file, or such bytes in a column of images."""
    folder = place.new()
    folder.mkdir()
    own = {"workload.name": layout, "workload.path": LAYOUTS[layout](folder, content, name)}
    own |= {"output": folder / "run"} | ({"workload.cache_dir": folder / "cache"} if layout == "folder" else {})
    before, start = _own_files(), time.monotonic()
    _started().clear()
    ending = launch(words({**RUN, **own}))
    fault = ending.fault()
    if _started():
        fault = f"a program was started: {_started()[0]}"
    elif time.monotonic() - start > WITHIN:
        fault = f"it took {time.monotonic() - start:.0f} s"
    elif _own_files() != before:
        fault = "a file was made in the working directory"
    if not fault:
        shutil.rmtree(folder)
    return Attempt(f"{kind} as {name}, workload {layout}", fault, ending.error)


def _own_files() -> list[Path]:
    """The working directory's, less the caches that checkers and test libraries make there meanwhile."""
    return sorted(path for path in Path.cwd().iterdir() if not path.name.startswith("."))


def _files(folder: Path, content: bytes, name: str) -> Path:
    for number in range(SOUND):
        path = folder / "data" / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_encoded("PNG"))
    (folder / "data" / "a" / name).write_bytes(content)
    return folder / "data"


def _column(folder: Path, content: bytes, name: str) -> Path:
    rows = [{"bytes": _encoded("PNG"), "path": None}] * SOUND + [{"bytes": content, "path": name}]
    return saved(image=rows, label=[number % 2 for number in range(len(rows))])(folder)


LAYOUTS: Mapping[str, Callable[[Path, bytes, str], Path]] = {"folder": _files, "huggingface": _column}
"""Workload → what makes its data in a folder."""


@cache
def _started() -> list[str]:
    """The programs that this process starts, or tries to, but for git, which says of which version a run is.

    There is one list, as what hears of them can never be taken away again.
    """
    found: list[str] = []

    def hear(event: str, details: tuple[Any, ...]) -> None:
        if event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn") and details[0] != "git":
            found.append(str(details[:2]))

    sys.addaudithook(hear)
    return found
