"""Adds a method's own modules to a model, and checks that a model has the parts that a method needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from raysim import seeds
from raysim.config import registry
from raysim.errors import ConfigError
from raysim.workloads.models.model_options import ModelOptions

if TYPE_CHECKING:
    from collections.abc import Collection

    import torch

    from raysim.config.run_config import RunConfig
    from raysim.workloads.federated_data import Federation


def extended(method: Any, module: torch.nn.Module, seed: int) -> torch.nn.Module:
    """A freshly built model, extended by ``method.extend``; unchanged for a class without ``extend``.

    Args:
        seed: the run's seed. What ``extend`` draws comes from a stream of its own, so that it is the same for all
            clients, whatever the size of the model that each of them has. The caller protects torch's global stream.

    Raises:
        ConfigError: ``extend`` returned no module.
    """
    if not hasattr(method, "extend"):  # a class that does not inherit from Method
        return module
    import torch

    from raysim.workloads.models.classifier import task_specific

    torch.manual_seed(seeds.number(seed, "extension"))
    specific = task_specific(module)
    found: object = method.extend(module)
    if not isinstance(found, torch.nn.Module):
        raise ConfigError(
            f"{type(method).__name__}.extend must return a torch.nn.Module, not {type(found).__name__}; "
            "return the module it was given where there is nothing to add"
        )
    if found is not module and not hasattr(found, "task_specific"):
        setattr(found, "task_specific", specific)  # noqa: B010 - mypy takes an attribute of a module for a tensor
    return found


def check_parts(config: RunConfig, names: Collection[str]) -> None:
    """Check that a model, whose parameters have these names, has every part that the method needs.

    Raises:
        ConfigError: it lacks one; with the models that come with raysim and have it.
    """
    for part in config.method.traits.model_parts:
        if not any(name.startswith(part) for name in names):
            raise lacks_part(config, part)


def check_types(module: torch.nn.Module) -> None:
    """Check that a model's parameters have values, and that they and its buffers with a fraction are float32.

    Raises:
        ConfigError: one has another type, or no shape yet.
    """
    import torch

    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if isinstance(tensor, (torch.nn.UninitializedParameter, torch.nn.UninitializedBuffer)):
            raise ConfigError(
                f"model: {name} of {type(module).__name__} has no shape before the first forward pass. Call the module "
                "on a sample before you give it, or name the sizes of its layers."
            )
        if tensor.dtype != torch.float32 and (tensor.is_floating_point() or isinstance(tensor, torch.nn.Parameter)):
            found = str(tensor.dtype).removeprefix("torch.")
            raise ConfigError(
                f"model: {name} of {type(module).__name__} is {found}, and models are trained in float32. Give "
                "module.float(), and set training.precision to bf16 if forward passes are to be in bfloat16."
            )


def check_head_of_body(config: RunConfig, federation: Federation) -> None:
    """Check on two samples that a method which takes the model apart leaves nothing of it out.

    Raises:
        ConfigError: the model lacks a part, or its outputs are not those of ``head(body(x))``.
    """
    import torch

    if not config.method.traits.head_of_body or isinstance(config.model, ModelOptions):
        return
    with seeds.kept_streams(seeds.number(config.seed, "model")):
        module: Any = config.model.build(federation.input_spec(0)).eval()
    check_parts(config, [name for name, _ in module.named_parameters()])
    with torch.inference_mode():
        try:
            batch = next(iter(federation.client(0, "cpu").train.batches(2)))
            whole = module(batch.x)
        except Exception:  # of the client's data or the module, which raise it again where a client can be named
            return
        try:
            same = torch.allclose(whole, module.head(module.body(batch.x)), rtol=1e-3, atol=1e-5)
        except Exception:  # it has no such parts, or one does not take what the other gives
            same = False
    if not same:
        raise ConfigError(
            f"method {registry.public_name('method', config.method)} takes features from a model's body and "
            f"predicts by its head: the model must be head(body(x)) and no more, and {type(module).__name__} is not. "
            "Call its parts self.body and self.head, and let body hold all that comes before head, activations too, as "
            "in raysim.workloads.models.classifier.Classifier."
        )


def lacks_part(config: RunConfig, part: str) -> ConfigError:
    """The error for a model without a part that the run's method needs."""
    fitting = [name for name in registry.known("model") if part in registry.resolve("model", name).parts]
    if not isinstance(config.model, ModelOptions):
        return ConfigError(
            f"method {registry.public_name('method', config.method)} needs a model with parameters named {part}*, and "
            f"{getattr(config.model, 'class_name', '') or registry.public_name('model', config.model)} has none. Call "
            "its parts self.body and self.head: body gives a sample's features, head predicts from them."
        )
    return ConfigError(
        f"method {registry.public_name('method', config.method)} needs a model with parameters named {part}*, and "
        f"model {registry.public_name('model', config.model)} has none. Models with them: {', '.join(fitting)}."
    )


NO_BATCH_NORM = "Take a model without BatchNorm, cnn say, or --norm group of the ResNets"


def mixes_samples() -> ConfigError:
    """The error for DP-SGD with a model that has BatchNorm layers."""
    return ConfigError(
        "privacy.kind: dp-sgd is not possible with this model, whose BatchNorm mixes the samples of a batch: "
        f"none has a gradient of its own. {NO_BATCH_NORM}."
    )


def without_batch_norm(config: RunConfig, option: str) -> ConfigError:
    """The error for an option on BatchNorm, ``training.freeze_batchnorm: true``, of a model that has no such layer."""
    inputs = getattr(config.workload, "inputs", None)
    classes = {name: registry.resolve("model", name) for name in registry.known("model")}
    having = {name: cls for name, cls in classes.items() if getattr(cls, "batch_norm", False)}
    fitting = [name for name, cls in having.items() if inputs in (None, cls.inputs)]
    return ConfigError(
        f"{option} has no effect, because the model has no BatchNorm layer. Leave it out, or choose a model with "
        f"BatchNorm: {', '.join(fitting)}."
    )
