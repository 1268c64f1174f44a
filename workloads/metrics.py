"""Evaluation as statistics that add up, and fairness over clients."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import nan
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from workloads.errors import WorkloadError

if TYPE_CHECKING:
    from torch import Tensor, nn

    from workloads.federated_data import Batch

# Each sample's loss is rounded to a multiple of this, so that float64 sums of up to 2**53 of them (a loss sum under
# 5e8) are exact, and thus the same in any order and grouping.
LOSS_UNIT = 2.0**-24


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Sums over evaluated samples; `a + b` is the evaluation of both sets of samples, whatever the grouping.

    `loss_sum` is the sum over samples of their loss (nats), `confusion` int64 [classes, classes] with a row for each
    true and a column for each predicted class. `scores` float32 [samples, classes] (probabilities) and `labels` int64
    [samples] are there only if they were asked for: they do not add up, they queue up.
    """

    loss_sum: float
    confusion: NDArray[np.int64]
    scores: NDArray[np.float32] | None = None
    labels: NDArray[np.int64] | None = None

    @classmethod
    def empty(cls, classes: int) -> Evaluation:
        """The evaluation of no samples, the zero of `+`."""
        return cls(0.0, np.zeros((classes, classes), dtype=np.int64))

    @property
    def samples(self) -> int:
        """Number of samples that were judged."""
        return int(self.confusion.sum())

    @property
    def accuracy(self) -> float:
        """The fraction of samples predicted right; nan if there are none."""
        return int(np.trace(self.confusion)) / self.samples if self.samples else nan

    @property
    def loss(self) -> float:
        """The mean loss of a sample; nan if there are none."""
        return self.loss_sum / self.samples if self.samples else nan

    @property
    def balanced_accuracy(self) -> float:
        """The mean recall over the classes that have samples; nan if none has."""
        support = self.confusion.sum(axis=1)
        present = support > 0
        return float(np.mean(np.diag(self.confusion)[present] / support[present])) if present.any() else nan

    @property
    def auc(self) -> float:
        """Area under the ROC curve, each class against the rest, averaged over classes; nan if none can be drawn.

        A class that no sample or every sample has, has no curve and does not count.
        """
        from sklearn.metrics import roc_auc_score

        if self.scores is None or self.labels is None:
            return nan
        present = [label for label in np.unique(self.labels).tolist() if not (self.labels == label).all()]
        areas = [roc_auc_score(self.labels == label, self.scores[:, label]) for label in present]
        return float(np.mean(areas)) if areas else nan

    def to_metrics(self) -> dict[str, float]:
        """The figures to log, by name."""
        return {
            "samples": float(self.samples),
            "loss": self.loss,
            "accuracy": self.accuracy,
            "balanced_accuracy": self.balanced_accuracy,
        }

    def __add__(self, other: Evaluation) -> Evaluation:
        if self.confusion.shape != other.confusion.shape:
            raise ValueError(
                f"Evaluations over {len(self.confusion)} and {len(other.confusion)} classes cannot be added."
            )
        whole = Evaluation(self.loss_sum + other.loss_sum, self.confusion + other.confusion)
        parts = [part for part in (self, other) if part.samples]
        if not parts or any(part.scores is None for part in parts):
            return whole
        return replace(
            whole,
            scores=np.concatenate([part.scores for part in parts if part.scores is not None]),
            labels=np.concatenate([part.labels for part in parts if part.labels is not None]),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Evaluation):
            return NotImplemented
        return self.loss_sum == other.loss_sum and np.array_equal(self.confusion, other.confusion)

    __hash__ = None  # type: ignore[assignment]  # an array has none


def evaluate(module: nn.Module, batches: Iterable[Batch], classes: int, scores: bool = False) -> Evaluation:
    """Cross-entropy and confusion of a module over batches, on the batches' device.

    The module maps `batch.x` to logits [B, classes]; WorkloadError if it does not. It is evaluated in evaluation mode
    and left, all its parts, in the mode it was in. For given logits the result does not depend on how the samples are
    cut into batches: see LOSS_UNIT. With `scores` the probabilities of every sample are kept, for `Evaluation.auc`.
    """
    import torch
    from torch.nn.functional import cross_entropy

    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    loss_sum: Tensor | None = None
    confusion: Tensor | None = None
    kept: list[tuple[Tensor, Tensor]] = []
    try:
        with torch.inference_mode():
            for batch in batches:
                logits, labels = module(batch.x), batch.y
                if logits.shape != (len(labels), classes):
                    raise WorkloadError(
                        f"The model gave logits of shape {tuple(logits.shape)} for {len(labels)} samples and {classes}"
                        " classes. Build it for the workload's own task."
                    )
                losses = cross_entropy(logits.double(), labels, reduction="none")
                batch_loss = (losses / LOSS_UNIT).round().sum()
                cells = torch.bincount(labels * classes + logits.argmax(dim=1), minlength=classes * classes)
                loss_sum = batch_loss if loss_sum is None else loss_sum + batch_loss
                confusion = cells if confusion is None else confusion + cells
                if scores:
                    kept.append((logits.softmax(dim=1), labels))
    finally:
        for part, training in modes:
            part.training = training
    if loss_sum is None or confusion is None:
        return Evaluation.empty(classes)
    table = confusion.cpu().numpy().reshape(classes, classes)
    found = Evaluation(loss_sum.item() * LOSS_UNIT, table)
    if not scores:
        return found
    probabilities = torch.cat([part for part, _ in kept]).float().cpu().numpy()
    return replace(found, scores=probabilities, labels=torch.cat([labels for _, labels in kept]).cpu().numpy())


def fairness(accuracies: NDArray[np.floating]) -> dict[str, float]:
    """How evenly the clients are served: `mean`, `standard_deviation` (population) and `worst_decile`.

    `accuracies` is one value a client, [n]; clients without a value (nan: no test samples) do not count. The worst
    decile is the mean over the ⌊n/10⌋ lowest, at least one. All three are nan if no client has a value.
    """
    values = np.sort(accuracies[~np.isnan(accuracies)].astype(np.float64))
    if not len(values):
        return {"mean": nan, "standard_deviation": nan, "worst_decile": nan}
    return {
        "mean": float(values.mean()),
        "standard_deviation": float(values.std()),
        "worst_decile": float(values[: max(1, len(values) // 10)].mean()),
    }
