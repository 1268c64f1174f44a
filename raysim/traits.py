"""Traits: facts that a method declares, so that the engine and the checks before a run know it by no name."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

Shape = tuple[int, ...]


class SharedTensor(NamedTuple):
    """One of the tensors whose entries, one after another, are the shared vector."""

    shape: Shape
    trained: bool = True
    """A parameter that is not frozen."""
    parameter: bool = True
    """A parameter; else a float buffer, a statistic of BatchNorm."""


@dataclass(frozen=True)
class Sizes:
    """Sizes of a client's model, by which what a method sends grows."""

    parameters: int
    """p, shared entries that are parameters."""
    shared: int
    """d, all shared entries."""
    private: int
    """Entries that are not shared, but for statistics that ``training.batchnorm_statistics local`` keeps in place."""
    features: int
    """h, inputs of the model's ``head``; 0 without one."""
    classes: int


@dataclass(frozen=True)
class ExtraBytes:
    """Bytes that a method sends beside ``delta`` and its first message: all that depends on the run's course."""

    up: int = 0
    """An update's ``extra``."""
    down_later: int = 0
    """Bytes that messages are longer by from the server's first step on."""
    down_per_client: int = 0
    """Bytes that a message is longer by for each other client that has been in a server step."""


@dataclass(frozen=True)
class Traits:
    """Facts about a method that the engine has to know besides its functions."""

    weighted_mean: bool = False
    """``aggregate`` needs only ``updates.mean()``: the engine then adds updates up where clients are trained."""
    plain_mean: bool = False
    """``updates.mean()`` counts every client once, (1/n) Σ Δ_i, whatever its number of samples: ``updates.samples`` are
    ones. With ``weighted_mean`` too it is a sum along the same tree; single steps of clients are then not merged."""
    single_step_gradient: bool = False
    """A single local step from ``message.parameters`` θ is −rate · (∇f(θ) + weight decay · θ), f the client's mean
    cross-entropy: with sgd the engine may then compute the step of several clients as one
    (raysim/client_side/fedsgd.py), where ``weighted_mean`` holds and clients keep nothing. Updates of such steps have
    the metrics ``steps`` and ``train_loss`` alone. The engine tries a step on two clients before the first round, and
    merges none if it differs.
    """
    personal: bool = False
    """Every client has a model of its own: it is judged on the client's own test set."""
    judged_apart: bool = False
    """Clients are judged by models that the server's mean has no part in: a task trains w_i = ``message.parameters`` +
    ``update.delta`` over the shared entries, with all others at their initial values, and another model for judging.
    The loss decomposition then takes w_i and their mean (raysim/engine/loss_decomposition.py)."""
    pooled: bool = False
    """The method trains on the union of all clients' data: the engine hands it one client that holds everything."""
    needs_sgd: str = ""
    """Why ``training.optimizer`` must be sgd with a fresh state, as the end of a sentence about the method; empty: it
    need not."""
    intervals: Callable[[int, int, np.random.Generator], list[int]] | None = None
    """Local epochs of every round, from E epochs in all, f a round (E ≥ f ≥ 1) and a random stream; None: f in each of
    ⌊E/f⌋ rounds. ``schedule.intervals`` goes before it."""
    uses_rounds: bool = False
    """``aggregate`` reads ``context.rounds``: a run of it cannot be trained longer than it was planned for."""
    first_rounds: int = 0
    """Rounds that only prepare what the method is for, which begins after them: a run that has no more says so."""
    same_task: bool = False
    """All clients must have the same inputs and classes: ``train`` compares them by class, or makes several models, and
    of what clients of different tasks cannot share one is kept, as ``train`` leaves it."""
    local_tests: bool = False
    """Every client must have a local test set, as ``train`` looks at it."""
    classification: bool = False
    """The mathematics is that of classification with cross-entropy (margins, prototypes of classes): data with another
    objective is refused."""
    node_graphs: bool = False
    """``train`` looks at the graph behind a client's nodes: data of other inputs is refused."""
    upload_bytes: Callable[[Sequence[SharedTensor]], int] | None = None
    """Bytes of the change of these shared tensors on its way to the server; None: 4 for each entry."""
    extra_bytes: Callable[[Sizes], ExtraBytes] | None = None
    """Bytes sent besides; None: updates have no ``extra``, and all messages are as long as the first.
    Virtual time charges it before any training, and a run says where it was wrong."""
    one_vector: bool = False
    """A client sends its ``delta`` and nothing else but metrics: compression, noise of the client and attacks may
    change it on its way. ``weighted_mean`` implies it."""
    one_model: bool = False
    """A message is one model, the same for all clients, and nothing else: it may be compressed
    (``compression.down``). ``weighted_mean`` implies it."""
    reads: str = ""
    """Which metrics, made of a client's data, ``aggregate`` reads beside ``delta``, as the end of a sentence about the
    method: the noise of ``privacy.kind local`` and ``dp-sgd`` does not hide them. Numbers of samples and steps count as
    public. Empty: none."""
    model_parts: tuple[str, ...] = ()
    """Prefixes of the names of the model's parameters, at least one parameter for each: ``("body.", "head.")``, say."""
    head_of_body: bool = False
    """The method takes the model apart: it must compute ``head(body(x))`` and no more, which the engine tries on two
    samples before the first round."""
    reports: tuple[str, ...] = ()
    """Columns of the rounds table that ``aggregate`` adds (``context.report.round``): those that ``evaluation.measure``
    may name."""
    empty_rounds: bool = False
    """``aggregate`` also takes a step without any update. Otherwise a round whose Poisson cohort has no client
    (``schedule.sampling poisson``) leaves the server's state as it is."""
    plain_training: bool = False
    """``train`` looks at samples only in one call of ``train_epochs`` with the loss of the data: DP-SGD may make its
    steps (``privacy.kind dp-sgd``)."""

    takes_stale: bool = False
    """``aggregate`` can take updates that start from earlier versions of the server's state, also a single one: every
    ``timing.mode`` will do. ``weighted_mean`` implies it."""
    needs_several: str = ""
    """Why a server step must take updates of several clients, as the end of a sentence about the method: they may start
    from earlier versions, but ``timing.mode async``, which takes one a step, is refused."""

    @property
    def stale(self) -> Literal["any", "several", "none"]:
        """Which steps with updates from earlier versions of the server's state the method can take.

        ``any``; ``several``: of at least two clients; ``none``: it declares nothing, and such runs are refused.
        """
        if self.needs_several:
            return "several"
        return "any" if self.weighted_mean or self.takes_stale else "none"

    def bytes_up(self, tensors: Sequence[SharedTensor]) -> int:
        """Bytes of the change of these shared tensors on its way to the server."""
        if self.upload_bytes is not None:
            return self.upload_bytes(tensors)
        return 4 * sum(math.prod(tensor.shape) for tensor in tensors)
