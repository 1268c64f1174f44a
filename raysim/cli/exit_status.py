"""How a run ended, in words and as an exit code: for who launched it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, TextIO

from raysim.config.config_file import CONFIG_NAME, naming_words, read_config_file
from raysim.config.help_text import json_text
from raysim.driver.outcome import Outcome
from raysim.errors import FAILED, FINISHED, REFUSED
from raysim.monitor.progress import plain_text
from raysim.running.mirrored import Mirrored
from raysim.storage.complaint import complain
from raysim.storage.folder_files import printable
from raysim.storage.run_folder import is_run
from raysim.storage.run_record import read_summary
from raysim.units import counted
from raysim.workloads.naming import synthetic_mark


def tell(
    outcome: Outcome,
    folder: Path,
    stopped: int,
    times: str,
    output: TextIO | None = None,
    mirrored: Mirrored | None = None,
) -> int:
    """Print how the run ended and what to do next.

    Args:
        folder: the run's; one without a round has been taken back.
        stopped: the exit code of a run that was stopped.
        output: gets one JSON object in the place of the words for a finished run; None: words.
        mirrored: the run's remote side, which may be incomplete: that is a failure of an otherwise finished run.

    Returns:
        The exit code.
    """
    address, incomplete = (mirrored.address, mirrored.incomplete()) if mirrored else ("", "")
    if output is not None:
        there = is_run(folder)
        told: dict[str, Any] = {
            "status": outcome.status,
            "message": outcome.message,
            "folder": str(folder) if there else None,
        }
        if outcome.status != "finished" or incomplete:
            told["error"] = outcome.message or incomplete or outcome.status
        if address:
            told["remote"] = {"address": address, "complete": not incomplete, "message": incomplete}
        print(json_text(told | (read_summary(folder) if outcome.status == "finished" else {})), file=output, flush=True)
    if incomplete:
        complain(incomplete)
    if outcome.status == "finished":
        if output is None:
            _print_summary(folder, times)
        return FAILED if incomplete else FINISHED
    if outcome.status == "stopped":
        print("raysim: stopped", file=sys.stderr)
    else:
        if outcome.traceback:
            print(printable(plain_text(outcome.traceback)), file=sys.stderr)
        complain(outcome.message)
    if is_run(folder) and outcome.resumable:  # a failure before the first round has taken a new folder back
        own = naming_words(read_config_file(folder / CONFIG_NAME))
        print(f"Go on with: python -m raysim.launch --resume {address or short(folder)}{own}", file=sys.stderr)
    if outcome.status == "stopped":
        return stopped
    return REFUSED if outcome.refused else FAILED


def short(path: Path) -> str:
    """The path as it is best typed here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _print_summary(folder: Path, times: str) -> None:
    summary = read_summary(folder)
    data = synthetic_mark(summary["synthetic"])
    measure = "accuracy" if "accuracy" in summary else "loss"
    measured = summary[measure] is not None
    accuracy = f"{measure} {summary[measure]:.4f}" if measured else f"no {measure} (no test samples)"
    best = f" (best {summary[f'best_{measure}']:.4f} in round {summary['best_round']})" if measured else ""
    page = folder / "report.html"
    shown = short(page) if page.exists() else f"{short(folder)} (its page: python -m raysim.report {short(folder)})"
    print(
        f"{accuracy}{data} after {counted(summary['rounds'], 'round')} and "
        f"{counted(summary['local_epochs'], 'local epoch')}{best}; "
        f"{times}\n"
        f"{shown}"
    )
    if "proof" in summary:
        print(f"proof {summary['proof']} (check it: python -m raysim.verify {short(folder)})")
