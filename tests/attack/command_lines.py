"""Command lines at random: options that exist, do not, or are misspelt, with values of all kinds, and YAML files."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from raysim.config import registry
from raysim.config.run_config import options_of
from raysim.driver.outcome import Outcome
from raysim.errors import FINISHED, REFUSED
from tests.attack.configurations import drawn
from tests.attack.folders import launch
from tests.attack.place import Attempt, Place
from tests.small_runs import words

NAMES = ("help", "list", "print-config", "version", "verbose", "ui", "config", "resume", "trust", "method", "workload")
UNKNOWN = (
    "rate", "training.rounds", "client", "method.", ".", "training", "engine.gpu", "-", "a.b.c", "é", "schedule.",
)  # fmt: skip
TEXTS = (
    "", "x", "0", "-1", "1", "3", "0.5", "1e-3", "-0.0", "nan", "inf", "-inf", "1e400", "true", "no", "null", "~",
    "[]", "[1,2]", "[1,[2]]", "1,2", "{}", "{a: 1}", "[", "'", '"', "!!python/name:os.system", "*a", "\x00",
    "\ud800", "fedavg", "sgd", "adam", "mlp", "gin", "toy-graphs", "os:system", "os.path:join", ":", "a:", ":b", "/",
    "..", "127.0.0.1:0",
)  # fmt: skip
FILES: tuple[bytes, ...] = (
    b"", b"null", b"[]", b"3", b"text", b"a: [", b"\xff\xfe\x00", b"\x00", b"a: &a [*a]", b"training: 3",
    b"training: [1]", b"training: {learning_rate: [1]}", b"training: {learning_rate: {a: 1}}", b"training: {1: 2}",
    b"1: 2", b"null: 1", b"method: 3", b"method: {name: 3}", b"method: {name: [fedavg]}", b"method: {name: null}",
    b"method: os:system", b"model: {name: mlp, hidden: [3, x]}", b"seed: 1e3", b"seed: 2001-01-01", b"output: [a]",
    b"workload: {name: digits, clients: 2.0}", b"schedule: {joins: 3}", b"schedule: {joins: [a]}", b"engine: null",
    b"? [a]\n: 1", b"--- 1\n--- 2",
)  # fmt: skip
"""What a --config file may hold."""


def command_line(place: Place, random: Random) -> Attempt:
    """Random words behind the command; a run that would start is not started."""
    folder = place.new()
    folder.mkdir()
    (folder / "file.yaml").write_bytes(random.choice(FILES))
    (folder / "empty").mkdir()
    before = _content(folder)
    said = _line(random)

    def start(config: Any, path: Path, *_: Any, **__: Any) -> Outcome:
        if path.is_relative_to(folder.resolve()):
            shutil.rmtree(path)
        return Outcome("failed", "the run would start", refused=True)

    home = patch.dict(os.environ, HOME=str(folder))  # that of "~"
    with contextlib.chdir(folder), home, patch("raysim.running.simulation.execute", start):
        ending = launch(said)
    what = f"{said} with the file {(folder / 'file.yaml').read_bytes()!r}"
    fault = ending.fault() or ("" if ending.code in (FINISHED, REFUSED) else f"exit code {ending.code}")
    fault = fault or ("something was left" if _content(folder) != before else "")
    if not fault:
        shutil.rmtree(folder)
    return Attempt(what, fault, ending.error)


def _content(folder: Path) -> list[str]:
    """Everything in a folder but an empty ``runs``, in which a run that would have started had its own."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path != folder / "runs")


def _line(random: Random) -> list[str]:
    """A whole line that is fine, or nothing, with a few random words among it."""
    said = words(drawn(random)) if random.random() < 0.7 else []
    for _ in range(random.randint(1, 4)):
        place = random.randrange(len(said) + 1)
        said[place:place] = _option(random)
    return said


def _option(random: Random) -> list[str]:
    """One option with or without a value, in one word or two."""
    kind = random.random()
    if kind < 0.2:
        return random.choice([["--config", "file.yaml"], ["--config=empty"], ["--config", "missing.yaml"]])
    if kind < 0.25:
        return [f"--{name}" for name in random.sample(NAMES, 2)]
    if kind < 0.3:
        return random.choice(
            [["--resume=empty"], ["--resume", "missing"], ["--resume=file.yaml"], ["--output=file.yaml"]]
        )
    if kind < 0.35:
        return [random.choice(["word", "-x", "--", "-", "=", "--=", "--=3", ""])]
    names: dict[str, type[Any]] = {
        name: registry.resolve(name, random.choice(list(registry.known(name)))) for name in registry.KINDS
    }
    known = random.choice([*options_of(names), *registry.KINDS])
    if kind < 0.5:
        known = _misspelt(known, random)
    elif kind < 0.55:
        known = random.choice(UNKNOWN)
    elif kind < 0.7:
        known = known.rpartition(".")[2]
    value = random.choice(TEXTS)
    return random.choice([[f"--{known}={value}"], [f"--{known}", value], [f"--{known}"]])


def _misspelt(name: str, random: Random) -> str:
    place = random.randrange(len(name))
    return name[:place] + random.choice(["", "x", name[place] * 2, "_", "."]) + name[place + 1 :]
