"""The worker of a slot, which trains and judges clients: one model, cached data, nothing that outlives a client task.

A worker lives in every ClientActor and, for in-process runs, in the inline pool; both do client tasks with this code.
"""

from __future__ import annotations

import math
import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import threadpoolctl
import torch

from raysim import seeds
from raysim.client_side.drift import Drift, Moment
from raysim.client_side.generator_dropout import draw_from_generator
from raysim.client_side.misaligned_batch_norm import spare_misaligned
from raysim.client_side.model_parts import check_parts, check_types, extended
from raysim.client_side.pooling import spare_passes
from raysim.client_side.sharing import Sharing
from raysim.config.given_code import has_own_code
from raysim.flat_model import FlatModel
from raysim.method import NOTHING, Vector
from raysim.storage import pytree
from raysim.training.optimizers import kept_bytes
from raysim.training.portable_functions import take_over
from raysim.workloads.metrics import EvaluationSums, evaluate
from raysim.workloads.objective import squared_losses
from raysim.wrappers.judging import judging
from raysim.wrappers.wrapped import running_method

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig
    from raysim.method import ClientTask, Message, Update
    from raysim.workloads.federated_data import ClientData, Federation, InputSpec, Samples

CACHED_BYTES = 64 * 2**20
"""The data of clients that neither this round nor the one before asked for stay cached while all data take no more."""
SQUARED = "squared loss"
MOST_CACHED_BYTES = 2**31
"""Upper bound of the client-data cache in bytes, counted as float32; the least recently used client is evicted."""


@dataclass(frozen=True)
class ClientState:
    """All that a client keeps between its tasks; it travels and is saved as a whole.

    A method is given ``method`` and nothing else.
    """

    method: Any = None
    """Client state: the value that the method's ``init_client`` or last ``train`` returned."""
    private: Vector = field(default_factory=lambda: NOTHING)
    """The entries of its model that do not travel (:meth:`raysim.flat_model.FlatModel.take_private`), where clients
    share less than the method asks for (raysim/client_side/sharing.py); else empty."""
    optimizer: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """With ``training.optimizer_state kept``: the optimizer's moments at the end of its last training, by phase and
    trained parameters (:func:`raysim.training.local_sgd.train_epochs`); empty before the first, and otherwise."""


