"""A method within a run's wrappers: to the engine it is a method like any other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from raysim.method import NOTHING, Method, Updates
from raysim.wrappers.defense import robust_mean

if TYPE_CHECKING:
    from collections.abc import Collection

    import torch

    from raysim.config.run_config import RunConfig
    from raysim.config.wrappers import Defense
    from raysim.flat_model import FlatModel
    from raysim.method import ClientTask, Context, Message, Traits, Update
    from workloads.federated_data import ClientData


def running_method(config: RunConfig) -> Any:
    """The method that the engine runs: the config's own, within wrappers where the config asks for any."""
    return Wrapped(config.method, config.defense) if config.defense.on else config.method


@dataclass(frozen=True)
class Wrapped(Method[Any, Any]):
    """A method whose weighted mean of updates is replaced by a robust rule.

    States are the method's own; only ``aggregate`` differs.
    """

    method: Any
    """The config's: one with ``Traits.weighted_mean``, as raysim/config/wrappers.py checks."""
    defense: Defense

    @property
    def traits(self) -> Traits:
        """The rule needs each client's update, so that none are added up or merged where clients are trained."""
        own: Traits = self.method.traits
        return replace(own, weighted_mean=False, single_step_gradient=False)

    def extend(self, module: torch.nn.Module) -> torch.nn.Module:
        """The method's."""
        extended: torch.nn.Module = self.method.extend(module) if hasattr(self.method, "extend") else module
        return extended

    def shared_names(self, module: torch.nn.Module) -> Collection[str]:
        """The method's."""
        names: Collection[str] = self.method.shared_names(module)
        return names

    def init_server(self, model: FlatModel) -> Any:
        """The method's."""
        return self.method.init_server(model)

    def init_client(self, model: FlatModel) -> Any:
        """The method's."""
        return self.method.init_client(model)

    def message(self, server: Any, client: int) -> Message:
        """The method's."""
        message: Message = self.method.message(server, client)
        return message

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: Any, task: ClientTask
    ) -> tuple[Update, Any]:
        """The method's."""
        trained: tuple[Update, Any] = self.method.train(model, data, message, state, task)
        return trained

    def aggregate(self, server: Any, updates: Updates, context: Context) -> Any:
        """The method's, from updates whose mean is the rule's result."""
        mean = robust_mean(self.defense, updates, context)
        each = tuple(replace(update, delta=NOTHING) for update in updates.each)
        return self.method.aggregate(server, Updates(updates.clients, updates.samples, each, robust_mean=mean), context)

    def deploy(self, model: FlatModel, message: Message, state: Any) -> None:
        """The method's."""
        self.method.deploy(model, message, state)
