"""The code blocks of the pages as what can be run: Python as it stands, command lines with settings made small."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "benchmarks").glob("*.md")))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SMALL: Mapping[str, str] = {"rounds": "1", "local_epochs": "1", "engine.backend": "inline", "pictures": "false"}
"""Settings of every run that a page starts, when a test starts it."""
FEW = 5
"""As many rounds are left as they are."""
ELSEWHERE = ("address", "actors", "dashboard")
"""Options of Ray, which a run in this process does not have."""


@dataclass(frozen=True)
class Command:
    """A command line of a page."""

    page: str
    text: str

    @property
    def words(self) -> list[str] | None:
        """The words of a command of raysim, ``[name, options …]``; None of another program's."""
        words = shlex.split(self.text)
        if words[:2] == ["python", "-m"] and words[2].partition(".")[0] == "raysim":
            return [*words[2].split(".")[1:], *words[3:]]
        return words[1:] if words[0] == "raysim" else None


def blocks(language: str) -> Iterator[tuple[str, str]]:
    """Page, from the top of the repository, and text of each block of a language."""
    for path in PAGES:
        for found, text in BLOCK.findall(path.read_text(encoding="utf-8")):
            if found == language:
                yield path.relative_to(ROOT).as_posix(), text


def commands() -> list[Command]:
    """Every command line of the pages, without its comment; lines that go on are one."""
    found = []
    for page, text in blocks("sh"):
        for line in text.replace("\\\n", " ").splitlines():
            if not line.lstrip().startswith("#") and (text := " ".join(line.partition(" #")[0].split())):
                found.append(Command(page, text))
    return found


def smaller(words: list[str]) -> list[str]:
    """The command line of a run, with fewer rounds and in this process."""
    kept, rest = [], list(words)
    while rest:
        word = rest.pop(0)
        name = word.removeprefix("--").partition("=")[0].rpartition(".")[2].replace("-", "_")
        own = [rest.pop(0)] if "=" not in word and rest and not rest[0].startswith("--") else []
        few = name == "rounds" and own and int(own[0]) <= FEW
        if few or name not in {*ELSEWHERE, *(path.rpartition(".")[2] for path in SMALL)}:
            kept += [word, *own]
    return [*kept, *(f"--{path}={value}" for path, value in SMALL.items() if f"--{path}" not in kept)]
