"""Conditions between options of several sections of a run's config."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raysim.config import privacy_conditions, registry, timing, wrappers
from raysim.config.options import show
from raysim.config.section_checks import cross_check
from raysim.errors import ConfigError

if TYPE_CHECKING:
    from raysim.config.all_sections import Sections
    from raysim.traits import Traits


def check_together(config: Sections) -> None:
    """ConfigError for options of the fixed sections that contradict one another, or have no effect."""
    cross_check(config.training, config.schedule, config.engine)
    timing.check(config.timing, config.devices, config.training, config.evaluation)
    timing.check_events(config.events)
    _check_sampler(config)
    wrappers.check(config.defense, config.timing)
    wrappers.check_attack(config.attack, config.timing)
    privacy_conditions.check(config)


def _check_sampler(config: Sections) -> None:
    """ConfigError for a sampler that virtual time or privacy cannot do with."""
    sampler, name = config.schedule.sampler, f"schedule.sampling: {config.schedule.sampling}"
    if config.devices.on and not sampler.in_virtual_time:
        raise ConfigError(
            f"{name} with devices.preset {config.devices.preset}: in virtual time only idle "
            "clients are chosen, as many as are wanted. Set schedule.sampling to fixed, or devices.preset to none."
        )
    if not sampler.adaptive:
        return
    rule = config.timing.rule
    if config.devices.on and (rule.stale or not rule.in_rounds):
        raise ConfigError(
            f"{name} with timing.mode {config.timing.mode} and timing.late {config.timing.late}: it looks at losses "
            "with the model of the round that begins, and here clients begin while others train. Set timing.mode to "
            "sync, timing.late to drop, or schedule.sampling to fixed or by-size."
        )
    if config.schedule.without:
        raise ConfigError(
            f"{name} with schedule.without {show(config.schedule.without)}: it looks at losses, and those of clients "
            "that are left out would choose others. Set schedule.sampling to fixed or by-size, or leave them out of "
            "the data."
        )
    if config.events.drift_at:
        raise ConfigError(
            f"{name} with events.drift_at {config.events.drift_at:g}: it looks at losses, so that when the run ends is "
            "not known before. Set events.drift_round in its place."
        )
    if config.privacy.on and config.privacy.noise_multiplier != 0:
        raise ConfigError(
            f"{name} with privacy.kind {config.privacy.kind}: who takes part depends on losses that clients send "
            "without noise, so that sampling amplifies nothing and no ε would hold. Set schedule.sampling to fixed, "
            "poisson or by-size, or privacy.noise_multiplier to 0."
        )


def own_models(config: Sections) -> bool:
    """Whether every client is judged by a model of its own, on its own test set, and there is no global model."""
    return bool(config.method.traits.personal) or config.training.batchnorm_statistics == "local"


def _check_fine_tuning(config: Sections, method: str, traits: Traits) -> None:
    """ConfigError for fine-tuning of models that are no global model, or no client's."""
    if not config.evaluation.fine_tune:
        return
    if traits.pooled:
        why = "which trains on all data in one place"
    elif traits.personal:
        why = "which judges every client by a model of its own already"
    elif own_models(config):
        why = "whose clients have BatchNorm statistics of their own (training.batchnorm_statistics local)"
    else:
        return
    raise ConfigError(
        f"evaluation.fine_tune: {config.evaluation.fine_tune} is not possible with method {method}, {why}. Set it to "
        "0, or take a method with one global model, --method fedavg say."
    )


def check_method(config: Sections) -> None:
    """ConfigError for options that the run's method cannot do with, by its traits."""
    from raysim.traits import Traits  # late: numpy

    traits = getattr(config.method, "traits", None)
    if traits is None:  # a class without is refused where its functions are checked
        return
    name = registry.public_name("method", config.method)
    if not isinstance(traits, Traits):
        raise ConfigError(
            f"method {name}: traits is a {type(traits).__name__}. Write traits = Traits(...) of raysim.method."
        )
    _check_wrappers(config, name, traits)
    privacy_conditions.check_method(config, name, traits)
    timing.check_method(config.timing, name, traits)
    for option, allowed in (("optimizer", "sgd"), ("optimizer_state", "fresh")):
        value = getattr(config.training, option)
        if traits.needs_sgd and value != allowed:
            raise ConfigError(
                f"training.{option}: {value} is not possible with method {name}, {traits.needs_sgd}. Allowed: "
                f"{allowed}."
            )
    _check_fine_tuning(config, name, traits)
    needed: tuple[tuple[str, object, object], ...] = (
        ("devices.preset", config.devices.preset, "none"),
        ("events.drift", config.events.drift, "none"),
        ("schedule.sampling", config.schedule.sampling, "fixed"),
        ("schedule.without", config.schedule.without, ()),
        ("schedule.unseen_clients", config.schedule.unseen_clients, 0),
        ("training.batchnorm_statistics", config.training.batchnorm_statistics, "averaged"),
    )
    for path, given, needs in needed:
        if traits.pooled and given != needs:
            raise ConfigError(
                f"{path}: {show(given)} is not possible with method {name}, which trains on all data in one place. "
                f"Allowed: {show(needs)}."
            )


def _check_wrappers(config: Sections, name: str, traits: Traits) -> None:
    """ConfigError for a wrapper that the method does not go with, by its traits."""
    attack, defense, privacy, compression = config.attack, config.defense, config.privacy, config.compression
    for section in (attack, privacy, compression, defense):
        if section.on and traits.pooled:
            raise ConfigError(
                f"{type(section).__name__.lower()}: there are no updates to change with method {name}, which trains on "
                "all data in one place. Leave the section out, or take a method such as fedavg, fedprox or fedbn."
            )
    central = privacy.kind if privacy.kind == "central" else "none"
    for option, value in (("defense.rule", defense.rule), ("privacy.kind", central)):
        if value != "none" and not traits.weighted_mean:
            raise ConfigError(
                f"{option}: {value} needs a method whose server takes the weighted mean of updates, and is not "
                f"possible with method {name}, whose server does more than that. Set it to none, or take a method such "
                "as fedavg, fedprox or fedbn."
            )
    _check_one_vector(config, name, traits)
    if compression.down != "none" and not (traits.weighted_mean or traits.one_model):
        raise ConfigError(
            f"compression.down: {compression.down} needs a method that sends one model, the same to all clients, and "
            f"is not possible with method {name}. Set it to none, or take a method such as fedavg, fednova or feddyn."
        )


def _check_one_vector(config: Sections, name: str, traits: Traits) -> None:
    """ConfigError for what changes the vector that a client sends, where it sends others too, or none."""
    attack = config.attack.kind if config.attack.changes_vectors else "none"
    noise = config.privacy.kind if config.privacy.kind in ("local", "dp-sgd") else "none"
    chosen = (("attack.kind", attack), ("privacy.kind", noise), ("compression.kind", config.compression.kind))
    for option, value in chosen:
        if value != "none" and not (traits.weighted_mean or traits.one_vector):
            raise ConfigError(
                f"{option}: {value} needs a method whose clients send one vector, the change of the model, and is not "
                f"possible with method {name}, whose clients send more than that, or nothing. Set it to none, or take "
                "a method such as fedavg, fednova or feddyn (docs/wrappers.md has all)."
            )
    if noise != "none" and traits.reads:
        raise ConfigError(
            f"privacy.kind: {noise} puts noise on what a client sends, but not with method {name}, {traits.reads}. "
            "Set it to none, or take a method such as fedavg, fednova or feddyn."
        )
