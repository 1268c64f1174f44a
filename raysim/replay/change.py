"""The change of a replay: what is asked for, and whether a run can be replayed with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from raysim.config.run_config import differences
from raysim.config.seed_purposes import with_others
from raysim.errors import ConfigError, ResultsError
from raysim.schedule import common_rounds

if TYPE_CHECKING:
    from pandas import DataFrame

    from raysim.config.run_config import RunConfig

FROM_START = (
    *("workload.", "model.", "method.name", "seed:", "devices.", "timing.", "events.", "privacy."),
    *("schedule.local_epochs", "schedule.epochs", "schedule.intervals", "schedule.joins", "schedule.join_every"),
    *("schedule.unseen_clients", "schedule.sampling:", "training.optimizer_state", "compression.down:"),
)
"""Beginnings of settings that what came before a later round depends on: they change from round 1 or not at all."""
DRAWN_AT_START = ("data", "model", "intervals", "devices", "events")
"""Purposes whose streams are drawn before the first round, or once for all rounds."""
KINDS = ("number", "name")
"""A client is called by one of these."""
SHOWN = 10
"""Clients that a message lists."""


@dataclass(frozen=True)
class Change:
    """All in which a replay differs from its run, from a round on."""

    first: int = 1
    """The first round that is another one, counted from 1."""
    without: tuple[int, ...] = ()
    """Clients that take no part any more."""
    settings: Mapping[str, object] = field(default_factory=dict)
    """Path → value."""
    seeds: tuple[str, ...] = ()
    """Seeds of purposes, ``training=7``."""

    def options(self, stored: RunConfig) -> dict[str, object]:
        """All of it as settings, path → value, over those of the run.

        Raises:
            ConfigError: a purpose is unknown.
        """
        found = dict(self.settings)
        if self.without:
            found["schedule.without"] = tuple(sorted({*stored.schedule.without, *self.without}))
        if self.seeds:
            others = {**with_others(0, stored.seed_of).others, **with_others(0, self.seeds).others}
            found["seed_of"] = tuple(f"{purpose}={seed}" for purpose, seed in others.items())
        return found


def check_round(first: int, done: int) -> None:
    """ResultsError unless the run has this round."""
    if not 1 <= first <= done:
        raise ResultsError(f"--from {first}: the run has no such round. Allowed: 1 to {done}.")


def check_change(change: Change, stored: RunConfig, config: RunConfig) -> None:
    """Check that a run can go on with other settings after the rounds before the change.

    Args:
        stored: the run's settings.
        config: those of the replay.

    Raises:
        ConfigError: what is changed decides what came before; the message says what to do.
    """
    changed, start = differences(stored, config), "Replay from the start, --from 1."
    if change.first == 1 or not changed:
        return
    if stored.devices.on:
        raise ConfigError(
            f"--from {change.first}: in virtual time who is under way at a round follows from all before it. {start}"
        )
    if stored.privacy.on:
        raise ConfigError(
            f"--from {change.first}: what privacy.kind {stored.privacy.kind} has spent is counted over all rounds by "
            f"one setting. {start}"
        )
    if common_rounds(stored, config.schedule.rounds) < change.first - 1:
        raise ConfigError(
            f"--from {change.first}: the rounds before depend on schedule.rounds too, by the method, random intervals "
            f"or what was judged because it was last. {start}"
        )
    for line in changed:
        if line.startswith(FROM_START):
            path = line.partition(":")[0]
            raise ConfigError(f"--from {change.first}: the rounds before depend on {path} too. {start}")
    before = set(stored.seed_of)
    for text in config.seed_of:
        purpose = text.partition("=")[0]
        if text not in before and purpose in DRAWN_AT_START:
            raise ConfigError(f"--from {change.first}: streams of {purpose} are drawn before the first round. {start}")


def client_numbers(asked: Sequence[str], clients: DataFrame) -> tuple[int, ...]:
    """The numbers of clients that are named by number or name.

    Args:
        asked: ``3``, or ``cleveland``; ``number=3``, or ``name=3`` where one client has that number and another that
            name.
        clients: the run's table of clients.

    Raises:
        ResultsError: the run has no such client, or several.
    """
    names = dict(zip(clients["client"].tolist(), clients["name"].tolist(), strict=True)) if len(clients) else {}
    found = set[int]()
    for text in asked:
        kind, equals, rest = text.partition("=")
        word = rest if equals and kind in KINDS else text
        by_number = [number for number in names if str(number) == word and kind != "name"]
        by_name = [number for number, name in names.items() if str(name) == word and kind != "number"]
        numbers = {*by_number, *by_name}
        if not numbers:
            listed = ", ".join(f"{number} ({names[number]})" for number in sorted(names)[:SHOWN])
            more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            raise ResultsError(f"--without {text}: no such client took part. Those that did: {listed}{more}.")
        if len(numbers) > 1:
            listed = ", ".join(f"{number} ({names[number]})" for number in sorted(numbers))
            advice = f"Say number={word} or name={word}." if by_number and len(by_name) == 1 else "Say number=NUMBER."
            raise ResultsError(f"--without {text}: several clients are called so: {listed}. {advice}")
        found |= numbers
    return tuple(sorted(map(int, found)))
