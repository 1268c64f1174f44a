"""Checks a run's folder against its proof, and computes parts of the run again.

``python -m raysim.verify FOLDER``. Exit codes: 0 equal, 1 something differs, 2 the request cannot be met; with
``--tolerance`` 3: not equal, but all values of the tables agree to their printed digits; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import SystemRandom
from typing import Any

from raysim import portable
from raysim.cli.foreign_folder import add_trust, read_config
from raysim.config.answering import Answer, answered
from raysim.config.registry import KINDS
from raysim.config.run_config import RunConfig, classes_of
from raysim.errors import FAILED, FINISHED, ResultsError
from raysim.remote.places import run_folder
from raysim.results.given_again import check_digests
from raysim.running.open_run import stored_config
from raysim.running.python_objects import config_of
from raysim.verification.differences import explanations
from raysim.verification.folder_check import FolderCheck
from raysim.verification.recompute import again, check_rounds, placed
from raysim.verification.spot import spot
from raysim.verification.verdict import Verdict

CLOSE = 3
"""Exit code of ``--tolerance``: not equal, but all values of the tables agree to their printed digits."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    return answered(_parser(), arguments, _verified)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m raysim.verify",
        description="Check a run's folder against its proof: chain, tables, checkpoints, model. Nothing is trained and "
        "no code of the folder is run, unless rounds are to be computed again. The folder is only read.",
    )
    parser.add_argument("folder", type=run_folder, metavar="FOLDER", help="a run's folder, or its remote address")
    parser.add_argument("--rounds", type=_numbers, default=[], help="compute these rounds again, 3,17 say")
    parser.add_argument("--all", action="store_true", help="compute the whole run again")
    parser.add_argument(
        "--spot",
        type=int,
        default=0,
        metavar="COUNT",
        help="compute this many random client tasks again, of a run with --proof clients",
    )
    parser.add_argument("--actors", type=int, default=0, help="client actors of it on Ray; 0: all in this process")
    parser.add_argument("--cpu", action="store_true", help="compute on the CPU, also a run that was on a GPU")
    parser.add_argument("--head", help="the head of the proof as it was published, all its 64 digits")
    parser.add_argument(
        "--tolerance",
        action="store_true",
        help="with --all or --rounds: say of every round how far it is from the new computation, as for a run of "
        "another kind of processor; exit code 3 where all table values agree to their printed digits",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_trust(parser)
    return parser


def _verified(options: argparse.Namespace) -> Answer:
    computes = options.all or options.rounds or options.spot
    if options.tolerance and not (options.all or options.rounds):
        raise ResultsError("--tolerance: no rounds are computed again. Add --all, or --rounds 3,17 say.")
    if options.head is not None and not re.fullmatch("[0-9a-f]{64}", options.head):
        raise ResultsError(f"--head {options.head!r}: not allowed. Allowed: the 64 digits (0-9, a-f) of a whole head.")
    unused = [name for name in ("actors", "cpu", "trust", *KINDS) if getattr(options, name)]
    if unused and not computes:
        raise ResultsError(f"--{unused[0]}: nothing is computed again. Add --all, or --rounds 3,17 or --spot 5 say.")
    config = placed(read_config(options.folder, options), options.actors, cpu=options.cpu) if computes else None
    if config is not None and config.engine.portable:
        portable.start_again()
    rounds = None if options.all else options.rounds
    head = options.head or ""
    verdict = verify(options.folder, config, rounds=rounds, tasks=options.spot, head=head, tolerance=options.tolerance)
    code = FINISHED if verdict.equal else CLOSE if verdict.close else FAILED
    return Answer(verdict.text(), verdict.plain(), code)


def verify(
    folder: Path,
    config: RunConfig | None = None,
    *,
    rounds: Sequence[int] | None = (),
    tasks: int = 0,
    head: str = "",
    tolerance: bool = False,
) -> Verdict:
    """Check a run's folder, and with ``config`` compute rounds of it again.

    Args:
        folder: a run's folder, which is only read.
        config: the run's settings, of which those of ``engine`` say where rounds are computed; None: nothing is.
        rounds: those to compute; None: all.
        tasks: how many random client tasks to compute.
        head: the head of the proof as it was published; empty: not known.
        tolerance: say how far every round is from its new computation.

    Raises:
        RaysimError: there is nothing to check, or it cannot be computed here.
    """
    check = FolderCheck(folder)
    verdict = check.run(head)
    if config is not None and verdict.equal:
        wanted = [*check.rounds] if rounds is None else check_rounds(rounds, check)
        with tempfile.TemporaryDirectory(prefix="raysim-verify-") as place:
            if tasks:
                spot(check, config, tasks, Path(place) / "tasks", SystemRandom())
            if wanted and verdict.equal:
                again(check, config, wanted, Path(place) / "rounds", whole=rounds is None, tolerance=tolerance)
    verdict.explanations = explanations(folder, config)
    return verdict


def verify_given(
    folder: str | Path, *, rounds: Sequence[int] | None = (), tasks: int = 0, actors: int = 0, **objects: object
) -> Verdict:
    """The same of a run whose method, model or data was given in Python, which are given once more.

    Args:
        folder: as of :func:`verify`, as are rounds and tasks.
        actors: client actors on Ray; 0: all in this process.
        objects: ``method``, ``model``, ``clients``, ``test``, ``loss`` and ``metrics`` of :func:`raysim.run`, as far as
            they were given to it.

    Raises:
        RaysimError: as of :func:`verify`, and where they are not what the run was made with.
    """
    folder, given = Path(folder), dict[str, Any](objects)
    config, _ = config_of(given.pop("method", {}), folder, {}, **given)
    check_digests(stored_config(folder, classes_of(config)), config, folder)
    return verify(folder, placed(config, actors), rounds=rounds, tasks=tasks)


def _numbers(text: str) -> list[int]:
    """Round numbers, separated by commas."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} are no rounds. Allowed: whole numbers, 3,17 say") from error


if __name__ == "__main__":
    sys.exit(main())
