"""The contract of a federated learning method.

A method is one frozen dataclass in one file of ``raysim/methods``: its fields are its hyper-parameters (and so its
command-line options), its functions are both halves of the algorithm. The server's half (``init_server``, ``message``,
``aggregate``) runs in the driver, the client's half (``init_client``, ``train``, ``deploy``) in an actor that serves
many clients. State goes in and comes out: nothing may live in ``self``, a module or a file, so that a client task can
be repeated anywhere with the same bits.

Both halves are told numbers of clients and samples (``task.cohort``, ``context.cohort``: raysim/cohort.py), since
|S|/N and p_i differ from 1 and m_i/m of the cohort wherever clients are sampled or join late. The least there is to a
method, federated averaging, is ``raysim/methods/fedavg.py``; a new one starts as a copy of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from raysim import seeds
from raysim.aggregators.means import sample_weights, weighted_sum
from raysim.cohort import UNKNOWN, Cohort
from raysim.config.privacy import SamplePrivacy
from raysim.config.sections import Training
from raysim.storage import pytree
from raysim.traits import Shape as Shape
from raysim.traits import SharedTensor as SharedTensor
from raysim.traits import Traits as Traits
from raysim.workloads.federated_data import Batch, ClientData
from raysim.workloads.objective import CLASSIFICATION, Objective

if TYPE_CHECKING:
    from torch import Generator as Generator
    from torch import Tensor as Tensor
    from torch.nn import Module as Module

    from raysim.flat_model import FlatModel as FlatModel
else:  # Methods import these names for their annotations alone: they must not wait for torch, which starts slowly.
    FlatModel = Generator = Module = Tensor = Any

Loss = Callable[[Module, Batch], Tensor]
"""The scalar loss of a mini-batch, for ``train_epochs``."""
Vector = NDArray[np.float32]
ServerState = TypeVar("ServerState")
ClientState = TypeVar("ClientState")
NOTHING: Vector = np.zeros(0, np.float32)
"""Empty vector: the delta of a model that shares nothing, or of an update already summed."""


@dataclass(frozen=True)
class ClientTask:
    """The arguments of ``train`` besides model, data, message and client state; the same values give the same bits."""

    seed: int
    round: int
    """Counted from 1."""
    client: int
    local_epochs: int
    learning_rate: float
    """For this round: the decay over rounds is already in it."""
    training: Training
    """Options of the clients' local training."""
    classes: int = 0
    """Number of classes of this client's data."""
    objective: Objective = CLASSIFICATION
    """The objective that the model is trained for."""
    evaluation_batch: int = 500
    """Batch size where ``train`` evaluates."""
    cohort: Cohort = UNKNOWN
    """Numbers of clients and samples of this round."""
    sample_privacy: SamplePrivacy | None = None
    """With ``privacy.kind dp-sgd``: how ``train_epochs`` clips and noises the gradients of samples."""

    def loss(self, module: Module, batch: Batch) -> Tensor:
        """The mean loss of a mini-batch that the data asks for: cross-entropy where there are classes to tell."""
        return self.objective.mean_loss(module(batch.x), batch.y)

    def generator(self, purpose: str) -> Generator:
        """The random stream of this task for one purpose."""
        return seeds.torch_generator(self.seed, purpose, self.round, self.client)


@dataclass(frozen=True)
class Message:
    """The message that the server sends to a client; an array that is the *same object* in several is sent once."""

    parameters: Vector
    """The shared entries [d] (``FlatModel.shared``); empty where nothing is shared."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Anything else, as arrays, numbers and containers of these."""
    parameter_bytes: int | None = None
    """Bytes of the parameters on the wire; None: 4 for each."""

    @property
    def nbytes(self) -> int:
        """Bytes on the wire."""
        own = self.parameters.nbytes if self.parameter_bytes is None else self.parameter_bytes
        return own + pytree.nbytes(self.extra)


