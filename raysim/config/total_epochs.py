"""A run's length as E local epochs (``schedule.epochs``) instead of rounds: ⌊E / f⌋ rounds, f = ``local_epochs``.

Where options come in layers (defaults, files, command line), the later of ``schedule.rounds`` and ``schedule.epochs``
holds, and the other follows from it, so that a config always has both and they agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from raysim.errors import ConfigError

if TYPE_CHECKING:
    from raysim.config.sections import Schedule

ROUNDS, EPOCHS, LOCAL = "schedule.rounds", "schedule.epochs", "schedule.local_epochs"


def settle(values: dict[str, Any], layers: Sequence[Mapping[str, object]], default_local_epochs: int) -> None:
    """Make ``values`` (path → converted value, merged from ``layers``) agree on rounds and epochs.

    What contradicts itself stays as it is, for :func:`check`.
    """
    holds = next((layer for layer in reversed(layers) if ROUNDS in layer or EPOCHS in layer), {})
    if EPOCHS not in holds:
        values.pop(EPOCHS, None)  # rounds were given later
    epochs, local_epochs = values.get(EPOCHS, 0), values.get(LOCAL, default_local_epochs)
    if not 1 <= local_epochs <= epochs:
        return
    # A whole config has both, and its epochs a round may be changed by a later layer: it is compared with its own.
    own = str(holds.get(LOCAL, local_epochs))  # not yet checked, if a later layer has another
    agree = own.isdecimal() and int(own) > 0 and values.get(ROUNDS) == epochs // int(own)
    if ROUNDS not in holds or agree:
        values[ROUNDS] = epochs // local_epochs


def check(schedule: Schedule) -> None:
    """ConfigError unless rounds and epochs agree."""
    rounds, epochs, local_epochs = schedule.rounds, schedule.epochs, schedule.local_epochs
    if 0 < epochs < local_epochs:
        raise ConfigError(
            f"{EPOCHS}: {epochs} local epochs in all, with {LOCAL} {local_epochs} a round, are less than one round. "
            "Raise the first or lower the second."
        )
    if epochs and rounds != epochs // local_epochs:
        raise ConfigError(
            f"{ROUNDS}: {rounds} contradicts {EPOCHS} {epochs}, which with {LOCAL} {local_epochs} makes "
            f"{epochs // local_epochs} rounds. Give one of the two."
        )
