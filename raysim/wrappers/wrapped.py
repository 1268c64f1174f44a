"""A method within a run's wrappers: to the engine it is a method like any other.

The order is fixed: local training, attack, clipping, noise of the client, compression, the wire, what the server makes
of the bytes, attacks that know all honest updates, noise on the sum or the robust rule, the method's own ``aggregate``,
compression of what the server sends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from raysim import seeds
from raysim.config.privacy import Privacy, SamplePrivacy
from raysim.config.wrappers import Attack, Compression, Defense
from raysim.exchange.returned_values import no_update
from raysim.method import (
    NOTHING,
    ClientTask,
    Context,
    FlatModel,
    Message,
    Method,
    Module,
    SharedTensor,
    Traits,
    Update,
    Updates,
    Vector,
)
from raysim.workloads.federated_data import ClientData, Federation
from raysim.wrappers.attack import attacker_of, malicious
from raysim.wrappers.attacks._attacker import Attacker
from raysim.wrappers.codecs._codec import Codec
from raysim.wrappers.compression import (
    Broadcast,
    arrived,
    downward,
    first_broadcast,
    next_broadcast,
    upward,
    wire_bytes,
)
from raysim.wrappers.defense import robust_mean
from raysim.wrappers.own_columns import MALICIOUS, check_own, own_step
from raysim.wrappers.privacy import CUT, PrivateServer, check_steps, clipped, gaussian_noise, private_round
from raysim.wrappers.trained_entries import check_frozen, without_frozen

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig


BOUND, NOISE = "privacy bound", "privacy noise"
"""Parts of a message besides the method's own."""


def running_method(config: RunConfig, federation: Federation | None = None) -> Any:
    """The method that the engine runs: the config's own, within wrappers where the config asks for any.

    Args:
        config: the run's.
        federation: the data, which some attacks need to know where clients are trained; the server's half does not.
    """
    if not (config.attack.on or config.privacy.on or config.compression.on or config.defense.on):
        return config.method
    given = config.privacy.noise_multiplier
    noise = math.nan if given is None else given  # to be found by the driver (raysim/engine/privacy_budget.py)
    fitted = None if federation is None else attacker_of(config.attack).fitted(federation)
    return Wrapped(
        config.method, config.attack, config.compression, config.defense, fitted, privacy=config.privacy, noise=noise
    )


@dataclass(frozen=True)
class Kept:
    """The client state where errors of compression are fed back."""

    method: Any
    """The method's own state."""
    error: Vector
    """Sum of what compression has lost of its updates so far [d]."""


