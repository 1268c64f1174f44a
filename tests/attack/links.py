"""Links in a run's folder to files of the user's, and everything that is done with a folder."""

from __future__ import annotations

import base64
import contextlib
import io
import os
import shutil
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

from raysim import evaluate
from raysim.errors import FAILED, FINISHED, REFUSED, RaysimError
from raysim.report.run_page import main as report
from raysim.results.load_model import load_model
from raysim.results.result import load_result
from raysim.ui.reading import Reading
from tests.attack.folders import Ending, launch
from tests.attack.place import Attempt, Place

SECRET = b"export TOKEN=of-the-user\n"
NAMES = (
    "run.log", "process.json", ".lock", "status.json", "rounds.csv", "clients.csv", "profile.csv", "summary.json",
    "environment.json", "config.yaml", "model.safetensors", "trace.json", "precision.json", "report.html", "curve.png",
    "partition.png", "partition.csv", "devices.png", "devices.csv", "rounds.parquet", "clients.parquet", "source.txt",
    "checkpoints", "checkpoints/round-000006", "tensorboard", "anything",
)  # fmt: skip
IN_CHECKPOINT = (
    "manifest.json",
    "server.json",
    "server.safetensors",
    "clients-00000.json",
    "clients-00000.safetensors",
)


def _read(what: Callable[[Path], object]) -> Callable[[Path], int]:
    """A door of Python as one of the command line."""

    def door(folder: Path) -> int:
        try:
            what(folder)
        except RaysimError as error:
            raise SystemExit(f"raysim: {error}") from error
        return FINISHED

    return door


def _compared(folder: Path) -> int:
    target = folder.with_name(f"{folder.name}-compare.html")
    return report([str(folder.parent / "whole"), str(folder), "--out", str(target)])


DOORS: Mapping[str, Callable[[Path], int]] = {
    "resume": lambda folder: launch(["--resume", str(folder)]).print().code,
    "longer": lambda folder: launch(
        ["--resume", str(folder), "--rounds", "8", "--engine.profile=true", "--observer=tensorboard"]
    ).print().code,
    "report": lambda folder: report([str(folder)]),
    "compare": _compared,
    "evaluate": lambda folder: evaluate.main([str(folder)]),
    "model": _read(lambda folder: load_model(folder, 0)),
    "result": _read(load_result),
    "page": _read(lambda folder: Reading(folder).refresh()),
}  # fmt: skip


def link(place: Place, random: Random) -> Attempt:
    """A name of the folder is a link of some kind, and one thing is done with the folder.

    What the link points to must be as it was and in no file of the folder, and the link must be named.
    """
    folder, home = place.new(), place.new()
    shutil.copytree(place.whole if random.random() < 0.5 else place.halfway, folder)
    home.mkdir()
    name = random.choice(NAMES)
    if random.random() < 0.3:
        checkpoint = random.choice(sorted(path.name for path in (folder / "checkpoints").glob("round-??????")))
        name = f"checkpoints/{checkpoint}/{random.choice(IN_CHECKPOINT)}"
    elif random.random() < 0.4:
        name += ".partial"
    kind = random.choice(["file", "directory", "nothing", "hard"])
    _lay(folder / name, home, kind)
    door = random.choice(sorted(DOORS))
    ending = through(DOORS[door], folder)
    what = f"{name} is a link to {kind}, {door}"
    fault = "" if kind == "hard" else ending.fault()
    if kind != "hard" and (ending.code != REFUSED or f"{folder / name} is a link" not in ending.error):
        fault = fault or "the link was not refused"
    if "Traceback" in ending.error:
        fault = "a traceback"
    fault = fault or _leak(folder, home, hard=kind == "hard")
    if not fault:
        for path in (folder, home):
            shutil.rmtree(path)
    return Attempt(what, fault, ending.error)


def _lay(path: Path, home: Path, kind: str) -> None:
    secret = home / "bashrc"
    secret.write_bytes(SECRET)
    if path.is_dir():
        shutil.move(path, home / "moved")
        path.symlink_to(home / "moved")
        return
    path.unlink(missing_ok=True)
    if kind == "hard":
        os.link(secret, path)
    else:
        path.symlink_to({"file": secret, "directory": home, "nothing": home / "new"}[kind])


def through(door: Callable[[Path], int], folder: Path) -> Ending:
    """How it ends, as the command line would."""
    error = io.StringIO()
    with contextlib.redirect_stderr(error), contextlib.redirect_stdout(io.StringIO()):
        try:
            code = door(folder)
        except SystemExit as found:
            print(found)
            error.write(f"{found}\n")
            code = REFUSED
        except Exception:
            traceback.print_exc()
            code = FAILED
    return Ending(
        code, error.getvalue().replace("raysim.report: ", "raysim: ").replace("raysim.evaluate: ", "raysim: ")
    )


def _leak(folder: Path, home: Path, hard: bool) -> str:
    """What happened to the user's files, or where what is in them turned up."""
    if (home / "bashrc").read_bytes() != SECRET or (home / "new").exists():
        return "a file outside the folder was written"
    if {path.name for path in home.iterdir()} - {"bashrc", "moved"}:
        return "a file outside the folder was made"
    for path in folder.rglob("*"):
        if hard or path.is_symlink() or not path.is_file():
            continue
        content = path.read_bytes()
        if SECRET in content or base64.b64encode(SECRET)[:24] in content:
            return f"{path.name} holds what the link points to"
    return ""
