"""The section of differential privacy: whose data is hidden, how much noise is added, and who counts what is spent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from raysim.workloads.option_types import Help, NonNegative, OnlyWith, OpenShare, Positive

NEIGHBORS = "neighbors"
"""Column of the rounds table, and entry of the summary, that says what ε is about
(:func:`raysim.config.privacy_conditions.neighbors`)."""


_PRIVATE = OnlyWith("privacy.kind")


@dataclass(frozen=True)
class Privacy:
    """Bounds and noise of what leaves a client, or of its gradients: a simulation, its noise can be drawn again."""

    kind: Annotated[
        Literal["none", "central", "local", "dp-sgd"],
        Help(
            "central: the server adds noise to the sum of clipped updates; local: every client adds it to its own "
            "clipped update; dp-sgd: local training clips the gradient of every sample and adds noise to their sum",
            "McMahan et al. 2018, arXiv 1710.06963 (central); Abadi et al. 2016 (dp-sgd)",
        ),
    ] = "none"
    clip: Annotated[
        Positive,
        Help("L2 bound of an update, or of a sample's gradient with dp-sgd; of an adaptive bound the first"),
        _PRIVATE,
    ] = 1.0
    clip_quantile: Annotated[
        OpenShare | None,
        Help(
            "share of updates that an adaptive bound leaves as they are; null: it is fixed",
            "0.5 in Andrew et al. 2021, arXiv 1905.03871",
        ),
        OnlyWith(
            "privacy.kind",
            "central",
            why="needs a server that adds noise to the number of clipped updates, which it does not",
        ),
    ] = None
    clip_rate: Annotated[
        Positive,
        Help("learning rate of the logarithm of an adaptive bound", "Andrew et al. 2021, section 3.1"),
        OnlyWith("privacy.kind", "central"),
        OnlyWith("privacy.clip_quantile", say=0.5),
    ] = 0.2
    noise_multiplier: Annotated[
        NonNegative | None,
        Help("standard deviation of the noise as a multiple of the bound; null: it is found for privacy.epsilon"),
        _PRIVATE,
    ] = None
    epsilon: Annotated[
        Positive | None,
        Help("ε after the last planned round; null: what privacy.noise_multiplier gives"),
        _PRIVATE,
    ] = None
    delta: Annotated[
        OpenShare,
        Help("δ at which ε is reported; well below one over the number of clients"),
        _PRIVATE,
    ] = 1e-5
    accountant: Annotated[
        Literal["rdp", "pld"],
        Help("how ε is counted: by Rényi divergences, or by privacy loss distributions"),
        _PRIVATE,
    ] = "rdp"

    @property
    def on(self) -> bool:
        """Whether the run has differential privacy of any kind."""
        return self.kind != "none"

    @property
    def of_updates(self) -> bool:
        """Whether updates are clipped, and with them what a whole client can change."""
        return self.kind in ("central", "local")

    @property
    def counted(self) -> bool:
        """Whether there is noise, so that an ε can be told."""
        return self.on and self.noise_multiplier != 0


@dataclass(frozen=True)
class SamplePrivacy:
    """Clipping and noise of each sample's gradient in a client task, with ``privacy.kind dp-sgd``."""

    clip: float
    """L2 bound C of a sample's gradient."""
    noise: float
    """z: noise of the standard deviation z · C is added to the sum of a batch's gradients."""
