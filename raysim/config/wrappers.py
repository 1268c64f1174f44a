"""The sections of what stands between clients and server beside the method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from raysim.config.kind_files import kind_class
from raysim.errors import ConfigError
from raysim.workloads.option_types import Ge, Help, Lt, NonNegativeInt, OnlyWith, Positive, PositiveInt, PositiveShare

if TYPE_CHECKING:
    from raysim.config.timing import Timing


_ATTACKING = OnlyWith("attack.kind")
_BACKDOOR = OnlyWith("attack.kind", "backdoor")


@dataclass(frozen=True)
class Attack:
    """Clients that send what harms the model."""

    kind: Annotated[
        Literal["none", "label-flip", "backdoor", "sign-flip", "gaussian", "alie", "ipm"],
        Help(
            "what malicious clients do: label-flip: train with every label y as y + 1, the last as 0; backdoor: "
            "train with a white square in images that they give one label, and send strength times their update; "
            "sign-flip: send -strength times their update; gaussian: send noise; alie, ipm: send what is made from all "
            "honest updates of the round",
            "Gu et al. 2017, Bagdasaryan et al. 2020 (backdoor); Baruch et al. 2019 (alie); Xie et al. 2020 (ipm)",
        ),
    ] = "none"
    malicious_share: Annotated[
        PositiveShare,
        Help("share of all clients that are malicious, at least one, drawn from the seed"),
        _ATTACKING,
    ] = 0.2
    malicious: Annotated[
        tuple[NonNegativeInt, ...],
        Help("numbers of the malicious clients, 0,3 say; empty: drawn from the seed"),
        _ATTACKING,
    ] = ()
    from_round: Annotated[PositiveInt, Help("first round in which they attack"), _ATTACKING] = 1
    strength: Annotated[
        Positive | Literal["paper"] | None,
        Help(
            "factor of backdoor and sign-flip, standard deviation of gaussian, deviations z of alie, factor of ipm; "
            "null: 1, 1, 1, 1.5, 0.5; paper: alie's z from the numbers of updates and of malicious ones, which may "
            "allow none",
            "1.5: ByzFL; Baruch et al. 2019, Algorithm 3 (paper)",
        ),
        OnlyWith("attack.kind", "alie", of=("paper",), why="is the z of alie, and means nothing"),
        OnlyWith("attack.kind", "backdoor", "sign-flip", "gaussian", "alie", "ipm"),
    ] = None
    target_label: Annotated[NonNegativeInt, Help("label that backdoor gives to images with its square"), _BACKDOOR] = 0
    patch: Annotated[
        PositiveInt,
        Help("pixels of a side of backdoor's square, in the lower right corner"),
        _BACKDOOR,
    ] = 3
    poisoned_share: Annotated[
        PositiveShare,
        Help("share of every batch that backdoor puts its square into"),
        _BACKDOOR,
    ] = 0.5

    @property
    def on(self) -> bool:
        """Whether the run has malicious clients."""
        return self.kind != "none"

    @property
    def omniscient(self) -> bool:
        """Whether the attackers know the honest updates of the round."""
        return self.on and bool(kind_class("wrappers.attacks", self.kind).omniscient)

    @property
    def changes_vectors(self) -> bool:
        """Whether malicious clients send something else than what they trained."""
        return self.on and bool(kind_class("wrappers.attacks", self.kind).changes_vectors)


Codec = Literal["none", "top-k", "random-k", "int8", "int4", "sign", "low-rank"]


@dataclass(frozen=True)
class Compression:
    """Compression of updates (client to server) and of broadcasts (server to client)."""

    kind: Annotated[
        Codec,
        Help(
            "what clients send: top-k: the largest entries; random-k: random entries; int8, int4: whole numbers by "
            "stochastic rounding, with a scale for 4096 entries; sign: signs and the mean length of an entry; "
            "low-rank: two factors of each tensor as a matrix",
            "Vogels et al. 2019, arXiv 1905.13727 (low-rank)",
        ),
    ] = "none"
    down: Annotated[
        Codec,
        Help(
            "the same for what the server sends: the change of the model since what all clients hold; what is lost is "
            "part of the next change",
            "Gruntkowska et al. 2023, arXiv 2209.15218",
        ),
    ] = "none"
    rank: Annotated[
        PositiveInt,
        Help("columns of the factors that low-rank sends of each tensor"),
        OnlyWith("compression.kind", "low-rank") | OnlyWith("compression.down", "low-rank"),
    ] = 4
    kept_share: Annotated[
        PositiveShare,
        Help("share of the entries that top-k and random-k send"),
        OnlyWith("compression.kind", "top-k", "random-k") | OnlyWith("compression.down", "top-k", "random-k"),
    ] = 0.01
    error_feedback: Annotated[
        bool,
        Help(
            "clients keep what was lost and add it to their next update",
            "Karimireddy et al. 2019, arXiv 1901.09847",
        ),
        OnlyWith("compression.kind", why="has no error to keep"),
    ] = False

    @property
    def on(self) -> bool:
        """Whether updates or messages to clients are compressed."""
        return self.kind != "none" or self.down != "none"


COUNTING = ("trimmed-mean", "krum", "multi-krum")
"""Rules that are told how many updates may be anything."""


@dataclass(frozen=True)
class Defense:
    """A rule in the place of the weighted mean of updates: a robust one, or FedLD's."""

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
            "principal",
        ],
        Help(
            "what takes the place of the mean of updates; all clients count the same, but with norm-bound, the "
            "mean by samples of updates cut to defense.radius; principal: FedLD's step along the leading axes of all "
            "updates, which is for clients that differ and no robust rule",
            "Zeng et al. 2024, Eq. 4-7 (principal)",
        ),
    ] = "none"
    before: Annotated[
        Literal["none", "mixing", "bucketing"],
        Help(
            "step before the rule: mixing: every update becomes the mean of those nearest to it; bucketing: random "
            "groups of defense.bucket_size become their means",
            "Allouah et al. 2023; Karimireddy et al. 2022",
        ),
        OnlyWith("defense.rule", "median", *COUNTING, "geometric-median", "centered-clipping"),
    ] = "none"
    byzantine: Annotated[
        Annotated[float, Ge(0), Lt(0.5)],
        Help("share of a round's updates that may be anything; their number is rounded down"),
        OnlyWith("defense.rule", *COUNTING) | OnlyWith("defense.before", "mixing"),
    ] = 0.2
    bucket_size: Annotated[PositiveInt, Help("updates in a bucket"), OnlyWith("defense.before", "bucketing")] = 2
    axes: Annotated[
        PositiveShare,
        Help(
            "share of the axes that principal keeps: K = max(1, floor(axes * updates))",
            "Zeng et al. 2024, section 3.1",
        ),
        OnlyWith("defense.rule", "principal"),
    ] = 0.8
    radius: Annotated[
        Positive, Help("length to which updates are cut"), OnlyWith("defense.rule", "centered-clipping", "norm-bound")
    ] = 10.0
    smoothing: Annotated[
        Positive, Help("least distance that is divided by"), OnlyWith("defense.rule", "geometric-median")
    ] = 0.1
    iterations: Annotated[
        PositiveInt, Help("steps of the rule"), OnlyWith("defense.rule", "geometric-median", "centered-clipping")
    ] = 3

    @property
    def on(self) -> bool:
        """Whether a robust rule takes the place of the mean."""
        return self.rule != "none"


