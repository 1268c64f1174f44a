"""Conditions between options of several sections of a run's config."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raysim.config import privacy, registry, timing, wrappers
from raysim.config.section_checks import cross_check
from raysim.errors import ConfigError

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig
    from raysim.config.sections import Evaluation
    from raysim.traits import Traits


def check_together(config: RunConfig) -> None:
    """ConfigError for options of the fixed sections that contradict one another, or have no effect."""
    cross_check(config.training, config.schedule, config.engine)
    timing.check(config.timing, config.devices, config.training, config.evaluation)
    timing.check_events(config.events)
    if config.devices.on and not config.schedule.sampler.in_virtual_time:
        raise ConfigError(
            f"schedule.sampling: {config.schedule.sampling} with devices.preset {config.devices.preset}: in virtual "
            "time only idle clients are sampled, uniformly. Set schedule.sampling to fixed, or devices.preset to none."
        )
    wrappers.check(config.defense, config.timing)
    wrappers.check_attack(config.attack, config.timing)
    privacy.check(config)


def _check_fine_tuning(evaluation: Evaluation, method: str, traits: Traits) -> None:
    """ConfigError for fine-tuning of models that are no global model, or no client's."""
    if evaluation.fine_tune and (traits.personal or traits.pooled):
        why = (
            "trains on all data in one place" if traits.pooled else "judges every client by a model of its own already"
        )
        raise ConfigError(
            f"evaluation.fine_tune: {evaluation.fine_tune} is not possible with method {method}, which {why}. Set it "
            "to 0, or take a method with one global model, --method fedavg say."
        )


def check_method(config: RunConfig) -> None:
    """ConfigError for options that the run's method cannot do with, by its traits."""
    traits = getattr(config.method, "traits", None)
    if traits is None:  # a class without is refused where its functions are checked
        return
    name = registry.public_name("method", config.method)
    wrappers.check_method(config, name, traits)
    privacy.check_method(config, name, traits)
    timing.check_method(config.timing, name, traits)
    for option, allowed in (("optimizer", "sgd"), ("optimizer_state", "fresh")):
        value = getattr(config.training, option)
        if traits.needs_sgd and value != allowed:
            raise ConfigError(
                f"training.{option}: {value} is not possible with method {name}, {traits.needs_sgd}. Allowed: "
                f"{allowed}."
            )
    _check_fine_tuning(config.evaluation, name, traits)
    for path, value, allowed in (
        ("devices.preset", config.devices.preset, "none"),
        ("events.drift", config.events.drift, "none"),
        ("schedule.sampling", config.schedule.sampling, "fixed"),
    ):
        if traits.pooled and value != allowed:
            raise ConfigError(
                f"{path}: {value} is not possible with method {name}, which trains on all data in one place. Allowed: "
                f"{allowed}."
            )
