"""The sections of what stands between clients and server beside the method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from raysim.errors import ConfigError
from workloads.option_types import Ge, Help, Lt, Positive, PositiveInt

if TYPE_CHECKING:
    from raysim.config.timing import Timing


@dataclass(frozen=True)
class Defense:
    """A robust rule in the place of the weighted mean of updates."""

    rule: Annotated[
        Literal[
            "none",
            "median",
            "trimmed-mean",
            "krum",
            "multi-krum",
            "geometric-median",
            "centered-clipping",
            "norm-bound",
        ],
        Help(
            "what takes the place of the mean of updates; all clients count the same, but with norm-bound, the "
            "mean by samples of updates cut to defense.radius"
        ),
    ] = "none"
    before: Annotated[
        Literal["none", "mixing", "bucketing"],
        Help(
            "step before the rule: mixing: every update becomes the mean of those nearest to it; bucketing: random "
            "groups of defense.bucket_size become their means",
            "Allouah et al. 2023; Karimireddy et al. 2022",
        ),
    ] = "none"
    byzantine: Annotated[
        Annotated[float, Ge(0), Lt(0.5)],
        Help("share of a round's updates that may be anything; their number is rounded down"),
    ] = 0.2
    bucket_size: Annotated[PositiveInt, Help("updates in a bucket, for defense.before bucketing")] = 2
    radius: Annotated[Positive, Help("length to which centered-clipping and norm-bound cut")] = 10.0
    smoothing: Annotated[Positive, Help("least distance that geometric-median divides by")] = 0.1
    iterations: Annotated[PositiveInt, Help("steps of geometric-median and centered-clipping")] = 3

    @property
    def on(self) -> bool:
        """Whether there is one."""
        return self.rule != "none"


COUNTING = ("trimmed-mean", "krum", "multi-krum")
"""Rules that are told how many updates may be anything."""


def check(defense: Defense, timing: Timing) -> None:
    """ConfigError for options of a defense that contradict one another, or have no effect."""
    needs = {
        "before": (defense.on and defense.rule != "norm-bound", "defense.rule to another rule, median say"),
        "byzantine": (
            defense.rule in COUNTING or defense.before == "mixing",
            f"defense.rule to {', '.join(COUNTING)}, or defense.before to mixing",
        ),
        "bucket_size": (defense.before == "bucketing", "defense.before to bucketing"),
        "radius": (defense.rule in ("centered-clipping", "norm-bound"), "defense.rule to one that cuts lengths"),
        "smoothing": (defense.rule == "geometric-median", "defense.rule to geometric-median"),
        "iterations": (
            defense.rule in ("geometric-median", "centered-clipping"),
            "defense.rule to geometric-median or centered-clipping",
        ),
    }
    for name, (used, advice) in needs.items():
        value = getattr(defense, name)
        if not used and value != getattr(Defense, name):
            raise ConfigError(
                f"defense.{name}: {value} has no effect with defense.rule {defense.rule} and defense.before "
                f"{defense.before}. Leave it out, or set {advice}."
            )
    if defense.before == "bucketing" and defense.rule in COUNTING and defense.byzantine * defense.bucket_size >= 0.5:
        raise ConfigError(
            f"defense.bucket_size: {defense.bucket_size} with defense.byzantine {defense.byzantine}: half of the "
            "buckets or more could hold such an update. Let their product be below 0.5."
        )
    if defense.on and timing.mode == "async":
        raise ConfigError(
            "defense.rule: with timing.mode async every server step takes one update, and there is nothing to compare "
            "it with. Set timing.mode to buffered or sync, or defense.rule to none."
        )


def check_method(defense: Defense, name: str, traits: Any) -> None:
    """ConfigError for a method whose updates are more than one vector that is averaged."""
    if not defense.on or (traits.weighted_mean and not traits.pooled):
        return
    why = "which trains on all data in one place" if traits.pooled else "whose server does more than take a mean"
    raise ConfigError(
        f"defense.rule: {defense.rule} takes the place of the weighted mean of updates, and is not possible with "
        f"method {name}, {why}. Set it to none, or take a method such as fedavg, fedprox or fedbn."
    )
