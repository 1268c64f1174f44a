"""``python -m raysim.launch``: one run from the command line.

Exit codes: 0 finished; 1 the run failed; 2 the request cannot be met (options, folder); 130 interrupted.
"""

from __future__ import annotations

import shutil
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from raysim.errors import ConfigError, RaysimError
from raysim.options import Invocation, parse
from raysim.outcome import Outcome
from raysim.progress import Progress, plain_text
from workloads.errors import WorkloadError


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, run, report; returns the exit code."""
    try:
        invocation = parse(sys.argv[1:] if argv is None else argv)
        if invocation.action != "run":
            print(invocation.text)
            return 0
        return _run(invocation)
    except (RaysimError, WorkloadError) as error:
        print(f"raysim: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("raysim: interrupted", file=sys.stderr)
        return 130


def _run(invocation: Invocation) -> int:
    from raysim.simulation import prepare

    if invocation.resume is not None and "output" in invocation.overrides:
        raise ConfigError("--output: a resumed run goes on in its own folder; leave --output out")
    if invocation.ui is None:
        return _follow(invocation, prepare(invocation.config, invocation.resume))
    from raysim.ui.serving import Address, Page, until_interrupted

    address = Address.parse(invocation.ui)
    folder = prepare(invocation.config, invocation.resume)
    try:
        page = Page(folder, address)
    except ConfigError:
        if invocation.resume is None:  # a repeat with another address must find the name free
            shutil.rmtree(folder)
        raise
    try:
        print(f"live page: {page.url}", file=sys.stderr)
        code = _follow(invocation, folder)
        # A job without a terminal must end with its run: there would be nobody to press Ctrl-C.
        if code != 130 and sys.stdin.isatty() and folder.exists():
            print(f"the page stays until Ctrl-C: {page.url}", file=sys.stderr)
            until_interrupted()
        elif folder.exists():
            print(f"the page again: python -m raysim.ui {_short(folder)}", file=sys.stderr)
        return code
    finally:
        page.close()


def _follow(invocation: Invocation, folder: Path) -> int:
    """Run, show progress and how it ended; the exit code."""
    from raysim.config import to_dict
    from raysim.schedule import planned_intervals
    from raysim.simulation import execute

    config = invocation.config
    plain = to_dict(config)
    intervals = planned_intervals(config)
    title = (
        f"{plain['method']['name']} on {plain['workload']['name']} with {plain['model']['name']}, seed {config.seed}"
    )
    interrupted = threading.Event()

    def interrupt(number: int, frame: Any) -> None:
        if interrupted.is_set():
            raise KeyboardInterrupt  # asked twice: at once
        interrupted.set()

    with Progress(title, len(intervals), sum(intervals)) as progress:
        before = signal.signal(signal.SIGINT, interrupt)
        try:
            outcome = execute(
                config,
                folder,
                progress,
                resumed=invocation.resume is not None,
                verbose=invocation.verbose,
                stopping=interrupted.is_set,
            )
        except KeyboardInterrupt:
            outcome = Outcome("stopped")
        finally:
            signal.signal(signal.SIGINT, before)
    if outcome.status == "failed":
        if outcome.traceback:
            print(plain_text(outcome.traceback), file=sys.stderr)
        print(f"raysim: {outcome.message}", file=sys.stderr)
        _say_how_to_resume(folder)
        return 1
    if outcome.status == "stopped":
        print("raysim: stopped", file=sys.stderr)
        _say_how_to_resume(folder)
        return 130
    if config.engine.profile:
        from raysim.profile_table import show

        show(folder / "profile.csv", sys.stdout)
    _print_summary(folder)
    return 0


def _say_how_to_resume(folder: Path) -> None:
    if folder.exists():  # a failure before the first round has taken a new folder back
        print(f"Go on with: python -m raysim.launch --resume {_short(folder)}", file=sys.stderr)


def _print_summary(folder: Path) -> None:
    import json

    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    data = " (synthetic data)" if summary["synthetic"] else ""
    measured = summary["accuracy"] is not None
    accuracy = f"accuracy {summary['accuracy']:.4f}" if measured else "no accuracy (no test samples)"
    best = f" (best {summary['best_accuracy']:.4f} in round {summary['best_round']})" if measured else ""
    print(
        f"{accuracy}{data} after {summary['rounds']} rounds and {summary['local_epochs']} local epochs{best}; "
        f"{summary['seconds']:.1f} s\n"
        f"{_short(folder)}/report.html"
    )


def _short(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


if __name__ == "__main__":
    sys.exit(main())
