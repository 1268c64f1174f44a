"""The optional function ``extend`` of a method: modules that the method adds to the user's model.

A method whose prediction needs more than the model that the user chose (a gate, a second head, a vector added to the
features) writes, beside the functions of :class:`raysim.method.Method`,

    def extend(self, module: torch.nn.Module) -> torch.nn.Module

It gets the freshly built model and returns the module that takes its place everywhere: what it holds lies in the flat
buffer like all else, ``shared_names`` decides what of it travels, and its ``forward`` is the prediction that clients
are judged by. It keeps the model's own children, ``body`` and ``head``, under their names, so that what knows those
parts by name still finds them. What it adds and what fits one task only (a second head) it names, beside the model's
own such parts, in an attribute ``task_specific`` (workloads/models/classifier.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from raysim import seeds
from raysim.errors import ConfigError

if TYPE_CHECKING:
    import torch


def extended(method: Any, module: torch.nn.Module, seed: int) -> torch.nn.Module:
    """What ``method.extend(module)`` makes of a freshly built model; the model itself where a method has no ``extend``.

    Args:
        method: the run's method.
        module: the model, with its initial values.
        seed: the run's seed. What ``extend`` draws comes from a stream of its own, so that it is the same for all
            clients, whatever the size of the model that each of them has. The caller protects torch's global stream.

    Raises:
        ConfigError: ``extend`` returned no module.
    """
    extend: Callable[[torch.nn.Module], Any] | None = getattr(method, "extend", None)
    if extend is None:
        return module
    import torch

    from workloads.models.classifier import task_specific

    torch.manual_seed(seeds.number(seed, "extension"))
    specific = task_specific(module)
    found = extend(module)
    if isinstance(found, torch.nn.Module) and not hasattr(found, "task_specific"):
        setattr(found, "task_specific", specific)  # noqa: B010 - the parts keep their names; mypy takes it for a tensor
    if not isinstance(found, torch.nn.Module):
        raise ConfigError(
            f"{type(method).__name__}.extend must return a torch.nn.Module, not {type(found).__name__}; "
            "return the module it was given where there is nothing to add"
        )
    return found
