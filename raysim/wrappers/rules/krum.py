"""The update with the lowest score: the mean squared distance to those nearest to it."""

from __future__ import annotations

from dataclasses import dataclass

from raysim.aggregators import robust
from raysim.config.wrappers import Defense
from raysim.errors import ConfigError
from raysim.method import Vector
from raysim.wrappers.rules._rule import Rule, Step


@dataclass(frozen=True)
class Krum(Rule):
    """Blanchard et al. 2017, as in :func:`raysim.aggregators.robust.krum`."""

    def mean(self, step: Step) -> Vector:
        """One update, of equal scores the first."""
        return step.combined(robust.krum(step.mixed_gram, step.byzantine))

    def check(self, defense: Defense, updates: int) -> None:
        """ConfigError outside Krum's condition n > 2f + 2.

        Source: Blanchard et al. 2017, section 4, Proposition 1: below it a majority of the nearest may be malicious.
        """
        byzantine = int(defense.byzantine * updates + 1e-9)
        given = -(-updates // defense.bucket_size) if defense.before == "bucketing" else updates
        if given <= 2 * byzantine + 2:
            what = "updates" if given == updates else "buckets"
            raise ConfigError(
                f"defense.rule: {defense.rule} needs n > 2f + 2 {what}, and a server step has n = {given} of which "
                f"f = {byzantine} may be anything. Lower defense.byzantine, let more clients take part, or set "
                "defense.rule to median or trimmed-mean."
            )


KIND = Krum
