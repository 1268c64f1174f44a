"""``python -m raysim.launch``: one run from the command line.

Exit codes: 0 finished; 1 the run failed; 2 the request cannot be met (options, folder); 130 stopped by Ctrl-C,
143 by SIGTERM, 129 by SIGHUP.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing, redirect_stdout
from pathlib import Path
from typing import TextIO

from raysim import missing_packages, portable
from raysim.cli.exit_status import short, tell
from raysim.cli.interruption import Interruption
from raysim.config.answering import print_whole
from raysim.config.command_line import Invocation, parse
from raysim.config.help_text import json_text
from raysim.driver.outcome import Outcome
from raysim.engine.observer import Several
from raysim.errors import FINISHED, REFUSED, ConfigError, DiskFullError, RaysimError
from raysim.leaving import staying
from raysim.monitor.progress import Progress, title_of
from raysim.storage.folder_files import printable
from raysim.storage.process_lock import launching

STARTED = time.monotonic()
"""When this program was loaded: what a run says of its time counts from here."""


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, run, report; returns the exit code."""
    atexit.register(_leave_garbage)
    code = _reported(sys.argv[1:] if argv is None else list(argv))
    simulation = sys.modules.get("raysim.running.simulation")
    if simulation is not None and simulation.blocked():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def _leave_garbage() -> None:
    """Spare Python its last look for garbage among all modules, which takes as long as ending Ray does.

    Not beside torch: libraries that come with it count what is left then, and complain.
    """
    if "torch" not in sys.modules:
        gc.freeze()


def _reported(words: Sequence[str]) -> int:
    """The exit code of a command line; what cannot be met is said in one message."""
    interruption = Interruption()
    output, as_json = sys.stdout, "--json" in words

    def refuse(message: str, code: int = REFUSED) -> int:
        print(message, file=sys.stderr)
        if as_json:
            print_whole(json_text({"error": message.removeprefix("raysim: ")}), output)
        return code

    try:
        # With --json a user's own code prints to standard error.
        with staying(), interruption, redirect_stdout(sys.stderr if as_json else output):
            return _run(words, interruption, output, as_json=as_json)
    except Exception as error:
        if interruption.raised():
            return refuse("raysim: interrupted", interruption.exit_code)
        return refuse(_refusal(error))
    except KeyboardInterrupt:
        return refuse("raysim: interrupted", interruption.exit_code)


def _refusal(error: Exception) -> str:
    """Say why the request cannot be met, where that is what the error shows; every other one is raised again."""
    if isinstance(error, RaysimError):
        return f"raysim: {printable(str(error))}"
    if isinstance(error, ModuleNotFoundError):
        return missing_packages.sentence(str(error.name))
    if isinstance(error, (ImportError, MemoryError)):  # a library that does not fit under `ulimit -v` cannot be loaded
        reason = " ".join(str(error).split()) or "no memory is left"
        if isinstance(error, ImportError) and not any(word in reason for word in ("failed to map", "llocate memory")):
            raise error
        return (
            f"raysim: a library could not be loaded or had no memory ({reason}). If memory is limited (`ulimit -v`, a "
            "container), allow more: torch alone takes some 4 GB of addresses."
        )
    raise error


def _run(words: Sequence[str], interruption: Interruption, output: TextIO, *, as_json: bool) -> int:
    from raysim.running.open_run import prepare
    from raysim.storage.run_folder import take_back

    invocation = parse(words)
    if invocation.action == "run" and invocation.config.engine.portable:
        portable.start_again()
    if invocation.action != "run":
        print_whole(json_text(invocation.told) if as_json else invocation.text, output)
        return FINISHED
    for note in invocation.notes:
        print(f"note: {note}", file=sys.stderr)
    if invocation.resume is not None and "output" in invocation.overrides:
        raise ConfigError("--output: a resumed run goes on in its own folder; leave --output out")
    if invocation.ui is not None:
        from raysim.ui.serving import Address

        Address.parse(invocation.ui)  # a slip in it costs no folder
    folder: Path | None = None
    try:
        with interruption.deferred():
            folder = prepare(invocation.config, invocation.resume)
        return _work(invocation, folder, interruption, output if as_json else None)
    except BaseException as error:
        repeatable = interruption.raised() or isinstance(error, (KeyboardInterrupt, ConfigError, DiskFullError))
        if folder is not None and repeatable and invocation.resume is None and not (folder / "rounds.csv").exists():
            take_back(folder)  # a repeat must find the name free
        raise


def _work(invocation: Invocation, folder: Path, interruption: Interruption, output: TextIO | None = None) -> int:
    """Drive the run in ``folder``, which is prepared, and serve its page if one was asked for; the exit code.

    With ``output`` that gets how the run ended, as one JSON object.
    """
    from raysim.storage.run_folder import is_run

    with ExitStack() as stack:
        stack.enter_context(launching(folder))
        if invocation.ui is None:
            return _follow(invocation, folder, interruption, output)
        from raysim.ui.serving import Address, Page, until_interrupted

        page = stack.enter_context(closing(Page(folder, Address.parse(invocation.ui))))
        print(f"live page: {page.url}", file=sys.stderr, flush=True)
        code = _follow(invocation, folder, interruption, output)
        # A job without a terminal must end with its run: there would be nobody to press Ctrl-C.
        if not interruption.asked() and sys.stdin.isatty() and is_run(folder):
            print(f"the page stays until Ctrl-C: {page.url}", file=sys.stderr)
            until_interrupted()
        elif is_run(folder):
            print(f"the page again: python -m raysim.ui {short(folder)}", file=sys.stderr)
        return code


def _follow(invocation: Invocation, folder: Path, interruption: Interruption, output: TextIO | None) -> int:
    """Run, show progress and how it ended; the exit code."""
    from raysim.config.run_config import to_dict
    from raysim.running.mirrored import mirrored, remote_output
    from raysim.running.simulation import execute
    from raysim.schedule import planned_intervals

    config = invocation.config
    intervals = planned_intervals(config)
    elapsed, resumed = time.monotonic() - STARTED, invocation.resume is not None
    address = invocation.remote or remote_output(config, invocation.resume)
    with (
        Progress(title_of(to_dict(config)), len(intervals), sum(intervals), elapsed=elapsed) as progress,
        mirrored(address, folder, Several(progress, interruption), resumed=resumed) as mirror,
    ):
        try:
            outcome = execute(
                config,
                folder,
                mirror.observer,
                resumed=resumed,
                verbose=invocation.verbose,
                stopping=interruption.asked,
                interrupted=interruption.raised,
            )
        except KeyboardInterrupt:
            outcome = Outcome("stopped")
        finally:
            interruption.rounds_ended()
    if outcome.status == "finished" and config.engine.profile:
        from raysim.monitor.profile_table import show

        show(folder / "profile.csv", sys.stdout)
    return tell(outcome, folder, interruption.exit_code, progress.times(), output, mirror)


if __name__ == "__main__":
    sys.exit(main())