def check(defense: Defense, timing: Timing) -> None:
    """ConfigError for options of a defense that contradict one another."""
    if defense.before == "bucketing" and defense.rule in COUNTING and defense.byzantine * defense.bucket_size >= 0.5:
        raise ConfigError(
            f"defense.bucket_size: {defense.bucket_size} with defense.byzantine {defense.byzantine}: half of the "
            "buckets or more could hold such an update. Let their product be below 0.5."
        )
    if defense.on and timing.rule.single:
        raise ConfigError(
            f"defense.rule: with {timing.rule.single} every server step takes one update, and there is nothing to "
            "compare it with. Set timing.mode to buffered, with timing.buffer 2 or more, or to sync, or defense.rule "
            "to none."
        )


def check_attack(attack: Attack, timing: Timing) -> None:
    """ConfigError for options of an attack that contradict one another, or the mode of virtual time."""
    if attack.malicious and attack.malicious_share != Attack.malicious_share:
        raise ConfigError(
            f"attack.malicious_share: {attack.malicious_share} has no effect with attack.malicious, which names them. "
            "Leave one of both out."
        )
    if attack.omniscient and timing.rule.single:
        raise ConfigError(
            f"attack.kind: {attack.kind} is made from the honest updates of the same server step, and with "
            f"{timing.rule.single} a step takes one update. Set timing.mode to buffered, with timing.buffer 2 or more, "
            "or to sync, or attack.kind to sign-flip, gaussian or label-flip."
        )