@dataclass(frozen=True)
class Wrapped(Method[Any, Any]):
    """A method whose clients may attack, clip and compress, and whose mean of updates may be another."""

    method: Method[Any, Any]
    """The config's: one that goes with these wrappers, as raysim/config/wrappers.py checks."""
    attack: Attack
    compression: Compression
    defense: Defense
    fitted: Attacker | None = None
    """The attack with what it needs to know of the data; None where no client is trained."""
    privacy: Privacy = field(default_factory=Privacy)
    noise: float = 0.0
    """Its noise multiplier."""
    spent: Callable[[int], Mapping[str, Any]] = lambda round: {}
    """Columns of the rounds table on what noise has spent by a round."""

    @property
    def traits(self) -> Traits:
        """The method's; where the server needs each client's update, none are added up where clients are trained."""
        own = self.method.traits
        each = self.defense.on or self._attacker.omniscient or self.privacy.kind == "central"
        sums = own.weighted_mean and not each
        size = own.upload_bytes if self._up is None else partial(wire_bytes, self._up)
        empty = self.privacy.on or own.empty_rounds
        return replace(own, weighted_mean=sums, single_step_gradient=False, upload_bytes=size, empty_rounds=empty)

    def extend(self, module: Module) -> Module:
        """The method's."""
        return self.method.extend(module) if hasattr(self.method, "extend") else module

    def shared_names(self, module: Module) -> Collection[str]:
        """The method's."""
        return self.method.shared_names(module)

    def init_server(self, model: FlatModel) -> Any:
        """The method's, what all clients hold where messages are compressed, and the first of adaptive bounds."""
        server = self.method.init_server(model)
        if self._down is not None:
            server = first_broadcast(self._down, self.method, server, model)
        return self._closed(server, self.privacy.clip)

    def init_client(self, model: FlatModel) -> Any:
        """The method's, and no error so far where errors are fed back."""
        error = np.zeros(model.shared.numel(), np.float32)
        own = self.method.init_client(model)
        return Kept(own, error) if self.compression.error_feedback else own

    def message(self, server: Any, client: int) -> Message:
        """The method's, with the parameters that all clients hold, and what they are told of bound and noise."""
        server, bound = self._opened(server)
        if isinstance(server, Broadcast):
            message = server.message(self.method.message(server.method, client))
        else:
            message = self.method.message(server, client)
        if not self.privacy.on:
            return message
        return replace(message, extra={**message.extra, BOUND: bound, NOISE: self.noise})

    def started_from(self, message: Message, update: Update) -> Vector:
        """The method's."""
        own = getattr(self.method, "started_from", None)
        return message.parameters if own is None else own(message, update)

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: Any, task: ClientTask
    ) -> tuple[Update, Any]:
        """The method's update as the server will read it: attacked, clipped, noised, and from the bytes on the wire."""
        attacks = self._attacks(task.seed, task.round, task.cohort.ids, task.client)
        if attacks:
            data = self._attacker.poisoned(data, task.classes)
        bound, noise = message.extra.get(BOUND, 0.0), message.extra.get(NOISE, 0.0)
        message = self._own_message(message)
        if self.privacy.kind == "dp-sgd":
            task = replace(task, sample_privacy=SamplePrivacy(bound, noise))
        update, after = self.method.train(model, data, message, self._own(state), task)
        if no_update(update, model):
            return update, after  # which is told as without wrappers
        check_own("Update.metrics", update.metrics)
        if self._changes_vectors:
            check_frozen(update.delta, model.shared_tensors)
        if update.extra and self._changes_vectors:
            raise RuntimeError(
                f"the method declares Traits(one_vector=True), but its clients also send {', '.join(update.extra)}, "
                "which no wrapper changes; leave the trait out"
            )
        if self.privacy.kind == "dp-sgd":
            check_steps(update, data.samples, task)
        if attacks:
            update = replace(update, delta=self._attacker.sent(update.delta, task))
        if self.attack.on and not self._attacker.omniscient:
            update = replace(update, metrics={**update.metrics, MALICIOUS: float(attacks)})
        if self.privacy.of_updates:
            update = self._private(update, bound, noise, task)
        sent = without_frozen(update.delta, model.shared_tensors) if self._changes_vectors else update.delta
        whole = sent + state.error if self.compression.error_feedback else sent
        received = self._received(whole, model.shared_tensors, task)
        kept = Kept(after, whole - received) if self.compression.error_feedback else after
        return replace(update, delta=self._bounded(received, bound)), kept

    def aggregate(self, server: Any, updates: Updates, context: Context) -> Any:
        """The method's, from updates whose mean has noise or is the rule's result.

        Without any update, in an empty Poisson round, central noise alone is the sum; else the state stays.
        """
        for name, value in self.spent(context.round).items():
            context.report.round(name, value)
        noised = self.privacy.kind == "central" and context.cohort.planned > 0  # 0: everybody is left out
        if not updates.clients and not noised and not self.method.traits.empty_rounds:
            return server
        server, bound = self._opened(server)
        if self._attacker.omniscient:
            updates = self._forged(updates, context)
        updates = updates if self._down is None else server.with_starts(updates)
        if self.defense.on and updates.clients:
            updates = _with_mean(updates, robust_mean(self.defense, updates, context))
        elif noised:
            mean, bound = private_round(self.privacy, self.noise, bound, updates, context)
            updates = _with_mean(updates, mean)
        after = own_step(self.method, server if self._down is None else server.method, updates, context)
        if self._down is not None:
            after = next_broadcast(self._down, self.method, server, after, context)
        return self._closed(after, bound)

    def deploy(self, model: FlatModel, message: Message, state: Any) -> None:
        """The method's."""
        self.method.deploy(model, message, self._own(state))

    def judged_data(self, data: ClientData, state: Any) -> ClientData:
        """The method's."""
        own = getattr(self.method, "judged_data", None)
        return data if own is None else own(data, self._own(state))

    @cached_property
    def _attacker(self) -> Attacker:
        return attacker_of(self.attack) if self.fitted is None else self.fitted

    @cached_property
    def _up(self) -> Codec | None:
        return upward(self.compression)

    @cached_property
    def _down(self) -> Codec | None:
        return downward(self.compression)

    @property
    def _changes_vectors(self) -> bool:
        """Whether a client's vector is changed on its way, so that nothing else may be sent beside it."""
        return self.privacy.on or self._up is not None or self.attack.changes_vectors

    def _own(self, state: Any) -> Any:
        return state.method if isinstance(state, Kept) else state

    def _opened(self, server: Any) -> tuple[Any, float]:
        """The server's state without privacy's part, and the bound of this round."""
        return (server.method, server.bound) if isinstance(server, PrivateServer) else (server, self.privacy.clip)

    def _closed(self, server: Any, bound: float) -> Any:
        """The server's state with the next round's bound, if that is adaptive."""
        return server if self.privacy.clip_quantile is None else PrivateServer(server, bound)

    def _own_message(self, message: Message) -> Message:
        if not self.privacy.on:
            return message
        return replace(message, extra={key: value for key, value in message.extra.items() if key not in (BOUND, NOISE)})

    def _private(self, update: Update, bound: float, noise: float, task: ClientTask) -> Update:
        """Clipped, with noise of the client's own if it is to be local, and whether it was cut as a metric."""
        delta, cut = clipped(update.delta, bound)
        if self.privacy.kind == "local":
            delta = delta + gaussian_noise(delta.size, noise * bound, task.seed, task.round, task.client)
        return replace(update, delta=delta, metrics={**update.metrics, CUT: float(cut)})

    def _bounded(self, received: Vector, bound: float) -> Vector:
        """Cut a vector to the bound of a server that adds noise: random-k and rounding may have made it longer."""
        longer = self.privacy.kind == "central" and self._up is not None
        return clipped(received, bound)[0] if longer else received

    def _attacks(self, seed: int, round: int, clients: int, client: int) -> bool:
        return round >= self.attack.from_round and client in malicious(self.attack, seed, clients)

    def _received(self, vector: Vector, tensors: Sequence[SharedTensor], task: ClientTask) -> Vector:
        """The vector that the server decodes from the bytes that this one is sent as."""
        if self._up is None or vector.size == 0 or not np.isfinite(vector).all():
            return vector  # the engine drops an update with NaN, and names the client
        seed = seeds.number(task.seed, "compression", task.round, task.client)
        return arrived(self._up, vector, tensors, seed)

    def _forged(self, updates: Updates, context: Context) -> Updates:
        """The updates with those of malicious clients replaced, if there are honest ones, and who was as a column."""
        ids = context.cohort.ids
        attacks = [self._attacks(context.seed, context.round, ids, client) for client in updates.clients]
        vectors = self._replaced([update.delta for update in updates.each], attacks)
        context.report.clients(MALICIOUS, np.array(attacks, np.float64) * (vectors is not None))
        if vectors is None:
            return updates
        each = tuple(replace(update, delta=delta) for update, delta in zip(updates.each, vectors, strict=True))
        own = None if updates.unweighted is None else self._replaced(updates.unweighted, attacks)
        return replace(updates, each=each, unweighted=own)

    def _replaced(self, vectors: Sequence[Vector], attacks: Sequence[bool]) -> tuple[Vector, ...] | None:
        """The clients' vectors with those of attackers forged from all others; None: they have nothing to send."""
        honest = [vector for vector, bad in zip(vectors, attacks, strict=True) if not bad]
        vector = self._attacker.forged(honest, sum(attacks)) if honest and any(attacks) else None
        if vector is None:
            return None
        return tuple(vector if bad else own for own, bad in zip(vectors, attacks, strict=True))


def _with_mean(updates: Updates, mean: Vector) -> Updates:
    each = tuple(replace(update, delta=NOTHING) for update in updates.each)
    return replace(updates, each=each, weighted_total=None, robust_mean=mean)
