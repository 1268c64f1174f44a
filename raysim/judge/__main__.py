"""Judge whether one group of runs is better than another: paired by seed, under equal budget, or refused.

``python -m raysim.judge A B``. Exit codes: 0 judged, also where it cannot be told; 1 refused, with every reason; 2 the
request has a mistake; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from raysim.cli.foreign_folder import add_trust
from raysim.config.answering import Answer, answered
from raysim.errors import FAILED, FINISHED, ConfigError
from raysim.judge import budget, fairness, options, tuning
from raysim.judge.again import recomputed
from raysim.judge.measuring import chooses, measure_of, values_of
from raysim.judge.refusals import Refusal
from raysim.judge.runs import Side, folders_of, read_side
from raysim.judge.verdict import Groups, Refused, Verdict
from raysim.remote.address import typed_path
from raysim.studies.command import count_of
from raysim.units import counted


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    return answered(_parser(), arguments, _judged)


def _parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog="python -m raysim.judge",
        usage="python -m raysim.judge A B [--measure NAME] [--tuned OPTION --search-a FOLDER --search-b FOLDER]\n"
        "       python -m raysim.judge --a FOLDER … --b FOLDER …",
        description="Judge whether runs A are better than runs B: a paired comparison under equal budget, with its "
        "uncertainty, or every reason why they do not compare. The folders are only read.",
        allow_abbrev=False,
    )
    add = found.add_argument
    add("folders", type=Path, nargs="*", metavar="A B", help="two folders, each a run's or one that holds runs")
    add("--a", type=typed_path, nargs="+", default=[], metavar="FOLDER", help="runs of A, or folders that hold them")
    add("--b", type=typed_path, nargs="+", default=[], metavar="FOLDER", help="runs of B")
    add("--measure", default="", metavar="NAME", help="what judges: accuracy by default; validated_ or tail_ before it")
    add("--subject", choices=options.SUBJECTS, default="method", help="the section whose options may differ")
    add("--tuned", action="append", default=[], metavar="OPTION", help="an option that both sides searched alike")
    add("--search-a", type=typed_path, metavar="FOLDER", help="the search of A (raysim.search, a study with --choose)")
    add("--search-b", type=typed_path, metavar="FOLDER", help="that of B; may be the same study")
    add(
        "--recompute",
        type=partial(count_of, "recompute"),
        default=0,
        metavar="N",
        help="compute N runs of each side again, drawn at random: a forged folder may agree with its own proof",
    )
    add("--json", action="store_true", help="print one JSON object")
    add_trust(found)
    return found


def _judged(request: argparse.Namespace) -> Answer:
    found = _found(request)
    return Answer(found.text(), found.plain(), FAILED if isinstance(found, Refused) else FINISHED)


def _found(request: argparse.Namespace) -> Verdict | Refused:
    """The verdict, or all reasons that keep the groups from being compared."""
    a, b, refusals = _sides(request)
    if refusals:
        return Refused(Groups(a.name, b.name, measure_of(request.measure, ())), refusals)
    tuned = tuning.full_names(request.tuned, a)
    pairs = fairness.pairs_of(a, b)
    groups = Groups(a.name, b.name, measure_of(request.measure, pairs))
    refusals += fairness.refusals(a, b, request.subject, tuned)
    refusals += tuning.refusals(a, b, request.subject, tuned, _searches(request, a, b, tuned))
    values, lacking = values_of(groups.measure, pairs)
    refusals += [*chooses(groups.measure), *lacking]
    if not refusals and request.recompute:
        refusals += [refusal for side in (a, b) for refusal in recomputed(side, request)]
    if refusals:
        return Refused(groups, refusals)
    return Verdict(groups, values, options.told(pairs), budget.spent(pairs), _notes(request, a, b))


def _sides(request: argparse.Namespace) -> tuple[Side, Side, list[Refusal]]:
    """Both groups, and why some of their runs do not count."""
    if request.folders and (request.a or request.b):
        raise ConfigError("give the two groups as A B, or as --a FOLDER … --b FOLDER …, not both.")
    first, second = request.a, request.b
    if request.folders:
        if len(request.folders) != 2:
            raise ConfigError(
                f"{counted(len(request.folders), 'folder')}: two groups are judged, A B; of more folders name each "
                "group's, --a FOLDER … --b FOLDER …."
            )
        first, second = request.folders[:1], request.folders[1:]
    if not (first and second):
        raise ConfigError("two groups are judged: python -m raysim.judge A B, each a folder that holds runs.")
    a, refused = read_side("A", folders_of(first))
    b, also = read_side("B", folders_of(second))
    return a, b, [*refused, *also]


def _searches(request: argparse.Namespace, a: Side, b: Side, tuned: Sequence[str]) -> list[tuning.Tuning | None]:
    given = ((request.search_a, a), (request.search_b, b))
    if any(folder for folder, _ in given) and not request.tuned:
        raise ConfigError("--search-a, --search-b: name the options that were searched, --tuned learning_rate say.")
    more = (request.trust, request.subject, tuned)
    return [tuning.read(folder, side, *more) if folder else None for folder, side in given]


def _notes(request: argparse.Namespace, a: Side, b: Side) -> tuple[str, ...]:
    """Facts that a reader of the verdict should know."""
    notes, runs = list[str](), [*a.runs, *b.runs]
    if any(run.environment.get("dirty") for run in runs):
        notes.append("all runs are of code with changes that no commit holds, which may not be the same changes")
    if len({str(run.environment.get("cpu")) for run in runs}) > 1:
        notes.append("the runs were made on different processors, which can change last digits")
    if a.first.settings.get("seed_of"):
        notes.append("seed_of fixes some streams over all seeds: what is found holds for these alone")
    if len({str(run.settings.get("workload.fold")) for run in a.runs}) > 1:
        notes.append("each seed is another fold; folds share training samples: the interval is not widened for that")
    if not request.recompute:
        notes.append("folders were compared with their own proofs; --recompute 1 computes one run of each side again")
    return tuple(notes)


if __name__ == "__main__":
    sys.exit(main())
