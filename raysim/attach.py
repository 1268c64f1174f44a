"""``python -m raysim.attach RUN``: show the progress of a run that goes on, from wherever its folder is seen.

Reads the run's folder only: no Ray, and nothing that the run would notice. Exit codes: the run's own once it has ended
(0 finished, 1 failed or died, 130 stopped); 130 too for Ctrl-C, which ends this display and not the run; 2 if there is
no such run. With ``--stop``: 0 once the run has stopped or ended.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from raysim import sitting, status
from raysim.background import OUTPUT
from raysim.ending import FINISHED, REFUSED, STOPPED, short, tell
from raysim.errors import RaysimError, ResultsError
from raysim.following import Follower
from raysim.nearest import did_you_mean
from raysim.outcome import Outcome
from raysim.progress import Progress, title_of
from raysim.runs_list import ROOT, names, print_runs
from raysim.watching import SYNTHETIC, Watched

PAUSE = 0.5
"""Seconds between two looks at the run's folder."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m raysim.attach",
        description="Show the progress of a run and end with its exit code. Ctrl-C ends this display, not the run.",
    )
    parser.add_argument("run", nargs="?", help=f"a run's folder, or its name in ./{ROOT}; without it: a list of those")
    parser.add_argument("--stop", action="store_true", help="ask the run to stop, as Ctrl-C where it was launched does")
    options = parser.parse_args(arguments)
    try:
        if options.run is not None:
            return attach(find(options.run), stop=options.stop)
        if options.stop:
            raise ResultsError("--stop: of which run? Give its folder or its name; without both, a list is shown")
        print_runs(Path(ROOT))
        return FINISHED
    except RaysimError as error:
        print(f"raysim.attach: {error}", file=sys.stderr)
        return REFUSED


def find(name: str) -> Path:
    """The folder of a run that is named by its folder or by its name in ``./runs``.

    Raises:
        ResultsError: there is none; with the names that come nearest.
    """
    for folder in (Path(name), Path(ROOT) / name):
        if (folder / "config.yaml").is_file():
            return folder.resolve()
    if Path(name).is_dir():
        raise ResultsError(f"{name} is no run folder: config.yaml is missing. Give the folder a run has written.")
    known = names(Path(ROOT))
    guess = did_you_mean(Path(name).name, known)
    raise ResultsError(
        f"no run {name!r}: neither a folder from {Path.cwd()} on, nor in ./{ROOT}.{guess} "
        "python -m raysim.attach without a name lists the runs there."
    )


def attach(folder: Path, *, stop: bool = False) -> int:
    """Follow the run to its end; the exit code."""
    watched = Watched(folder)
    if stop:
        _ask_to_stop(watched)
    try:
        live = _follow(watched)
    except KeyboardInterrupt:
        print(f"\nraysim: the run goes on; again: python -m raysim.attach {short(folder)}", file=sys.stderr)
        return STOPPED
    code = _tell(watched, live)
    return FINISHED if stop and code == STOPPED else code


def _ask_to_stop(watched: Watched) -> None:
    folder = watched.folder
    if watched.live()["state"] not in status.LIVE:
        return  # what became of it is said at once
    if not sitting.is_held(folder / sitting.NAME):
        raise ResultsError(
            f"{short(folder)}: this run was not started by raysim.launch, or runs on a machine that shares no locks "
            "with this one: interrupt it where it was started"
        )
    holder = sitting.holder(folder)
    if sitting.asked_to_stop(folder):
        print(
            "raysim: it was asked before; to end it at once, without saving: "
            f"kill {holder.get('process')} on {holder.get('host')}",
            file=sys.stderr,
        )
    sitting.ask_to_stop(folder)


def _follow(watched: Watched) -> dict[str, Any]:
    """Show the run until it is over; its last status."""
    live = watched.live()
    while live["state"] == "preparing" and not live.get("rounds"):  # its driver is not up yet
        time.sleep(PAUSE)
        live = watched.live()
    elapsed = live.get("updated", time.time()) if live["state"] not in status.LIVE else time.time()
    elapsed -= live.get("started", elapsed)
    rounds, epochs = live.get("rounds", 0), live.get("epochs", 0)
    with Progress(title_of(watched.config), rounds, epochs, elapsed=elapsed) as progress:
        if watched.synthetic():
            progress.note(SYNTHETIC)
        follower = Follower(watched, progress)
        while (live := follower.refresh())["state"] in status.LIVE:
            time.sleep(PAUSE)
    return live


def _tell(watched: Watched, live: dict[str, Any]) -> int:
    """Say how the run ended; its exit code."""
    folder, state = watched.folder, live["state"]
    if state == "finished" or state == "stopped":
        return tell(Outcome(state), folder)
    message = {
        "failed": str(live.get("message") or "the run failed"),
        "died": f"the run died in round {live.get('round', 0)} of {live.get('rounds', 0)}: no process is at work on it "
        "any more (killed, or its machine was started anew). The last checkpoint is kept",
        "gone": "the run failed before its first round and has taken its folder back",
    }.get(state, "no process is at work on this run, and it has not begun")
    if state == "failed" and (folder / OUTPUT).exists():
        message += f". All that it said: {short(folder)}/{OUTPUT}"
    return tell(Outcome("failed", message), folder)


if __name__ == "__main__":
    sys.exit(main())
