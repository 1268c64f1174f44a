"""Whether objects that Python gives to a run are what they must be: one sentence each, before anything is written."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from raysim.columns import is_known
from raysim.engine.observer import HEARD
from raysim.errors import ConfigError, RaysimError, reason_of

if TYPE_CHECKING:
    import torch

    from raysim.workloads.federated_data import InputSpec


def check_has_data(model: object, clients: object, workload_named: bool) -> None:
    """Check that a model of one's own has data that was asked for, in the place of the default workload's.

    Args:
        workload_named: whether the settings, or the run that is continued, name a workload.

    Raises:
        ConfigError: it has none.
    """
    if (
        model is None
        or isinstance(model, str)
        or workload_named
        or not (clients is None or isinstance(clients, numbers.Integral))
    ):
        return
    began = "model: a model of your own needs data" if clients is None else f"clients: {clients} is a number of clients"
    raise ConfigError(
        f"{began}, and no data is named. Give the data of every client, clients=raysim.split((x, y), "
        f"clients={clients or 10}), or a workload by its name, workload='digits'."
    )


def check_functions(loss: object, metrics: object) -> None:
    """Check a loss and metrics by name.

    Raises:
        ConfigError: one is no function, or the name of a metric is taken.
    """
    if not isinstance(metrics, Mapping):
        raise ConfigError(
            f"metrics: {type(metrics).__name__} is not allowed. Allowed: a dict name → function of outputs and labels, "
            "such as {'f1': f1}; the names are those of the columns."
        )
    for name, function in {**({"loss": loss} if loss is not None else {}), **metrics}.items():
        if isinstance(function, type):
            cls = function.__qualname__
            called = f"loss={cls}(…)" if name == "loss" else f"metrics={{{name!r}: {cls}(…)}}"
            raise ConfigError(f"{name}: {cls} is a class, and an instance is needed: {called}.")
        if not callable(function):
            raise ConfigError(f"{name}: {function!r} is not allowed. Allowed: a function of outputs and labels.")
    if taken := [name for name in metrics if not isinstance(name, str) or is_known(name) or not name.isidentifier()]:
        raise ConfigError(f"metrics: {taken[0]!r} cannot be the name of a column of its own. Choose another name.")


def check_observer(observer: object) -> None:
    """ConfigError unless an observer is None or an instance that has all functions of one."""
    if observer is None:
        return
    if isinstance(observer, type):
        cls = observer.__qualname__
        raise ConfigError(f"observer: {cls} is a class, and an instance is needed: observer={cls}().")
    missing = [name for name in HEARD if not callable(getattr(observer, name, None))]
    if missing:
        raise ConfigError(
            f"observer: {type(observer).__name__} has no function {missing[0]}. Give an instance of a class of "
            "your own that inherits from raysim.Observer (docs/own-data.md, Observers)."
        )


def copied(module: torch.nn.Module) -> torch.nn.Module:
    """A copy of a module on the CPU; ConfigError where it has no values or cannot be copied."""
    import copy

    empty = [name for name, tensor in module.state_dict(keep_vars=True).items() if getattr(tensor, "is_meta", False)]
    if empty:
        raise ConfigError(
            f"model: {empty[0]} of {type(module).__name__} is on the device meta and has no values. Make the module on "
            "the CPU, or give what makes it: model=Net."
        )
    try:
        return copy.deepcopy(module).cpu()
    except Exception as error:  # an attribute that cannot be copied: a lock, an open file
        raise ConfigError(
            f"model: {type(module).__name__} cannot be copied ({reason_of(error)}). Leave out of its attributes what "
            "belongs to one process alone, or give what makes it: model=Net."
        ) from error


def copied_functions(loss: Any, metrics: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Copies of a loss and metrics, so that a run in this process leaves objects of a user's own as they are.

    Raises:
        ConfigError: one cannot be copied.
    """
    import copy

    found = {}
    for name, function in {"loss": loss, **metrics}.items():
        try:
            found[name] = copy.deepcopy(function)
        except Exception as error:  # an attribute that cannot be copied: a lock, an open file
            raise ConfigError(
                f"{name}: {type(function).__name__} cannot be copied ({reason_of(error)}). Leave out of its attributes "
                "what belongs to one process alone."
            ) from error
    return found.pop("loss"), found


def made_model(held: Any, inputs: InputSpec, name: str) -> torch.nn.Module:
    """The module that was given, or that a class or function makes for a task.

    Raises:
        ConfigError: it raises, makes something else, or makes a module of which nothing is trained.
    """
    import torch

    from raysim.client_side import process_state
    from raysim.workloads.given.given_data import made

    before = process_state.snapshot()
    try:
        module: object = made(held, inputs)
    except RaysimError:
        raise
    except (Exception, SystemExit) as error:  # of a user's own function
        raise ConfigError(
            f"model: {name} failed when it was called to make the model: {reason_of(error)}. It is given nothing, or "
            f"the task (task.input_shape {inputs.input_shape}, task.classes {inputs.classes}), and returns a "
            "torch.nn.Module."
        ) from error
    if changed := process_state.put_back(before):
        raise ConfigError(f"model: {name}: {changed}.")
    if not isinstance(module, torch.nn.Module):
        raise ConfigError(f"model: {name} made {module!r}, which is no torch.nn.Module.")
    parameters = dict(module.named_parameters())
    if not any(parameter.requires_grad for parameter in parameters.values()):
        frozen = f"all {len(parameters)} are frozen (requires_grad is False)" if parameters else "it has none"
        raise ConfigError(
            f"model: {name} has no parameter that is trained: {frozen}. Leave at least one with requires_grad_(True), "
            "the head say."
        )
    return module
