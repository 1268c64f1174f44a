"""The objective of a run's models: the loss that they are trained for, and the metrics that they are judged by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from raysim.workloads.errors import WorkloadError

if TYPE_CHECKING:
    from torch import Tensor


Figure = Callable[[Any, Any], Any]
"""(outputs, labels) of a mini-batch -> one number for each of its samples [B], or their mean. Of a regression the
outputs are in the labels' shape."""
Margin = Literal["l2", "log", "softmax_log"]
Kind = Literal["classification", "sequences", "multilabel", "regression"]


@dataclass(frozen=True, eq=False)
class Objective:
    """The objective of a federation's models; a federation without one (attribute ``objective``) has classes to tell.

    ========== ==================== ========================== =============== ================
    kind       outputs              labels                     loss            own figures
    ========== ==================== ========================== =============== ================
    classification [B, classes]     whole numbers [B]          cross-entropy   accuracy, balanced_accuracy
    sequences  [B, T, classes]      whole numbers [B, T]       cross-entropy   accuracy (of positions)
    multilabel [B, L]               0 or 1 [B, L]              binary c.-e.    label_accuracy
    regression [B, D] or [B]        numbers [B, D] or [B]      squared error   absolute_error
    ========== ==================== ========================== =============== ================
    """

    kind: Kind = "classification"
    loss: Figure | None = None
    """In the place of the kind's own loss."""
    metrics: Mapping[str, Figure] = field(default_factory=dict)
    """Further figures of the tables, by name."""
    margin_weight: float = 0.0
    """Weight of :func:`margin_term` in the training loss of a mini-batch; figures are without it."""
    margin: Margin = "l2"

    @property
    def plain(self) -> bool:
        """Whether it is classification with cross-entropy alone."""
        return self.kind == "classification" and self.loss is None and self.margin_weight == 0

    @property
    def columns(self) -> tuple[str, ...]:
        """The figures of the rounds table, by name."""
        return (*_COLUMNS[self.kind], *self.metrics)

    @property
    def accurate(self) -> bool:
        """Whether there is an accuracy."""
        return "accuracy" in self.columns

    def mean_loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """The loss of a mini-batch, a scalar."""
        outputs = self.like_labels(outputs, labels)
        if self.loss is not None:
            value: Tensor = self.loss(outputs, labels)
            return value if value.ndim == 0 else value.mean()
        own = self._own_loss(outputs, labels, "mean")
        return own + self.margin_weight * margin_term(self.margin, outputs) if self.margin_weight else own

    def figures(self, outputs: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """Name -> one number for each sample, or their mean: ``loss``, the kind's own figures and ``metrics``.

        The loss of the kind is in double precision.
        """
        outputs = self.like_labels(outputs, labels)
        if self.loss is not None:
            losses: Tensor = self.loss(outputs, labels)
        else:
            losses = self._own_loss(outputs.double(), labels, "none").view_as(labels)
        metrics = {name: metric(outputs, labels) for name, metric in self.metrics.items()}
        return {"loss": losses, **self._own(outputs, labels), **metrics}

    def like_labels(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Outputs as losses and metrics get them: of a regression in the labels' shape, [B] in the place of [B, 1].

        Else ``outputs - labels`` would be [B, B]. WorkloadError for outputs of another number.
        """
        if self.kind != "regression":
            return outputs
        self.check(outputs, labels, 0)
        return outputs.reshape(labels.shape)

    def _own_loss(self, outputs: Tensor, labels: Tensor, reduction: Literal["mean", "none"]) -> Tensor:
        """The loss of the kind: a scalar, or one for each entry of the labels, in the outputs' precision."""
        from torch.nn import functional

        if self.kind == "classification":
            return functional.cross_entropy(outputs, labels, reduction=reduction)
        if self.kind == "sequences":
            return functional.cross_entropy(outputs.flatten(0, 1), labels.flatten(), reduction=reduction)
        if self.kind == "multilabel":
            return functional.binary_cross_entropy_with_logits(outputs, labels.to(outputs.dtype), reduction=reduction)
        return functional.mse_loss(outputs, labels, reduction=reduction)

    def _own(self, outputs: Tensor, labels: Tensor) -> dict[str, Tensor]:
        if self.kind == "sequences":
            return {"accuracy": (outputs.argmax(dim=2) == labels).double()}
        if self.kind == "multilabel":
            return {"label_accuracy": ((outputs > 0) == (labels > 0)).double()}
        if self.kind == "regression":
            return {"absolute_error": (outputs.double() - labels.double()).abs()}
        return {}

    def check(self, outputs: Any, labels: Tensor, classes: int) -> None:
        """WorkloadError unless outputs have the shape that the labels of a mini-batch ask for."""
        shape: Any = tuple(outputs.shape) if hasattr(outputs, "shape") else type(outputs).__name__
        allowed = self.shapes(tuple(labels.shape), classes)
        if shape not in allowed:
            wanted = " or ".join(map(str, allowed))
            what = "outputs" if self.kind == "regression" else "logits"
            raise WorkloadError(
                f"the model gave {what} of shape {shape} for labels of shape {tuple(labels.shape)}, and {self.kind} "
                f"asks for {wanted}. Build it for the workload's own task."
            )

    def shapes(self, labels: tuple[int, ...], classes: int) -> list[tuple[int, ...]]:
        """The shapes that outputs may have, for labels of this shape."""
        if self.kind == "classification":
            return [(labels[0], classes)]
        if self.kind == "sequences":
            return [(*labels, classes)]
        return [labels, (*labels, 1)] if len(labels) == 1 and self.kind == "regression" else [labels]


def squared_losses(objective: Objective, outputs: Tensor, labels: Tensor) -> Tensor:
    """The square of each sample's loss [B], the mean over its outputs where it has several; or of a batch's mean."""
    losses = objective.figures(outputs, labels)["loss"].double()
    return (losses.flatten(1).mean(dim=1) if losses.ndim > 1 else losses).square()


_COLUMNS: Mapping[Kind, tuple[str, ...]] = {
    "classification": ("accuracy", "loss", "balanced_accuracy"),
    "sequences": ("accuracy", "loss"),
    "multilabel": ("label_accuracy", "loss"),
    "regression": ("loss", "absolute_error"),
}
CLASSIFICATION = Objective()


def margin_term(margin: Margin, logits: Tensor) -> Tensor:
    """Margin control of a mini-batch's logits [B, classes], a scalar (Zeng et al. 2024, FedLD, Eq. 3).

    l2: mean of |z|² over the logits z of a sample; log: mean of log(1 + |z|²); softmax_log: log(1 + |softmax(z)|²) of
    the whole batch, as in the authors' code.
    """
    if margin == "l2":
        return logits.square().sum(dim=1).mean()
    if margin == "log":
        return logits.square().sum(dim=1).log1p().mean()
    return logits.softmax(dim=1).square().sum().log1p()
