"""The option ``seed_of``: another root for random streams of some purposes."""

from __future__ import annotations

from collections.abc import Sequence

from raysim.config.nearest import did_you_mean
from raysim.errors import ConfigError
from raysim.seeds import PURPOSES, Seed


def with_others(seed: int, given: Sequence[str]) -> Seed:
    """The root of a run's streams with those that ``seed_of`` gives to some purposes.

    Args:
        seed: root of all other streams.
        given: ``training=7`` and the like.

    Raises:
        ConfigError: there is no such purpose, it is given twice, or its root is no whole number.
    """
    found: dict[str, int] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if name not in PURPOSES:
            raise ConfigError(
                f"seed_of: {text!r} is not allowed.{did_you_mean(name, PURPOSES)} Allowed: PURPOSE=SEED, the purpose "
                f"one of {', '.join(PURPOSES)}."
            )
        if not sign or not (value.isascii() and value.isdecimal()):
            raise ConfigError(f"seed_of: {text!r} is not allowed. Allowed: {name}=SEED, a whole number ≥ 0.")
        if name in found:
            raise ConfigError(f"seed_of: {name} is given twice, as {found[name]} and {int(value)}. Give one of them.")
        found[name] = int(value)
    return Seed(int(seed), found)
