"""FedSSP: share generic spectral knowledge, keep structure and preferences personal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from raysim.aggregators.means import plain_mean
from raysim.method import (
    NOTHING,
    ClientTask,
    Context,
    FlatModel,
    Message,
    Module,
    Tensor,
    Traits,
    Update,
    Updates,
    Vector,
)
from raysim.methods._halves import PartlyShared
from raysim.traits import ExtraBytes, Sizes
from raysim.workloads.federated_data import Batch, ClientData
from raysim.workloads.objective import CLASSIFICATION, Objective
from raysim.workloads.option_types import Help, NonNegative, OnlyWith, PositiveShare

SPECTRAL_ENCODERS = ("body.eigenvalue_encoder.", "body.filter_encoder.")
PREFERENCE = "preference"
WITH_PREFERENCE = OnlyWith("method.preference", True)


@dataclass(frozen=True)
class Server:
    parameters: Vector
    """Shared vector [d]."""
    mean: Vector
    """μ̄, the mean over clients of their mean graph features [h]; empty before the first round's end."""


def mean_bytes(sizes: Sizes) -> ExtraBytes:
    """Mean graph features, which the first message lacks."""
    return ExtraBytes(up=4 * sizes.features, down_later=4 * sizes.features)


@dataclass(frozen=True)
class FedSSP(PartlyShared[Server]):
    """FedSSP: average the spectral encoders only (GSKS), learn a feature preference for each client (PGPA).

    Source: Tan et al. 2024, FedSSP: federated graph learning with spectral knowledge and personalized preference,
    section 4. GSKS: the eigenvalue encoder and the filter encoder are averaged with uniform weights 1/n, everything
    else never leaves its client. PGPA: a client's vector q is added to its graph features h before the head, in
    training and in evaluation, and is learned by plain SGD; the loss is

        CE(head(h + q), y) + τ ½ mean((μ − μ̄)²),   μ ← (1 − β) stopgrad(μ) + β mean_batch(h)

    with μ anew in every local epoch; the server returns the uniform mean μ̄ of the μ that the clients end with, so the
    term is absent in the first round. Open in the print: τ, and how μ starts. Both defaults are those of the authors'
    code; a scan with three seeds could not tell them from τ = 0 (docs/fedssp-regularizer.md). From zero once an epoch
    (``start zero``) the first batch's μ is β of a mean while μ̄ is nearly a whole one, so the term makes features grow.

    Table 3's rows: ``--share nothing --preference false`` (Local with this model), ``--share everything --preference
    false`` (FedAvg of all but node encoder and head, uniform), ``--share rest --preference false``, ``--preference
    false`` (GSKS alone), ``--share everything`` (PGPA alone: its print has FedAvg under it), and the defaults.

    Running statistics of BatchNorm stay local, as in the authors' code, which averages named parameters only.

    ``client_weights samples`` and ``consensus static`` are no rows of the paper; its text argues for the defaults.

    Columns of the rounds table, for what the term does: ``feature_scale`` and ``feature_spread``, root mean squares of
    the clients' μ_k and of μ_k − μ̄ over clients and features, and ``regularizer``, the clients' mean of the term.
    """

    share: Annotated[
        Literal["spectral", "nothing", "everything", "rest"],
        Help(
            "what is averaged: the two spectral encoders (GSKS), nothing, everything (but node encoder and head"
            " where clients' tasks differ), or everything but the spectral encoders",
            "FedSSP, section 4.1 and Table 3",
        ),
    ] = "spectral"
    share_statistics: Annotated[
        bool,
        Help("average BatchNorm's running statistics of what is shared too"),
        OnlyWith("method.share", "spectral", "everything", "rest"),
    ] = False
    preference: Annotated[bool, Help("personalized preference (PGPA)", "FedSSP, section 4.2")] = True
    preference_rate: Annotated[
        NonNegative,
        Help(
            "SGD learning rate of the preference q; 0: q stays zero, as in the authors' code on a GPU, whose numbers "
            "are those of the regularizer alone",
            "FedSSP, 4.2",
        ),
        WITH_PREFERENCE,
    ] = 0.005
    regularization: Annotated[
        NonNegative,
        Help("weight τ of ½ mean((μ - μ̄)²), from the second round on", "FedSSP, 4.2"),
        WITH_PREFERENCE,
    ] = 100.0
    momentum: Annotated[
        PositiveShare,
        Help("weight β of a batch in the running mean μ of graph features", "FedSSP, 4.2"),
        WITH_PREFERENCE,
    ] = 0.5
    start: Annotated[
        Literal["first", "zero", "every"],
        Help(
            "μ starts, in every epoch, as its first batch's mean, or from zero; every: from zero in every"
            " batch, as in the authors' code (docs/fedssp-regularizer.md has what that changes)"
        ),
        WITH_PREFERENCE,
    ] = "every"

    client_weights: Annotated[
        Literal["uniform", "samples"],
        Help(
            "weights of the clients in the mean of what is shared: uniform (the paper argues against the other), or "
            "their samples; the mean graph features μ̄ are always uniform",
            "FedSSP, section 4.1",
        ),
    ] = "uniform"
    consensus: Annotated[
        Literal["renewed", "static"],
        Help(
            "μ̄, which the preference's term pulls to: renewed after every round, or static, that of the first round",
            "renewed: FedSSP, section 4.2; static: its discussion",
        ),
        WITH_PREFERENCE,
    ] = "renewed"

    defaults: ClassVar[Mapping[str, object]] = {"workload.name": "toy-graphs", "model.name": "spectral"}

    @property
    def traits(self) -> Traits:
        parts = () if self.share == "nothing" else SPECTRAL_ENCODERS
        own = ("feature_scale", "feature_spread", "regularizer") if self.preference else ()
        return Traits(
            personal=True,
            classification=self.preference,
            head_of_body=self.preference,
            model_parts=parts,
            reports=own,
            extra_bytes=mean_bytes if self.preference else None,
            one_vector=not self.preference and self.share != "nothing",
            takes_stale=not self.preference,
            needs_several="whose mean graph features are those of several clients" if self.preference else "",
        )

    def extend(self, module: Module) -> Module:
        if not self.preference:
            return module
        from raysim.workloads.models.classifier import WithPreference

        return WithPreference(module)

    def shared_names(self, module: Module) -> Collection[str]:
        if self.share == "nothing":
            return ()
        parameters = {name for name, _ in module.named_parameters() if name != PREFERENCE}
        spectral = {name for name in parameters if name.startswith(SPECTRAL_ENCODERS)}
        shared = {"spectral": spectral, "everything": parameters, "rest": parameters - spectral}[self.share]
        if self.share_statistics:
            layers = {name.rpartition(".")[0] for name in shared}
            shared |= {
                name
                for name, tensor in module.named_buffers()
                if tensor.is_floating_point() and name.rpartition(".")[0] in layers
            }
        return shared

    def init_server(self, model: FlatModel) -> Server:
        return Server(model.take_shared(), NOTHING)

    def message(self, server: Server, client: int) -> Message:
        return Message(server.parameters, {"mean": server.mean} if self.preference else {})

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: Vector, task: ClientTask
    ) -> tuple[Update, Vector]:
        from raysim.flat_model import to_numpy
        from raysim.training.local_sgd import Phase, train_epochs

        if not self.preference:
            return super().train(model, data, message, state, task)
        self.deploy(model, message, state)
        regularizer = Regularizer(self, message.extra["mean"], model.device, task.objective)
        trained = train_epochs(
            model,
            data.train,
            task,
            regularizer.loss,
            add_gradient=preference_step(model, self.preference_rate),
            trains=lambda name: name != PREFERENCE,
            phase=Phase(before_epoch=regularizer.reset),
        )
        terms, mean = regularizer.terms, regularizer.mean
        assert mean is not None, "a client task has at least one batch"
        metrics = trained.metrics() | {"regularizer": float(sum(terms)) / len(terms) if terms else 0.0}
        return Update(model.change_from(message.parameters), metrics, {"mean": to_numpy(mean)}), model.take_private()

    def aggregate(self, server: Server, updates: Updates, context: Context) -> Server:
        step = plain_mean(updates.deltas) if self.client_weights == "uniform" else updates.mean()
        parameters = server.parameters + step
        if not self.preference:
            return Server(parameters, NOTHING)
        means = [update.extra["mean"] for update in updates.each]
        frozen = self.consensus == "static" and len(server.mean) > 0
        mean = server.mean if frozen else plain_mean(means)
        context.report.round("feature_scale", root_mean_square(np.stack(means)))
        context.report.round("feature_spread", root_mean_square(np.stack(means) - mean))
        context.report.round("regularizer", float(updates.metric("regularizer").mean()))
        return Server(parameters, mean)


