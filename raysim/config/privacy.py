"""The section of differential privacy: whose data is hidden, how much noise is added, and who counts what is spent."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from raysim.errors import ConfigError
from raysim.workloads.option_types import Help, NonNegative, OnlyWith, OpenShare, Positive

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig


NEIGHBORS = "neighbors"
"""Column of the rounds table, and entry of the summary, that says what ε is about (:func:`neighbors`)."""


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


def check(config: RunConfig) -> None:
    """ConfigError for options of privacy that contradict one another, have no effect, or would be counted wrongly."""
    privacy = config.privacy
    if not privacy.on:
        return
    if privacy.noise_multiplier is None and privacy.epsilon is None:
        raise ConfigError(
            f"privacy.noise_multiplier: nothing says how much noise privacy.kind {privacy.kind} adds. Set it (0: clip "
            "alone), or privacy.epsilon, for which it is found."
        )
    if privacy.noise_multiplier is not None and privacy.epsilon is not None:
        raise ConfigError(
            f"privacy.epsilon: {privacy.epsilon} with privacy.noise_multiplier {privacy.noise_multiplier}: either "
            "follows from the other. Leave one of both out."
        )
    for name in ("delta", "accountant"):
        if not privacy.counted and getattr(privacy, name) != getattr(Privacy, name):
            raise ConfigError(
                f"privacy.{name}: {getattr(privacy, name)} has no effect with privacy.noise_multiplier 0, which leaves "
                "nothing to count. Leave it out, or set privacy.noise_multiplier to another."
            )
    if privacy.counted and importlib.util.find_spec("dp_accounting") is None:
        raise ConfigError(
            "privacy.kind: ε is counted by the library dp-accounting, which is not installed. Install it with pip "
            "install dp-accounting, or set privacy.noise_multiplier to 0."
        )
    if privacy.kind == "central":
        _check_central(config)
    if privacy.kind == "dp-sgd" and config.training.margin and config.training.margin_kind == "softmax_log":
        raise ConfigError(
            "training.margin_kind: softmax_log is of a whole batch, and privacy.kind dp-sgd computes the gradient of "
            "every sample. Allowed: l2, log."
        )
    if privacy.kind == "dp-sgd" and config.training.precision != "float32":
        raise ConfigError(
            f"training.precision: {config.training.precision} is not possible with privacy.kind dp-sgd, which computes "
            "the gradient of every sample. Allowed: float32."
        )


def neighbors(config: RunConfig) -> str:
    """Words that stand beside a run's ε wherever it is told: the sampling, and which data differ between neighbors.

    An ε of replaced clients is not to be compared with one of clients that are added or removed: the same training with
    the same noise has both, and the first is several times as large (docs/wrappers.md).
    """
    kind = config.privacy.kind
    if kind == "dp-sgd":
        return "sampling: poisson, one sample added or removed"
    if kind == "local":
        return "sampling: not counted, one client's data replaced"
    if config.devices.on:
        return "sampling: not counted, one client replaced"
    return f"sampling: {config.schedule.sampling}, one client {config.schedule.sampler.neighbors}"


def check_method(config: RunConfig, name: str, traits: Any) -> None:
    """ConfigError for a method whose local training is not known to be that of DP-SGD."""
    if config.privacy.kind == "dp-sgd" and not traits.plain_training:
        raise ConfigError(
            f"privacy.kind: dp-sgd is not possible with method {name}, whose local training asks more of the samples "
            "than gradients of their loss. Set it to central or local, or take fedavg, fedprox, fedper, fedadam or a "
            "method with Traits(plain_training=True)."
        )


def _check_central(config: RunConfig) -> None:
    """Central noise is right for a sum in which one client changes one clipped summand, of this round."""
    if config.defense.on:
        raise ConfigError(
            f"privacy.kind: central adds noise to a sum of updates, and defense.rule {config.defense.rule} takes none. "
            "Set privacy.kind to local or dp-sgd, whose noise is in the updates, or defense.rule to none."
        )
    if config.attack.omniscient:
        raise ConfigError(
            f"privacy.kind: central with attack.kind {config.attack.kind}, whose clients send what depends on the "
            "updates of others, so that ε would be wrong. Set privacy.kind to local, or attack.kind to sign-flip, "
            "gaussian or label-flip."
        )
    if config.timing.stale:
        raise ConfigError(
            f"privacy.kind: central with timing.mode {config.timing.mode} and timing.late {config.timing.late}, where "
            "a step weighs updates of several rounds by their staleness, so that ε would be wrong. Set privacy.kind to "
            "local or dp-sgd, or take a timing.mode whose steps take updates of one round."
        )
    sampler = config.schedule.sampler
    if not sampler.neighbors:
        raise ConfigError(
            f"privacy.kind: central with schedule.sampling {config.schedule.sampling}, of whose cohorts no ε is known. "
            "Set schedule.sampling to fixed or poisson, or privacy.kind to local or dp-sgd."
        )
    replaced = sampler.neighbors == "replaced" and config.schedule.sampling_rate < 1
    if config.privacy.accountant == "pld" and replaced and not config.devices.on:
        raise ConfigError(
            f"privacy.accountant: pld with schedule.sampling_rate {config.schedule.sampling_rate}: dp-accounting has "
            "no privacy loss distribution of a cohort of fixed size. Set privacy.accountant to rdp, schedule.sampling "
            "to poisson, or schedule.sampling_rate to 1."
        )
