"""The parameters that clients of different tasks can share: seven data sets of two classes are seven tasks, not one.

Their models differ in the width of inputs and the number of classes, and where these happen to agree, in what the
numbers mean: a head that tells mutagenic molecules from others is of no use to one that tells letters apart. So what a
method wants to share is shared without

- the input layer and the head, weights and biases, and what else the model says fits one task
  (:func:`raysim.workloads.models.classifier.task_specific`);
- every layer that has not the same shapes in all clients' models.

With one task, one data set cut over clients, everything that the method names is shared. With
``training.batchnorm_statistics local`` the running means and variances of BatchNorm are not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from raysim.client_side.model_parts import without_batch_norm
from raysim.config import registry
from raysim.errors import ConfigError
from raysim.flat_model import batch_norm_names
from raysim.workloads.federated_data import distinct_input_specs
from raysim.workloads.models.classifier import has_batch_norm, task_specific

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig
    from raysim.workloads.federated_data import Federation, InputSpec


class _Fit(NamedTuple):
    """Names of parameters and buffers in the models of several tasks."""

    all_tasks: set[str]
    """Those that clients of all tasks can share."""
    wanted: set[str]
    """Those that the method asks for in any of the models."""


class Sharing:
    """Which entries of its clients' models a run shares, of those that its method asks for.

    Args:
        config: the run's.
        method: the method as it runs.
        build: makes the model of a task.
    """

    def __init__(
        self, config: RunConfig, method: Any, federation: Federation, build: Callable[[InputSpec], torch.nn.Module]
    ) -> None:
        self._config, self._method, self._federation, self._build = config, method, federation, build
        self._local_statistics = config.training.batchnorm_statistics == "local"

    def names(self, module: torch.nn.Module) -> set[str]:
        """Names of the parameters and buffers of a client's model that travel.

        Raises:
            ConfigError: none can, or statistics are to stay where there are none, or none that would travel.
        """
        wanted = set(self._method.shared_names(module))
        shared = wanted if self._fit is None else wanted & self._fit.all_tasks
        if wanted and not shared:
            raise ConfigError(nothing_to_share(self._federation.name, wanted))
        if self._local_statistics:
            self._check_statistics(module, shared)
            shared = shared - running_statistics(module)
        return shared

    @cached_property
    def leaves_out(self) -> bool:
        """Whether the method asks for more than is shared: the rest is kept for each client, unseen by the method."""
        return self._local_statistics or (self._fit is not None and bool(self._fit.wanted - self._fit.all_tasks))

    @cached_property
    def _fit(self) -> _Fit | None:
        """The names that matter where clients have different tasks; None where all have one, and so all are shared."""
        tasks = distinct_input_specs(self._federation)
        if len(tasks) == 1:
            return None
        modules = [self._build(task) for task in tasks]
        return _Fit(common_names(modules), {name for module in modules for name in self._method.shared_names(module)})

    def _check_statistics(self, module: torch.nn.Module, shared: Collection[str]) -> None:
        option = "training.batchnorm_statistics: local"
        if not has_batch_norm(module):
            raise without_batch_norm(self._config, option)
        if not running_statistics(module) & set(shared):
            name = registry.public_name("method", self._config.method)
            raise ConfigError(
                f"{option} has no effect with method {name}, whose clients keep them anyway. Set it to averaged, or "
                "take a method such as fedavg or fedprox."
            )


def common_names(modules: Sequence[torch.nn.Module]) -> set[str]:
    """Names of the parameters and buffers that clients can share, from one model for each of their tasks."""
    tensors = [[*module.named_parameters(), *module.named_buffers()] for module in modules]
    shapes = [{name: tensor.shape for name, tensor in own} for own in tensors]
    every = set().union(*shapes)
    differ = {_layer_of(name) for name in every if any(own.get(name) != shapes[0].get(name) for own in shapes)}
    specific = {part for module in modules for part in task_specific(module)}
    return {name for name in every if _layer_of(name) not in differ and not _within(name, specific)}


def running_statistics(module: torch.nn.Module) -> set[str]:
    """Running mean and running variance of every BatchNorm layer."""
    return batch_norm_names(module) & {name for name, _ in module.named_buffers()}


def nothing_to_share(federation: str, wanted: Collection[str]) -> str:
    """A note for a method of whose shared parameters none are left; empty if some are."""
    named = ", ".join(sorted(wanted)[:3]) + (", …" if len(wanted) > 3 else "")
    return (
        f"the clients of {federation} have different tasks, and of what this method shares ({named}) nothing fits all "
        "of them: input layers and heads stay with their client. Take a model with layers between them, or "
        "--method local"
    )


def _within(name: str, parts: Collection[str]) -> bool:
    """Whether a parameter or buffer is one of these parts of a model, or lies in one."""
    return any(name == part or name.startswith(f"{part}.") for part in parts)


def _layer_of(name: str) -> str:
    """The dotted name of the module that a parameter or buffer belongs to."""
    return name.rpartition(".")[0]