@dataclass(frozen=True)
class Update:
    """The update that a client returns to the server."""

    delta: Vector
    """θ_i − θ over the shared entries [d]; empty where nothing is shared."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Numbers for the clients table and for ``aggregate``: train_loss, steps, …"""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further results of the method, as arrays."""


@dataclass(frozen=True)
class Updates:
    """The updates of one round, in client order; no trace of when or where each was computed."""

    clients: tuple[int, ...]
    samples: NDArray[np.int64]
    """m_i, each client's training samples [n]; ones with ``Traits.plain_mean`` or ``timing.buffer_weights uniform``."""
    each: tuple[Update, ...]
    """One per client; with ``Traits.weighted_mean`` their ``delta`` is empty and ``weighted_total`` is set instead."""
    weighted_total: Vector | None = None
    """Σ_i m_i Δ_i [d], added along a fixed tree over the clients (:class:`raysim.aggregators.means.PairwiseSum`)."""
    robust_mean: Vector | None = None
    """Result of a robust rule or of a sum with noise, in the place of the mean [d] (raysim/wrappers/wrapped.py)."""
    staleness: tuple[int, ...] = ()
    """Server steps τ since each client was sent its message [n]; by them ``delta`` has been weighted. 0 in rounds."""
    unweighted: tuple[Vector, ...] | None = None
    """Every client's own θ_i − θ_τ [d], as it was before it was weighted; None: as ``deltas``, in rounds."""
    bases: tuple[Vector, ...] | None = None
    """θ_τ [d], from which each client started; None: from what it would be sent now, in rounds."""
    learning_rates: tuple[float, ...] | None = None
    """Learning rate of every client's task [n]; None: that of the context, in rounds."""

    def mean(self) -> Vector:
        """Σ_i m_i Δ_i / Σ_i m_i, as a float32 vector [d]; or what takes its place."""
        if self.robust_mean is not None:
            return self.robust_mean
        if self.weighted_total is None:
            return weighted_sum(self.deltas, sample_weights(self.samples).tolist())
        return weighted_sum([self.weighted_total], [1.0 / float(self.samples.sum())])

    @property
    def deltas(self) -> Sequence[Vector]:
        """Every client's Δ_i [d]."""
        if self.weighted_total is not None or self.robust_mean is not None:
            raise RuntimeError("updates were added up already: with Traits(weighted_mean=True) there is only mean()")
        return [update.delta for update in self.each]

    @property
    def changes(self) -> Sequence[Vector]:
        """Every client's own Δ_i [d], not weighted by staleness: for what is read off the lengths of updates."""
        return self.deltas if self.unweighted is None else self.unweighted

    def metric(self, name: str) -> NDArray[np.float64]:
        """One metric of every client [n]."""
        return np.array([update.metrics[name] for update in self.each], dtype=np.float64)


class Report:
    """Numbers that ``aggregate`` reports of its round: columns of the tables."""

    def __init__(self) -> None:
        self.round_columns: dict[str, float | str] = {}
        self.client_columns: dict[str, NDArray[np.float64]] = {}

    def round(self, name: str, value: float) -> None:
        """Add a column to this round's row of the rounds table."""
        self.round_columns[name] = value

    def clients(self, name: str, values: NDArray[np.float64]) -> None:
        """Add a column [n] to this round's rows of the clients table (``weight``, say)."""
        self.client_columns[name] = values