def root_mean_square(values: NDArray[np.float32]) -> float:
    """Over all entries."""
    return float(np.sqrt(np.mean(np.square(values, dtype=np.float64))))


class Regularizer:
    """The loss of one client task, CE(head(h + q), y) + τ ½ mean((μ − μ̄)²); without μ̄, in the first round, CE alone."""

    def __init__(self, method: FedSSP, global_mean: Vector, device: str, objective: Objective = CLASSIFICATION) -> None:
        from raysim.flat_model import as_tensor

        self.method, self.objective = method, objective
        self.target = as_tensor(global_mean).to(device) if len(global_mean) else None
        self.mean: Tensor | None = None
        """μ [h]."""
        self.terms: list[Tensor] = []
        """Every batch's second term, for the clients table."""

    def reset(self) -> None:
        self.mean = None

    def next_mean(self, features: Tensor) -> Tensor:
        """The new μ [h], which lets gradients into the batch's part only."""
        new, share = features.float().mean(dim=0), self.method.momentum
        if self.mean is not None and self.method.start != "every":
            new = share * new + (1.0 - share) * self.mean
        elif self.method.start != "first":
            new = share * new
        self.mean = new.detach()
        return new

    def loss(self, module: Any, batch: Batch) -> Tensor:
        features = module.body(batch.x)
        value = self.objective.mean_loss(module.head(features + module.preference), batch.y)
        mean = self.next_mean(features)
        if self.target is None:
            return value
        term = self.method.regularization * 0.5 * (mean - self.target).square().mean()
        self.terms.append(term.detach())
        return value + term


def preference_step(model: FlatModel, learning_rate: float) -> Callable[[FlatModel], None]:
    """Plain SGD on q after each backward pass; whatever trains the rest (AdamW, say) does not touch it."""
    (preference,) = model.select(lambda name: name == PREFERENCE)

    def step(_: FlatModel) -> None:
        assert preference.grad is not None
        preference.data.add_(preference.grad, alpha=-learning_rate)

    return step


METHOD = FedSSP
