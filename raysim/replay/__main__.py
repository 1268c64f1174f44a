"""Run a run once more with one change and nothing else, and compare the two.

``python -m raysim.replay FOLDER --without CLIENT --from ROUND``. Exit codes: 0 finished; 1 the run failed; 2 it cannot
be replayed so, and why; 130, 143, 129 stopped by a signal.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim import portable
from raysim.cli.exit_status import short, tell
from raysim.cli.interruption import Interruption
from raysim.config.answering import Answer, answered
from raysim.config.run_config import to_dict
from raysim.driver.outcome import Outcome
from raysim.engine.observer import Several
from raysim.errors import FINISHED
from raysim.monitor.progress import Progress, title_of
from raysim.replay import command
from raysim.replay.begin import begin
from raysim.replay.comparison import compare_runs, write_page
from raysim.running.simulation import execute
from raysim.schedule import planned_intervals
from raysim.storage.origin import read_origin
from raysim.storage.run_folder import RunFolder
from raysim.storage.run_record import read_summary
from raysim.verification.recompute import with_decisions

if TYPE_CHECKING:
    import argparse

    from raysim.replay.command import Command


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    return answered(command.parser(), arguments, _replayed)


def _replayed(options: argparse.Namespace) -> Answer:
    asked = command.read(options)
    if asked.config.engine.portable:
        portable.start_again()
    folder = begin(asked.check, asked.stored, asked.config, asked.change.first)
    code, message = _run(asked, folder)
    return _told(asked, folder) if code == FINISHED else Answer(told={"error": message}, code=code)


def _run(asked: Command, folder: Path) -> tuple[int, str]:
    """Compute the rounds from the change on; the exit code, and why they are not finished."""
    config, taken = with_decisions(asked.check, asked.stored, asked.config), asked.change.first - 1
    intervals, interruption = planned_intervals(config), Interruption()
    with interruption, Progress(title_of(to_dict(config)), len(intervals), sum(intervals)) as progress:
        try:
            outcome = execute(
                config,
                folder,
                Several(progress, interruption),
                resumed=taken > 0,
                stopping=interruption.asked,
                keep_ray=True,
            )
        except KeyboardInterrupt:
            outcome = Outcome("stopped")
    if outcome.status == "finished":
        return FINISHED, ""
    if folder.exists() and RunFolder(folder).rounds_written() == taken:
        shutil.rmtree(folder)  # nothing was computed
    return tell(outcome, folder, interruption.exit_code, progress.times()), outcome.message or outcome.status


def _told(asked: Command, folder: Path) -> Answer:
    """All that is said of a finished replay, as JSON has it and in words; its page is written."""
    comparison = compare_runs(asked.check.path, folder)
    page, origin = write_page(asked.check.path, folder, comparison), read_origin(folder)
    change = "; ".join(origin["changes"]) or "nothing is changed"
    text = [f"from round {asked.change.first} on: {change}", *comparison.text()]
    told: dict[str, Any] = {
        "folder": str(folder),
        "origin": origin,
        "proof": read_summary(folder).get("proof"),
        **comparison.plain(),
    }
    if asked.membership:
        from raysim.replay.membership import membership

        pairs = ((asked.stored, asked.check.path), (asked.config, folder))
        found = membership(asked.change.without, *pairs)
        told["membership"] = [each.plain() for each in found]
        text += [each.text() for each in found]
    text += [short(page), f"proof {told['proof']}, of a run with the proof {origin['head']}"]
    return Answer("\n".join(text), told)


if __name__ == "__main__":
    sys.exit(main())
