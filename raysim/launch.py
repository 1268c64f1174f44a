"""``python -m raysim.launch``: one run from the command line.

Exit codes: 0 finished; 1 the run failed; 2 the request cannot be met (options, folder); 130 interrupted.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from raysim.ending import FINISHED, REFUSED, STOPPED, short, tell
from raysim.errors import ConfigError, DiskFullError, RaysimError
from raysim.options import Invocation, parse
from raysim.outcome import Outcome
from raysim.progress import Progress, title_of
from raysim.sitting import sitting
from workloads.errors import WorkloadError


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, run, report; returns the exit code."""
    words = sys.argv[1:] if argv is None else list(argv)
    return reported(lambda: _main(words))


def reported(run: Callable[[], int]) -> int:
    """The exit code of ``run``; what cannot be met is said in one message."""
    try:
        return run()
    except (RaysimError, WorkloadError) as error:
        print(f"raysim: {error}", file=sys.stderr)
        return REFUSED
    except ModuleNotFoundError as error:
        print(
            f"raysim: {sys.executable} has no package {error.name!r}, which raysim needs. Use the Python that it was "
            "installed for (`. .venv/bin/activate` in its folder, then the same command), or install it for this one: "
            "pip install -e . in that folder",
            file=sys.stderr,
        )
        return REFUSED
    except KeyboardInterrupt:
        print("raysim: interrupted", file=sys.stderr)
        return STOPPED


def _main(words: Sequence[str]) -> int:
    from raysim.simulation import prepare

    invocation = parse(words)
    if invocation.action != "run":
        try:
            print(invocation.text, flush=True)
        except BrokenPipeError:  # what reads it has seen enough, as `| head` does
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FINISHED
    if invocation.resume is not None and "output" in invocation.overrides:
        raise ConfigError("--output: a resumed run goes on in its own folder; leave --output out")
    if invocation.ui is not None:
        from raysim.ui.serving import Address

        Address.parse(invocation.ui)  # a slip in it costs no folder
    folder = prepare(invocation.config, invocation.resume)
    return work(invocation, folder)


def work(invocation: Invocation, folder: Path) -> int:
    """Drive the run in ``folder``, which is prepared, and serve its page if one was asked for; the exit code."""
    with ExitStack() as stack:
        try:
            stack.enter_context(sitting(folder))
        except DiskFullError:
            if invocation.resume is None:  # nothing is lost with it
                shutil.rmtree(folder, ignore_errors=True)
            raise
        if invocation.ui is None:
            return _follow(invocation, folder)
        from raysim.ui.serving import Address, Page, until_interrupted

        try:
            page = Page(folder, Address.parse(invocation.ui))
        except ConfigError:
            if invocation.resume is None:  # a repeat with another address must find the name free
                shutil.rmtree(folder)
            raise
        try:
            print(f"live page: {page.url}", file=sys.stderr, flush=True)
            code = _follow(invocation, folder)
            # A job without a terminal must end with its run: there would be nobody to press Ctrl-C.
            if code != STOPPED and sys.stdin.isatty() and folder.exists():
                print(f"the page stays until Ctrl-C: {page.url}", file=sys.stderr)
                until_interrupted()
            elif folder.exists():
                print(f"the page again: python -m raysim.ui {short(folder)}", file=sys.stderr)
            return code
        finally:
            page.close()


def _follow(invocation: Invocation, folder: Path) -> int:
    """Run, show progress and how it ended; the exit code."""
    from raysim import status
    from raysim.config import to_dict
    from raysim.schedule import planned_intervals
    from raysim.simulation import execute

    config = invocation.config
    intervals = planned_intervals(config)
    interrupted = threading.Event()

    def interrupt(number: int, frame: Any) -> None:
        if interrupted.is_set():
            raise KeyboardInterrupt  # asked twice: at once
        interrupted.set()

    with Progress(title_of(to_dict(config)), len(intervals), sum(intervals)) as progress:
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
            status.settle(folder, "stopped", "")
        finally:
            signal.signal(signal.SIGINT, before)
    if outcome.status == "finished" and config.engine.profile:
        from raysim.profile_table import show

        show(folder / "profile.csv", sys.stdout)
    return tell(outcome, folder)


if __name__ == "__main__":
    sys.exit(main())
