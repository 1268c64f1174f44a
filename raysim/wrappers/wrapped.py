"""A method within a run's wrappers: to the engine it is a method like any other.

The order is fixed: local training, attack, compression, the wire, what the server makes of the bytes, attacks that know
all honest updates, the robust rule, the method's own ``aggregate``, compression of what the server sends.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from raysim import seeds
from raysim.method import NOTHING, Method, Updates
from raysim.wrappers import backdoor
from raysim.wrappers.attack import forged, malicious, poisoned, sent
from raysim.wrappers.broadcast import Broadcast, first_broadcast, next_broadcast
from raysim.wrappers.compression import decoded, encoded, wire_bytes
from raysim.wrappers.defense import robust_mean

if TYPE_CHECKING:
    import torch

    from raysim.config.run_config import RunConfig
    from raysim.config.wrappers import Attack, Compression, Defense
    from raysim.flat_model import FlatModel
    from raysim.method import ClientTask, Context, Message, Shape, Traits, Update, Vector
    from raysim.wrappers.backdoor import Trigger
    from workloads.federated_data import ClientData


def running_method(config: RunConfig, trigger: Trigger | None = None) -> Any:
    """The method that the engine runs: the config's own, within wrappers where the config asks for any.

    Args:
        trigger: of a backdoor, which its clients need to train.
    """
    if not (config.attack.on or config.compression.on or config.defense.on):
        return config.method
    return Wrapped(config.method, config.attack, config.compression, config.defense, trigger)


@dataclass(frozen=True)
class Kept:
    """What a client keeps where errors of compression are fed back."""

    method: Any
    """The method's own state."""
    error: Vector
    """What was lost of its updates so far [d]."""


@dataclass(frozen=True)
class Wrapped(Method[Any, Any]):
    """A method whose clients may attack and compress, and whose mean of updates may be a robust rule."""

    method: Any
    """The config's: one with ``Traits.weighted_mean``, as raysim/config/wrappers.py checks."""
    attack: Attack
    compression: Compression
    defense: Defense
    trigger: Trigger | None = None

    @property
    def traits(self) -> Traits:
        """The method's; where the server needs each client's update, none are added up where clients are trained."""
        own: Traits = self.method.traits
        sums = own.weighted_mean and not (self.defense.on or self.attack.omniscient)
        size = partial(wire_bytes, self.compression) if self.compression.kind != "none" else own.upload_bytes
        return replace(own, weighted_mean=sums, single_step_gradient=False, upload_bytes=size)

    def extend(self, module: torch.nn.Module) -> torch.nn.Module:
        """The method's."""
        extended: torch.nn.Module = self.method.extend(module) if hasattr(self.method, "extend") else module
        return extended

    def shared_names(self, module: torch.nn.Module) -> Collection[str]:
        """The method's."""
        names: Collection[str] = self.method.shared_names(module)
        return names

    def init_server(self, model: FlatModel) -> Any:
        """The method's, and what all clients hold where messages are compressed."""
        server = self.method.init_server(model)
        if self.compression.down == "none":
            return server
        return first_broadcast(self.compression, self.method, server, model)

    def init_client(self, model: FlatModel) -> Any:
        """The method's, and no error so far where errors are fed back."""
        error = np.zeros(model.shared.numel(), np.float32)
        own = self.method.init_client(model)
        return Kept(own, error) if self.compression.error_feedback else own

    def message(self, server: Any, client: int) -> Message:
        """The method's, with the parameters that all clients hold where messages are compressed."""
        if isinstance(server, Broadcast):
            return server.message(self.method.message(server.method, client))
        message: Message = self.method.message(server, client)
        return message

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: Any, task: ClientTask
    ) -> tuple[Update, Any]:
        """The method's update as the server will read it: after an attack, and from the bytes on the wire."""
        attacks = self._attacks(task.seed, task.round, task.cohort.existing, task.client)
        if attacks and self.attack.kind == "label-flip":
            data = poisoned(data, task.classes)
        elif attacks and self.trigger is not None:
            data = backdoor.poisoned(data, self.trigger, self.attack.poisoned_share)
        update, after = self.method.train(model, data, message, self._own(state), task)
        if attacks:
            update = replace(update, delta=sent(self.attack, update.delta, task))
        if not self.compression.error_feedback:
            return replace(update, delta=self._received(update.delta, model.shared_shapes, task)), after
        whole = update.delta + state.error
        received = self._received(whole, model.shared_shapes, task)
        return replace(update, delta=received), Kept(after, whole - received)

    def aggregate(self, server: Any, updates: Updates, context: Context) -> Any:
        """The method's, from updates whose mean is the rule's result where there is a defense."""
        if self.attack.on:
            existing = context.cohort.existing
            attacks = [self._attacks(context.seed, context.round, existing, client) for client in updates.clients]
            context.report.clients("malicious", np.array(attacks, np.float64))
            if self.attack.omniscient and 0 < sum(attacks) < len(attacks):
                updates = self._forged(updates, attacks)
        if self.defense.on:
            mean = robust_mean(self.defense, updates, context)
            each = tuple(replace(update, delta=NOTHING) for update in updates.each)
            updates = Updates(updates.clients, updates.samples, each, robust_mean=mean)
        if not isinstance(server, Broadcast):
            return self.method.aggregate(server, updates, context)
        after = self.method.aggregate(server.method, updates, context)
        return next_broadcast(self.compression, self.method, server, after, context)

    def deploy(self, model: FlatModel, message: Message, state: Any) -> None:
        """The method's."""
        self.method.deploy(model, message, self._own(state))

    def _own(self, state: Any) -> Any:
        return state.method if isinstance(state, Kept) else state

    def _attacks(self, seed: int, round: int, clients: int, client: int) -> bool:
        return round >= self.attack.from_round and client in malicious(self.attack, seed, clients)

    def _received(self, vector: Vector, shapes: Sequence[Shape], task: ClientTask) -> Vector:
        """What the server makes of the bytes that this vector is sent as."""
        if self.compression.kind == "none" or vector.size == 0 or not np.isfinite(vector).all():
            return vector  # the engine drops an update with NaN, and names the client
        seed = seeds.number(task.seed, "compression", task.round, task.client)
        return decoded(self.compression, encoded(self.compression, vector, shapes, seed), shapes)

    def _forged(self, updates: Updates, attacks: list[bool]) -> Updates:
        honest = [update.delta for update, bad in zip(updates.each, attacks, strict=True) if not bad]
        vector = forged(self.attack, honest, sum(attacks))
        each = zip(updates.each, attacks, strict=True)
        return replace(updates, each=tuple(replace(update, delta=vector) if bad else update for update, bad in each))
