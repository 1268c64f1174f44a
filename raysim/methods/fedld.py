"""FedLD: margin control in local training, principal gradients on the server."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from aggregators.gram import combine
from aggregators.means import sample_weights
from aggregators.principal_gradients import axes_kept, principal_weights
from raysim.method import Context, GlobalModel, Message, Traits, Update, Updates, Vector

if TYPE_CHECKING:
    from raysim.parameters import FlatModel
    from raysim.training import Loss, Visit
    from workloads.data import ClientData

Margin = Literal["l2", "log", "softmax_log"]


@dataclass(frozen=True)
class Server:
    parameters: Vector
    """θ [d]."""
    boundaries: NDArray[np.int64]
    """The pieces of the shared parameters that are projected each by itself [pieces + 1]: ``aggregate`` does not see
    the model."""


@dataclass(frozen=True)
class FedLD(GlobalModel):
    """FedLD: penalise large logits in local training, turn clients' updates towards their principal directions.

    Source: Zeng et al. 2024, Tackling data heterogeneity in federated learning via loss decomposition: Eq. 3 (margin
    control) and Eq. 4-7 (aggregators/principal_gradients.py). Ablations: ``--margin_weight 0`` is without margin
    control, ``--principal false`` without principal gradients, which leaves the mean by samples; with both it is
    FedAvg, bit for bit.

    Departures from the print: as printed the calibration of Eq. 6 has no effect (⟨g, v⟩v does not change with the sign
    of v); ``conflict drop`` gives it the effect that the text claims. BatchNorm's running statistics are no gradients:
    they are averaged by samples, at rate 1. The reported ``train_loss`` includes the margin term.
    """

    margin_weight: float = field(
        default=0.03,
        metadata={
            "help": "weight λ of margin control; 0 switches it off (Retina 0.1/0.03/0.03 by split, COVID-FL 0.01)",
            "low": 0.0,
            "source": "Zeng et al. 2024, Eq. 3 and section 3.1",
        },
    )
    margin: Margin = field(
        default="l2",
        metadata={
            "help": "l2: mean of |z|² over a batch's logits z (the paper); log: mean of log(1 + |z|²); "
            "softmax_log: log(1 + |softmax(z)|²) of the whole batch (the authors' code)",
            "source": "Zeng et al. 2024, Eq. 3",
        },
    )
    principal: bool = field(
        default=True,
        metadata={
            "help": "aggregate by principal gradients; false: mean by samples, and the options below but the server's "
            "learning rate mean nothing",
            "source": "Zeng et al. 2024, Eq. 4-7",
        },
    )
    share: float = field(
        default=0.8,
        metadata={
            "help": "share of the axes that are kept: K = max(1, floor(share * participants))",
            "low": 0.0,
            "low_open": True,
            "high": 1.0,
            "source": "Zeng et al. 2024, section 3.1",
        },
    )
    conflict: Literal["keep", "drop"] = field(
        default="keep",
        metadata={
            "help": "a client's component against the calibrated direction of an axis: keep (as printed) or drop it",
            "source": "Zeng et al. 2024, Eq. 6-7",
        },
    )
    granularity: Literal["model", "layer"] = field(
        default="model",
        metadata={"help": "project whole updates (the paper) or each parameter tensor alone (the authors' code)"},
    )
    server_learning_rate: float = field(
        default=1.0, metadata={"help": "factor of the aggregated update", "low": 0.0, "low_open": True}
    )

    @property
    def traits(self) -> Traits:
        return Traits(weighted_mean=not self.principal)

    def init_server(self, model: FlatModel) -> Server:
        stops = [model.shared_parameter_count]
        if self.granularity == "layer":
            tensors = [entry for entry in model.entries if entry.parameter and entry.shared]
            stops = [entry.stop - tensors[0].start for entry in tensors]
        return Server(model.take_shared(), np.array([0, *stops], np.int64))

    def message(self, server: Server, client: int) -> Message:
        return Message(server.parameters)

    def train(
        self, model: FlatModel, data: ClientData, message: Message, kept: Any, visit: Visit
    ) -> tuple[Update, None]:
        from raysim.training import cross_entropy, train_epochs

        model.load_shared(message.parameters)
        loss = margin_control(self.margin, self.margin_weight) if self.margin_weight else cross_entropy
        trained = train_epochs(model, data.train, visit, loss)
        return Update(model.change_from(message.parameters), trained.metrics()), None

    def aggregate(self, server: Server, updates: Updates, context: Context) -> Server:
        step = self._principal_step(server, updates, context) if self.principal else updates.mean()
        step[: context.shared_parameter_count] *= np.float32(self.server_learning_rate)
        # In place, since the step is ours: one vector of length d less at the peak.
        return replace(server, parameters=np.add(server.parameters, step, out=step))

    def _principal_step(self, server: Server, updates: Updates, context: Context) -> Vector:
        """The mean of the revised updates; as -g_i are the updates, this is what is added to θ."""
        boundaries = server.boundaries.tolist()
        weights = principal_weights(updates.deltas, boundaries, self.share, self.conflict)
        context.report("principal_axes", float(axes_kept(len(updates.clients), self.share)))
        if self.granularity == "model":
            context.report_clients("weight", weights[0])
        coefficients = [w.tolist() for w in weights] + [sample_weights(updates.samples).tolist()]
        return combine(updates.deltas, [*boundaries, server.parameters.size], coefficients)


def margin_control(margin: Margin, weight: float) -> Loss:
    """Eq. 3: cross-entropy plus ``weight`` times the margin term of a mini-batch's logits [B, classes]."""
    import torch
    from torch.nn.functional import cross_entropy

    def loss(module: torch.nn.Module, batch: Any) -> torch.Tensor:
        logits = module(batch.x)
        if margin == "l2":
            term = logits.square().sum(dim=1).mean()
        elif margin == "log":
            term = logits.square().sum(dim=1).log1p().mean()
        else:
            term = logits.softmax(dim=1).square().sum().log1p()
        value: torch.Tensor = cross_entropy(logits, batch.y) + weight * term
        return value

    return loss


METHOD = FedLD