@dataclass(frozen=True)
class Context:
    """Facts of the round that ``aggregate`` may look at, and the report that it may write to."""

    seed: int
    round: int
    """Counted from 1."""
    rounds: int
    """Rounds of the whole run, for methods whose ``traits.uses_rounds`` say that they read it."""
    learning_rate: float
    """The clients' learning rate in this round."""
    shared_parameter_count: int
    """Number of leading entries of a shared vector that are parameters; the rest are buffers (raysim/flat_model.py)."""
    training: Training = field(default_factory=Training)
    """Options of the clients' local training."""
    cohort: Cohort = UNKNOWN
    """Numbers of clients and samples, the same that every client task of the round was given."""
    tensors: tuple[SharedTensor, ...] = ()
    """The shared tensors, in the order of their entries in a shared vector."""
    report: Report = field(default_factory=Report, compare=False)

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Shapes of the shared tensors, in that order."""
        return tuple(tensor.shape for tensor in self.tensors)


class Method(Protocol[ServerState, ClientState]):
    """A federated method: its traits and its functions; the text of this module says where each function runs.

    A method names its two states: ``class FedPAC(Method[Server, None])``. ``ClientState`` is None where clients keep
    nothing. States are arrays, numbers, dataclasses and containers of these. ``defaults`` and what has a body here may
    be left out.
    """

    defaults: ClassVar[Mapping[str, object]] = {}
    """Other defaults of options outside the method, by full path: ``{"training.optimizer": "sgd"}``."""

    @property
    def traits(self) -> Traits:
        """Facts that the engine has to know; a ``ClassVar``, or a property where they depend on hyper-parameters."""
        ...

    def extend(self, module: Module) -> Module:
        """The module that takes the place of the user's freshly built model everywhere; by default the model itself.

        What it holds lies in the flat buffer like all else, ``shared_names`` decides what of it travels, and its
        ``forward`` is the prediction that clients are judged by. It keeps the model's ``body`` and ``head`` under their
        names. Parts that fit one task only (a second head) it names, beside the model's own, in an attribute
        ``task_specific`` (workloads/models/classifier.py). All clients have the same random values of it.
        """
        return module

    def shared_names(self, module: Module) -> Collection[str]:
        """Names of the parameters and float buffers that the server and the clients exchange."""
        ...

    def init_server(self, model: FlatModel) -> ServerState:
        """The server's first state (driver)."""
        ...

    def init_client(self, model: FlatModel) -> ClientState:
        """A client's state before its first task; None where clients keep nothing (client actor)."""
        ...

    def message(self, server: ServerState, client: int) -> Message:
        """Make the message that this client receives (driver)."""
        ...

    def started_from(self, message: Message, update: Update) -> Vector:
        """The vector [d] in a client's message of which its ``update.delta`` is a change (driver)."""
        return message.parameters

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: ClientState, task: ClientTask
    ) -> tuple[Update, ClientState]:
        """Local training of one client: its update, and what it keeps (client actor).

        ``model`` comes with its initial values, and is left with the client's whole trained model θ_i: that is what
        the loss decomposition judges (raysim/engine/loss_decomposition.py), but for ``Traits.judged_apart``.
        """
        ...

    def aggregate(self, server: ServerState, updates: Updates, context: Context) -> ServerState:
        """The server's next state from the round's updates, which come in client order (driver)."""
        ...

    def deploy(self, model: FlatModel, message: Message, state: ClientState) -> None:
        """Put the model that this client is judged by into ``model`` (client actor)."""
        ...

    def judged_data(self, data: ClientData, state: ClientState) -> ClientData:
        """The samples that a client with a state is judged on, if a method changes their inputs (client actor)."""
        return data


class WholeModel(Method[ServerState, ClientState], Protocol[ServerState, ClientState]):
    """Base of methods that exchange the whole model, by which every client is judged as it was received."""

    def shared_names(self, module: Module) -> Collection[str]:
        from raysim.flat_model import all_names

        return all_names(module)

    def deploy(self, model: FlatModel, message: Message, state: ClientState) -> None:
        model.load_shared(message.parameters)


class GlobalModel(WholeModel[Vector, None], Protocol):
    """Base of methods whose server state is one global model, the shared vector, and whose clients keep nothing.

    Such a method writes ``traits``, ``train`` and ``aggregate``.
    """

    def init_server(self, model: FlatModel) -> Vector:
        return model.take_shared()

    def init_client(self, model: FlatModel) -> None:
        return None

    def message(self, server: Vector, client: int) -> Message:
        return Message(server)
