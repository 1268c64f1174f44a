"""Whether a run's method, model and settings can do with the clients' data.

It is asked by the launching process of a sketch of the data, and again by the driver, which has loaded them. Each check
raises one complete message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from raysim import schedule
from raysim.client_side.drift import check_drift
from raysim.config import registry
from raysim.config.options import options_of_class
from raysim.engine.early_stopping import EarlyStopping
from raysim.engine.round_columns import expected
from raysim.errors import ConfigError
from raysim.units import counted
from raysim.virtual_time.clock import profiles_of
from raysim.virtual_time.fleet import check_profiles
from raysim.workloads.federated_data import distinct_input_specs, exchanged_before_training, objective_of
from raysim.workloads.splits.split_options import Split, unread
from raysim.wrappers.attack import check_attack
from raysim.wrappers.defense import check_defense
from raysim.wrappers.judging import judging

if TYPE_CHECKING:
    from collections.abc import Iterator

    from raysim.config.run_config import RunConfig
    from raysim.workloads.federated_data import Federation
    from raysim.workloads.objective import Objective

OTHER_DATA = "Take another method, or one data set that is cut over the clients"


def check_federation(config: RunConfig, federation: Federation) -> None:
    """Check that the run's method, model and schedule can do with these clients.

    Args:
        federation: the data, or a sketch of it. Of a sketch only what the run depends on is asked.

    Raises:
        ConfigError: they cannot.
        WorkloadError: the model takes other inputs.
    """
    name, traits = registry.public_name("method", config.method), config.method.traits
    population = schedule.population(config, federation.clients)
    trainable = population.trainable
    if population.others() and getattr(federation, "fill", None) is not None:
        raise ConfigError(
            "workload.samples_per_client: clients are filled up with copies of samples of all clients, also of those "
            "that take no part (schedule.unseen_clients, schedule.without, --without), so that these would be trained "
            "on. Set it to 0, or let all clients take part."
        )
    if population.others() and any(exchanged_before_training(federation)):
        raise ConfigError(
            f"workload.exchange: clients of {federation.name} send one another features of nodes before training, also "
            "those that take no part (schedule.unseen_clients, schedule.without, --without), so that the others would "
            "be trained on these. Set workload.exchange to none, or let all clients take part."
        )
    if len(config.schedule.joins) > 1 and not traits.pooled and any(exchanged_before_training(federation)):
        raise ConfigError(
            f"schedule.joins: clients of {federation.name} send one another features of nodes before training, also "
            "those that have not joined yet. Set workload.exchange to none, or let all clients be there from the start."
        )
    if config.schedule.joins and not traits.pooled:
        schedule.check_joins(config.schedule.joins, config.schedule.join_every, trainable)
    if traits.same_task or traits.pooled:
        _check_one_task(federation, f"method {name} needs clients that all have the same task", OTHER_DATA)
    if traits.node_graphs and (federation.input_spec(0).kind != "nodes" or federation.input_spec(0).pairs):
        found = (
            "pairs of nodes"
            if federation.input_spec(0).pairs
            else f"inputs of the kind {federation.input_spec(0).kind}"
        )
        raise ConfigError(
            f"method {name} learns classes of nodes from the graph between them, and the clients of {federation.name} "
            f"have {found}. Take --workload nodes with --task nodes, or another method."
        )
    if config.evaluation.decompose_every:
        why = "evaluation.decompose_every: the decomposition judges every client's model on every client's data"
        _check_one_task(federation, why, "Set it to 0")
    _check_own_tests(config, federation)
    _check_objective(config, name, objective_of(federation))
    if config.evaluation.ends_early:
        EarlyStopping(config.evaluation, judging(config, federation).objective, expected(config, federation))
    check_drift(config, federation)
    if config.privacy.counted and any(exchanged_before_training(federation)):
        raise ConfigError(
            f"privacy.kind: {config.privacy.kind} hides what clients of {federation.name} send in rounds, and before "
            "them they exchange features as they are, so that ε would be wrong. Set workload.exchange to none, or "
            "privacy.noise_multiplier to 0, which claims no ε."
        )
    if config.devices.on:
        if any(exchanged_before_training(federation)):
            raise ConfigError(
                f"devices.preset: the clock of virtual time does not know of bytes that clients of {federation.name} "
                "exchange before training. Set devices.preset or workload.exchange to none."
            )
        check_profiles(config.timing, config.schedule, profiles_of(config, trainable))
    steps = schedule.updates_a_step(config, trainable)
    check_attack(config.attack, federation, config.seed, trainable, steps)
    check_defense(config.defense, steps)
    if traits.local_tests:
        _check_local_tests(config, name, federation)
    check = getattr(config.model, "check", None)
    if check is not None:
        for task in distinct_input_specs(federation):
            check(task)


def moments_kept_over_missed_rounds(config: RunConfig, federation: Federation) -> str:
    """A hint where clients keep their optimizer's moments and may miss rounds; empty if they do not."""
    if config.training.optimizer_state != "kept" or not config.devices.on:
        return ""
    profiles = profiles_of(config, schedule.trainable(config, federation.clients))
    if not profiles.drop_probability.any() and profiles.availability is None:
        return ""
    return (
        "devices drop out or are away, and with training.optimizer_state kept the moments of a client that missed a "
        "round belong to an older model. Set it to fresh, unless that is what you study"
    )


