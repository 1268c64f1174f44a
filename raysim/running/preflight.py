"""Whether a run can be done as asked, as far as that can be known before it starts.

:func:`check_request` is for the launching process, before there is a folder or a Ray: it loads no data and builds no
model. :func:`check_federation` is asked again by whoever has loaded the data. Each raises one complete message. What a
method needs of models and clients it declares in its ``traits``; nothing here knows a method by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from raysim import schedule, seeds
from raysim.client_side.drift import check_drift
from raysim.client_side.model_parts import lacks_part, mixes_samples, without_batch_norm
from raysim.config import registry
from raysim.config.nearest import nearest
from raysim.engine.early_stopping import EarlyStopping
from raysim.engine.round_columns import expected
from raysim.errors import ConfigError, reason_of
from raysim.method import Method, Traits
from raysim.virtual_time.clock import profiles_of
from raysim.virtual_time.fleet import check_profiles
from raysim.workloads.federated_data import distinct_input_specs, objective_of
from raysim.wrappers.attack import check_attack
from raysim.wrappers.defense import check_defense
from raysim.wrappers.judging import judging

if TYPE_CHECKING:
    from raysim.config.registry import Kind
    from raysim.config.run_config import RunConfig
    from raysim.workloads.federated_data import Federation
    from raysim.workloads.objective import Objective

FUNCTIONS: dict[Kind, tuple[str, ...]] = {
    "method": ("shared_names", "init_server", "init_client", "message", "train", "aggregate", "deploy"),
    "workload": ("load",),
    "model": ("build",),
}
"""Functions that every class of a kind must have; a method also has ``traits``."""
CONTRACT: dict[Kind, str] = {
    "method": "raysim/method.py has the contract, raysim/methods/fedavg.py the least there is to a method",
    "workload": "load(stream) returns the clients' data (workloads/federated_data.py, Federation)",
    "model": "build(task) returns a torch.nn.Module (workloads/models/image_specs.py)",
}
OTHER_DATA = "Take another method, or one data set that is cut over the clients"


def check_request(config: RunConfig) -> None:
    """Check classes, model, resources and data of a run.

    Raises:
        ConfigError: the method, workload or model lacks a function, or they do not go together.
        WorkloadError: data is missing, or cannot be split over the clients as asked.
        PlacementError: this machine cannot give the actors that were asked for.
    """
    for kind in registry.KINDS:
        _check_functions(kind, getattr(config, kind))
    _check_model_kind(config)
    _check_resources(config)
    sketch = getattr(config.workload, "sketch", None)
    if sketch is None or config.engine.address.startswith("ray://"):  # then the data is on the cluster's head
        return
    try:
        federation = sketch(lambda purpose: seeds.numpy_generator(config.seed, purpose))
    except SystemExit as error:
        raise ConfigError(
            f"workload {registry.public_name('workload', config.workload)}: {reason_of(error)}"
        ) from error
    if federation is not None:
        check_federation(config, federation)


def check_federation(config: RunConfig, federation: Federation) -> None:
    """Check that the run's method, model and schedule can do with these clients.

    Args:
        federation: the data, or a sketch of it. Of a sketch only what the run depends on is asked.

    Raises:
        ConfigError: they cannot.
        WorkloadError: the model takes other inputs.
    """
    name, traits = registry.public_name("method", config.method), config.method.traits
    trainable = schedule.trainable(config, federation.clients)
    if config.schedule.joins and not traits.pooled:
        schedule.check_joins(config.schedule.joins, config.schedule.join_every, trainable)
    if traits.same_task or traits.pooled:
        _check_one_task(federation, f"method {name} needs clients that all have the same task", OTHER_DATA)
    if config.evaluation.decompose_every:
        why = "evaluation.decompose_every: the decomposition judges every client's model on every client's data"
        _check_one_task(federation, why, "Set it to 0")
    _check_objective(config, name, objective_of(federation))
    if config.evaluation.ends_early:
        EarlyStopping(config.evaluation, judging(config, federation).objective, expected(config, federation))
    check_drift(config, federation)
    if config.devices.on:
        check_profiles(config.timing, config.schedule, profiles_of(config, trainable))
    steps = schedule.updates_a_step(config, trainable)
    check_attack(config.attack, federation, config.seed, trainable, steps)
    check_defense(config.defense, steps)
    if traits.local_tests:
        _check_local_tests(name, federation)
    check = getattr(config.model, "check", None)
    if check is not None:
        for task in distinct_input_specs(federation):
            check(task)


def _check_functions(kind: Kind, instance: Any) -> None:
    cls = type(instance)
    where = f"{kind} {registry.public_name(kind, instance)}"
    # A class that inherits from Method has all functions; those that are Method's own do nothing.
    missing = [
        name
        for name in FUNCTIONS[kind]
        if not callable(getattr(instance, name, None)) or getattr(cls, name, None) is getattr(Method, name, cls)
    ]
    if missing:
        own = [name for name in vars(cls) if not name.startswith("_") and name not in FUNCTIONS[kind]]
        near = [f"{close[0]} for {name}" for name in missing if (close := nearest(name, own))]
        slip = f" Is {' and '.join(near)} a slip of the pen?" if near else ""
        functions = f"the function{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
        raise ConfigError(f"{where}: {cls.__qualname__} lacks {functions}.{slip} {CONTRACT[kind]}.")
    if kind == "method" and not isinstance(getattr(instance, "traits", None), Traits):
        raise ConfigError(
            f"{where}: {cls.__qualname__} lacks traits. Add `traits: ClassVar[Traits] = Traits()` to it, with what the "
            f"engine has to know (raysim.method.Traits). {CONTRACT[kind]}."
        )


def _check_model_kind(config: RunConfig) -> None:
    """Refuse a model that a method cannot train, by what their classes declare; a user's own need not."""
    has, takes = (getattr(section, "inputs", None) for section in (config.workload, config.model))
    if has and takes and has != takes:
        fitting = [name for name in registry.known("model") if registry.resolve("model", name).inputs == has]
        raise ConfigError(
            f"model {registry.public_name('model', config.model)} takes {INPUTS[takes]}, but the clients of workload "
            f"{registry.public_name('workload', config.workload)} have {INPUTS[has]}. "
            f"Models for {INPUTS[has]}: {', '.join(fitting)}."
        )
    needs = config.method.traits.model_parts
    for part in needs:
        if part not in getattr(config.model, "parts", needs):
            raise lacks_part(config, part)
    has_batch_norm = getattr(config.model, "batch_norm", False)
    if config.privacy.kind == "dp-sgd" and has_batch_norm and not config.training.freeze_batchnorm:
        raise mixes_samples()
    if config.training.freeze_batchnorm and not getattr(config.model, "batch_norm", True):
        raise without_batch_norm(config)


INPUTS = {"array": "arrays, such as images", "graph": "graphs", "nodes": "nodes of one graph"}


def _check_resources(config: RunConfig) -> None:
    if config.engine.backend == "ray":
        from raysim.actors.capacity import check_this_machine

        check_this_machine(config)
    elif config.engine.gpus_per_client:
        from raysim.client_side.device import device_of

        device_of(config.engine)


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


def _check_local_tests(name: str, federation: Federation) -> None:
    empty = [client for client in range(federation.clients) if federation.test_samples(client) == 0]
    if empty:
        clients = ", ".join(federation.client_name(client) for client in empty[:3])
        more = f" and {len(empty) - 3} more" if len(empty) > 3 else ""
        raise ConfigError(
            f"method {name} judges every client's model on the client's own test set, and of {federation.clients} "
            f"clients {len(empty)} have none: {clients}{more}. Raise workload.min_samples (a client with two samples "
            "has one to test with), take fewer clients or another split, or another method."
        )
