"""Runs all rounds, and returns to the last checkpoint whenever data that the run needs is lost with a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raysim.errors import LostError

if TYPE_CHECKING:
    from raysim.engine.observer import RunNotes
    from raysim.engine.rounds import Rounds

RETURNS = 5
"""Returns to a checkpoint in a row, without a new round between them, after which a run fails."""


def run_through(rounds: Rounds, notes: RunNotes) -> None:
    """All rounds that are left.

    Raises:
        LostError: again and again something is lost before a new round is whole.
    """
    furthest, returns = rounds.state.round, 0
    while True:
        try:
            rounds.run()
            return
        except LostError as error:
            reached = rounds.state.round
            returns = 1 if reached > furthest else returns + 1
            furthest = max(furthest, reached)
            if returns > RETURNS:
                raise LostError(
                    f"{error}. {RETURNS} times in a row the run went back to its last checkpoint without getting "
                    f"beyond round {furthest}. Nodes die faster than that: lower --engine.checkpoint_every, or resume "
                    "on nodes that stay"
                ) from error
            rounds.go_back()
            number = rounds.state.round
            where = f"goes on from the checkpoint of round {number}" if number else "starts again from round 1"
            notes.fault(f"{error}; the run {where}")