def options_unread(config: RunConfig, federation: Federation) -> Iterator[str]:
    """A hint for each option of the split that was set and that its partition does not read, and for norm_groups."""
    options = options_of_class("workload", type(config.workload))
    asked = getattr(config.workload, "partition", "")
    now = federation.partition if isinstance(federation, Split) else ""
    where = f"{asked} ({now} here)" if now not in ("", asked) else asked
    there = get_args(options["workload.partition"].type) if "workload.partition" in options else ()
    for path, option in options.items():
        name = path.partition(".")[2]
        value, why = getattr(config.workload, name), unread(name, now or asked, there)
        if why and value != option.default:
            yield f"{path} {value} has no effect with workload.partition {where}: {why}."
    groups, default = (getattr(owner, "norm_groups", None) for owner in (config.model, type(config.model)))
    if groups != default and getattr(config.model, "norm", "group") != "group":
        yield f"model.norm_groups {groups} has no effect with model.norm {config.model.norm}: it is read with group."


def attacks_too_late(config: RunConfig) -> str:
    """A hint that the run ends before its clients attack; empty if they do. More rounds may be added later."""
    first, rounds = config.attack.from_round, len(schedule.planned_intervals(config))
    if not config.attack.on or first <= rounds:
        return ""
    return (
        f"attack.from_round is {first} and this run has {counted(rounds, 'round')}, so that no client attacks. Lower "
        "it, or raise schedule.rounds"
    )


def only_first_rounds(config: RunConfig) -> str:
    """A note that the run ends before what its method is for begins; empty if it does not."""
    first, rounds = config.method.traits.first_rounds, len(schedule.planned_intervals(config))
    if rounds > first:
        return ""
    name = registry.public_name("method", config.method)
    return (
        f"method {name} prepares in its first {first} rounds and begins after them, and this run has {rounds}. Raise "
        "schedule.rounds, or lower the method's option"
    )


def _check_objective(config: RunConfig, name: str, objective: Objective) -> None:
    what = "a loss of its own" if objective.kind == "classification" else objective.kind
    if config.method.traits.classification and not objective.plain:
        raise ConfigError(
            f"method {name} is made for classification with cross-entropy, and this data asks for {what}. Take a "
            "method that trains with the loss of the data, such as fedavg, fedprox, scaffold, fedbn or local."
        )
    if config.training.margin and not objective.plain:
        raise ConfigError(
            f"training.margin: margin control is made for classification with cross-entropy, and this data asks for "
            f"{what}. Leave it out."
        )
    if config.evaluation.auc is True and objective.kind != "classification":
        raise ConfigError(f"evaluation.auc: there is no AUC of {objective.kind}. Leave it out.")


def _check_one_task(federation: Federation, why: str, advice: str) -> None:
    if len(distinct_input_specs(federation)) == 1:
        return
    other = next(
        client for client in range(federation.clients) if federation.input_spec(client) != federation.input_spec(0)
    )
    names = f"{federation.client_name(0)} and {federation.client_name(other)}"
    raise ConfigError(f"{why}, and the clients of {federation.name} have different tasks ({names}, say). {advice}.")


def _check_own_tests(config: RunConfig, federation: Federation) -> None:
    """ConfigError for columns of clients' own test sets where no client that takes part has one."""
    asked = [name for name in ("fine_tune", "each_client") if getattr(config.evaluation, name)]
    members = schedule.population(config, federation.clients).members()
    if asked and not any(federation.test_samples(client) for client in members):
        raise ConfigError(
            f"evaluation.{asked[0]}: clients are judged on their own test sets, and of the {len(members)} clients of "
            f"{federation.name} that take part none has a test sample. Cut tests off their own samples "
            "(workload.test_share 0.2, say), or leave the option out."
        )


def _check_local_tests(config: RunConfig, name: str, federation: Federation) -> None:
    members = schedule.population(config, federation.clients).members()
    empty = [client for client in members if federation.test_samples(client) == 0]
    if empty:
        clients = ", ".join(federation.client_name(client) for client in empty[:3])
        more = f" and {len(empty) - 3} more" if len(empty) > 3 else ""
        raise ConfigError(
            f"method {name} judges every client's model on the client's own test set, and of {len(members)} clients "
            f"that take part {len(empty)} have none: {clients}{more}. Raise workload.min_samples (a client with two "
            "samples has one to test with), take fewer clients or another split, or another method."
        )