class Worker:
    """Models and data for client tasks on one device."""

    def __init__(self, config: RunConfig, federation: Federation, device: str = "cpu") -> None:
        take_over()
        self.config = config
        self.method = running_method(config, federation)
        self.federation = federation
        self._judging = judging(config, federation)
        self.objective = replace(
            self._judging.objective, margin_weight=config.training.margin, margin=config.training.margin_kind
        )
        self.device = device
        self.own_code = has_own_code(config)
        """Whether what it runs may draw from Python's and NumPy's global generators, and change the process."""
        self._models: dict[InputSpec, FlatModel] = {}
        self._data: OrderedDict[int, _Cached] = OrderedDict()
        self._cached_bytes = 0
        self._last_judged: _Judged | None = None
        self._moment = Moment()
        self._drift = Drift(config, federation)
        self._sharing = Sharing(config, self.method, federation, partial(new_module, config))
        if device != "cpu":
            # A task that is done again must give the same bits, so no algorithm may depend on timing.
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read at the first CUDA call
            torch.backends.cudnn.benchmark = False
            torch.use_deterministic_algorithms(True, warn_only=True)

    def model(self, client: int) -> FlatModel:
        """The client's model with its initial values."""
        model = self.built(client)
        model.reset()
        return model

    def built(self, client: int) -> FlatModel:
        """The client's model as the last task left it (built once for each kind of task)."""
        inputs = self.federation.input_spec(client)
        if inputs not in self._models:
            module = new_module(self.config, inputs)
            check_types(module)
            check_parts(self.config, [name for name, _ in module.named_parameters()])
            self._models[inputs] = FlatModel(module, self._sharing.names(module), self.device)
            if self.device != "cpu":
                spare_misaligned(module)
            elif self._models[inputs].channels_last:
                spare_passes(module)
            draw_from_generator(module)
        return self._models[inputs]

    def first_state(self, client: int) -> ClientState | None:
        """The client state before the client's first task; None where clients keep nothing."""
        model = self.model(client)
        private = model.take_private() if self._sharing.leaves_out else NOTHING
        with self.streams("init_client", 0, client):
            state = self.method.init_client(model)
        model.reset()
        keeps = state is not None or self._sharing.leaves_out or self.config.training.optimizer_state == "kept"
        return ClientState(state, private) if keeps else None

    def state_bytes(self, client: int) -> int:
        """About how large what a client keeps is."""
        parameters = self.built(client).parameters.numel()
        return pytree.nbytes(self.first_state(client)) + kept_bytes(self.config.training, parameters)

    def train(self, task: ClientTask, message: Message, state: ClientState | None) -> tuple[Update, ClientState | None]:
        """A client's task from a state as :meth:`first_state` or an earlier task gave it."""
        model = self.model(task.client)
        self._load_private(model, state)
        if state is not None:
            model.optimizer_states = dict(state.optimizer)
        own = None if state is None else state.method
        pytree.make_read_only(own)  # a task that fails leaves it as it was
        update, after = self.method.train(model, self.data(task.client), message, own, task)
        if own is None and after is not None:
            raise TypeError(
                f"train returned a {type(after).__name__} as the client's state, but init_client gave none, so that it "
                "would be lost. Write init_client, which gives the first one"
            )
        if state is None:
            return update, None
        private = model.take_private() if self._sharing.leaves_out else NOTHING
        return update, ClientState(after, private, model.optimizer_states)

    def deployed(self, client: int, message: Message, state: ClientState | None) -> FlatModel:
        """The model that the client is judged by; ``state`` is None before its first task."""
        if state is None:
            state = self.first_state(client)
        model = self.model(client)
        self._load_private(model, state)
        with self.streams("deploy", self._moment.round, client):
            self.method.deploy(model, message, None if state is None else state.method)
        return model

    def averaged(self, client: int, parameters: Vector, state: ClientState | None) -> FlatModel:
        """The model with these shared entries [d], all others at their initial values but for the private part."""
        model = self.model(client)
        self._load_private(model, state)
        model.load_shared(parameters)
        return model

    def judged(self, client: int, model: FlatModel, samples: Samples, scores: bool = False) -> EvaluationSums:
        """The evaluation of a client's model on test samples, with what the run's wrappers judge it by."""
        classes, size = self.federation.input_spec(client).classes, self.config.evaluation.batch_size
        with self.streams("evaluate", self._moment.round, client):
            found = evaluate(model.module, samples.batches(size), classes, scores, self.objective)
        return replace(found, further=self._judging.further(model.module, samples, size, classes))

    def judged_once(self, client: int, model: FlatModel, samples: Samples, scores: bool = False) -> EvaluationSums:
        """:meth:`judged`; where clients have one model and one test set, the first of them is judged for all.

        Equal bits of the model are what tells, and the same ``samples`` object. A personal method's model may hold more
        than its parameters, and code of a user's own may draw random numbers: these are judged client by client.
        """
        if self.own_code or self.method.traits.personal:
            return self.judged(client, model, samples, scores)
        known, bits = self._last_judged, model.buffer.view(torch.int32)
        if known is None or not known.is_of(model, bits, samples, scores):
            found = self.judged(client, model, samples, scores)
            known = self._last_judged = _Judged(model, bits.clone(), samples, scores, found)
        return known.found

    def losses(self, client: int, message: Message, state: ClientState | None) -> tuple[float, float]:
        """Mean loss on the client's training data, and mean of its samples' squared losses, with its deployed model."""
        model, objective = self.deployed(client, message, state), self.objective
        squared = replace(objective, metrics={SQUARED: partial(squared_losses, objective)})
        classes, size = self.federation.input_spec(client).classes, self.config.evaluation.batch_size
        with self.streams("losses", self._moment.round, client):
            samples = self.judged_data(client, state).train.batches(size)
            found = evaluate(model.module, samples, classes, objective=squared)
        return found.loss, found.figure(SQUARED)

    def streams(self, purpose: str, round: int, client: int = 0) -> AbstractContextManager[None]:
        """The global generators for one purpose, seeded; without code of a user's own nothing draws from them."""
        if not self.own_code:
            return nullcontext()
        return seeds.kept_streams(seeds.number(self.config.seed, purpose, round, client))

    def _load_private(self, model: FlatModel, state: ClientState | None) -> None:
        if self._sharing.leaves_out:
            assert state is not None, "a client with a private part has a state"
            model.load_private(state.private)

    def data(self, client: int) -> ClientData:
        """The client's samples as they are now, cached."""
        cached = self._data.pop(client, None)
        if cached is None:
            data = self.federation.client(client, self.device, channels_last=self.built(client).channels_last)
            cached = _Cached(data, 4 * data.samples * math.prod(self.federation.input_spec(client).input_shape))
            self._cached_bytes += cached.size
            while self._data:
                oldest = next(iter(self._data.values()))
                recent = oldest.round >= self._moment.round - 1
                if self._cached_bytes <= (MOST_CACHED_BYTES if recent else CACHED_BYTES):
                    break
                self._cached_bytes -= self._data.popitem(last=False)[1].size
        cached.round = self._moment.round
        self._data[client] = cached
        return self._drift.of_client(cached.data, self._moment)

    def judged_data(self, client: int, state: ClientState | None) -> ClientData:
        """The data that the client is judged on: its samples as they are now, or what the method makes of them.

        ``state`` is None before its first task, and where clients keep nothing: then its samples stay as they are.
        """
        data, change = self.data(client), getattr(self.method, "judged_data", None)
        return data if state is None or change is None else change(data, state.method)

    def global_test(self, start: int, stop: int) -> Samples:
        """Samples start to stop (exclusive) of the common test set as it is now."""
        return self._drift.of_test(self.federation.global_test(start, stop, self.device), self._moment)

    def at(self, moment: Moment) -> None:
        """Set the round and the virtual time of the calls that follow."""
        self._moment = moment


@dataclass
class _Cached:
    data: ClientData
    size: int
    """About what its training samples take as float32, a graph counted as one node."""
    round: int = 0
    """In which it was last asked for."""


@dataclass(frozen=True)
class _Judged:
    """An evaluation and all that it depends on."""

    model: FlatModel
    bits: torch.Tensor
    """Those of its parameters and buffers then, int32 [d]."""
    samples: Samples
    scores: bool
    found: EvaluationSums

    def is_of(self, model: FlatModel, bits: torch.Tensor, samples: Samples, scores: bool) -> bool:
        same = self.model is model and self.samples is samples and self.scores == scores
        return same and torch.equal(self.bits, bits)


def new_module(config: RunConfig, inputs: InputSpec) -> torch.nn.Module:
    """The config's model for a task, with its initial values and what the method adds to it."""
    with seeds.kept_streams(seeds.number(config.seed, "model")):
        return extended(config.method, config.model.build(inputs), config.seed)


@contextmanager
def fixed_threads(threads: int) -> Iterator[None]:
    """Run with this number of threads in torch and BLAS: a parallel sum's bits depend on their number."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with threadpoolctl.threadpool_limits(threads):
            # The limit above also reaches OpenMP, which torch uses: set its own number last.
            torch.set_num_threads(threads)
            yield
    finally:
        torch.set_num_threads(before)
