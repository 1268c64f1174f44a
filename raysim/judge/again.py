"""Runs of a group computed again, because a forged folder may agree with a forged proof."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import SystemRandom

from raysim import portable
from raysim.cli.foreign_folder import read_config
from raysim.judge.refusals import Refusal, of_one
from raysim.judge.runs import Side
from raysim.verification.recompute import again, placed


def recomputed(side: Side, request: argparse.Namespace) -> Iterator[Refusal]:
    """A refusal for each of some runs, drawn at random, that comes out otherwise.

    Args:
        request: how many, ``recompute``, and whose code may be imported.
    """
    runs = SystemRandom().sample(side.runs, min(request.recompute, len(side.runs)))
    for run in runs:
        config = placed(read_config(run.folder, request, one_of_several=True), 0, cpu=False)
        if config.engine.portable:
            portable.start_again()
        with tempfile.TemporaryDirectory(prefix="raysim-judge-") as place:
            again(run.check, config, [*run.check.rounds], Path(place) / "rounds", whole=True)
        if found := run.check.verdict.differences:
            value = f"differs from a new computation: {found[0]}"
            why = "Its proof agrees with its files, and not with what the settings give here."
            advice = f"python -m raysim.verify {run.folder} --all says more; run it again."
            yield of_one(side.letter, "forged proof", run.folder, value, why, advice)
