"""Whether a run can be done as asked, as far as that can be known before it starts.

:func:`check_request` is for the launching process, before there is a folder or a Ray: it loads no data and builds no
model. Each check raises one complete message. What a method needs of models and clients it declares in its ``traits``;
nothing here knows a method by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from raysim import portable, seeds
from raysim.client_side.model_parts import lacks_part, mixes_samples, without_batch_norm
from raysim.config import registry
from raysim.config.nearest import nearest
from raysim.driver.federation_checks import check_federation
from raysim.errors import ConfigError, reason_of
from raysim.method import Method, Traits

if TYPE_CHECKING:
    from raysim.config.registry import Kind
    from raysim.config.run_config import RunConfig
    from raysim.workloads.federated_data import Federation

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
    if config.engine.portable:
        portable.check()
    federation = check_data(config)
    if federation is not None:
        check_federation(config, federation)


def check_data(config: RunConfig) -> Federation | None:
    """Look at a run's data as far as that takes little time; a sketch of it, None where only loading tells.

    Raises:
        ConfigError: code of the workload would end the program.
        WorkloadError: data is missing, or cannot be split over the clients as asked.
    """
    sketch = getattr(config.workload, "sketch", None)
    if sketch is None or config.engine.address.startswith("ray://"):  # then the data is on the cluster's head
        return None
    try:
        found: Federation | None = sketch(seeds.data_streams(config.seed))
    except SystemExit as error:
        raise ConfigError(
            f"workload {registry.public_name('workload', config.workload)}: {reason_of(error)}"
        ) from error
    return found


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
    for option, given in _on_batch_norm(config).items():
        if given and not getattr(config.model, "batch_norm", True):
            raise without_batch_norm(config, option)


def _on_batch_norm(config: RunConfig) -> dict[str, bool]:
    """The values of options that need a model with BatchNorm, and whether the run has them."""
    return {
        "training.freeze_batchnorm: true": config.training.freeze_batchnorm,
        "training.batchnorm_statistics: local": config.training.batchnorm_statistics == "local",
    }


INPUTS = {"array": "arrays, such as images", "graph": "graphs", "nodes": "nodes of one graph"}


def _check_resources(config: RunConfig) -> None:
    if config.engine.backend == "ray":
        from raysim.actors.capacity import check_this_machine

        check_this_machine(config)
    elif config.engine.gpus_per_client:
        from raysim.client_side.device import device_of

        device_of(config.engine)
