"""Conditions between options of privacy and of other sections, and the words that stand beside a run's ε."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

from raysim.config.privacy import Privacy
from raysim.errors import ConfigError

if TYPE_CHECKING:
    from raysim.config.all_sections import Sections


def check(config: Sections) -> None:
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


def neighbors(config: Sections) -> str:
    """Words that stand beside a run's ε wherever it is told: the sampling, and which data differ between neighbors.

    An ε of replaced clients is not to be compared with one of clients that are added or removed: the same training with
    the same noise has both, and the first is several times as large (docs/privacy.md).
    """
    kind = config.privacy.kind
    if kind == "dp-sgd":
        return "sampling: poisson, one sample added or removed"
    if kind == "local":
        return "sampling: not counted, one client's data replaced"
    if config.devices.on:
        return "sampling: not counted, one client replaced"
    if not config.schedule.sampler.amplifies:
        return f"sampling: {config.schedule.sampling}, not counted, one client {config.schedule.sampler.neighbors}"
    return f"sampling: {config.schedule.sampling}, one client {config.schedule.sampler.neighbors}"


def check_method(config: Sections, name: str, traits: Any) -> None:
    """ConfigError for a method whose local training is not known to be that of DP-SGD."""
    if config.privacy.kind == "dp-sgd" and not traits.plain_training:
        raise ConfigError(
            f"privacy.kind: dp-sgd is not possible with method {name}, whose local training asks more of the samples "
            "than gradients of their loss. Set it to central or local, or take fedavg, fedprox, fedper, fedadam or a "
            "method with Traits(plain_training=True)."
        )


def _check_central(config: Sections) -> None:
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
    if config.privacy.counted and not sampler.neighbors:
        raise ConfigError(
            f"privacy.kind: central with schedule.sampling {config.schedule.sampling}, of whose cohorts no ε is known. "
            "Set schedule.sampling to fixed or poisson, privacy.kind to local or dp-sgd, or privacy.noise_multiplier "
            "to 0."
        )
    replaced = sampler.neighbors == "replaced" and sampler.amplifies and config.schedule.sampling_rate < 1
    if config.privacy.accountant == "pld" and replaced and not config.devices.on:
        raise ConfigError(
            f"privacy.accountant: pld with schedule.sampling_rate {config.schedule.sampling_rate}: dp-accounting has "
            "no privacy loss distribution of a cohort of fixed size. Set privacy.accountant to rdp, schedule.sampling "
            "to poisson, or schedule.sampling_rate to 1."
        )
