"""Evaluation as statistics that add up, and fairness over clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError
from raysim.workloads.objective import CLASSIFICATION, Objective

if TYPE_CHECKING:
    from torch import Tensor, nn

    from raysim.workloads.federated_data import Batch

# Each sample's loss is rounded to a multiple of this, so that float64 sums of up to 2**53 of them (a loss sum under
# 5e8) are exact, and thus the same in any order and grouping.
LOSS_UNIT = 2.0**-24


@dataclass(frozen=True, eq=False)
class EvaluationSums:
    """Sums over evaluated samples; `a + b` is the evaluation of both sets of samples, whatever the grouping.

    `loss_sum` is the sum over samples of their loss (nats), `confusion` int64 [classes, classes] with a row for each
    true and a column for each predicted class, empty where there are no classes. `sums` holds the sums of further
    figures by name, `count` the number of samples where no confusion counts them, `further` evaluations of other
    samples by the name of the figure that their accuracy is. `scores` float32 [samples, classes]
    (probabilities) and `labels` int64 [samples] are there only if they were asked for: they do not add up, they queue
    up.
    """

    loss_sum: float
    confusion: NDArray[np.int64]
    scores: NDArray[np.float32] | None = None
    labels: NDArray[np.int64] | None = None
    sums: Mapping[str, float] = field(default_factory=dict)
    count: int = 0
    further: Mapping[str, EvaluationSums] = field(default_factory=dict)

    @property
    def samples(self) -> int:
        """Number of samples that were judged."""
        return self.count or int(self.confusion.sum())

    def figure(self, name: str) -> float:
        """A figure of :attr:`raysim.workloads.objective.Objective.columns`, or `auc`; nan if it was not judged."""
        if name in self.further:
            return self.further[name].accuracy
        if name in self.sums:
            return self.sums[name] / self.samples if self.samples else nan
        return float(getattr(self, name, nan))

    @property
    def accuracy(self) -> float:
        """The fraction of samples predicted right; nan if there are none."""
        if "accuracy" in self.sums:
            return self.sums["accuracy"] / self.samples
        return int(np.trace(self.confusion)) / self.samples if self.confusion.any() else nan

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
        if self.scores is None or self.labels is None or not np.isfinite(self.scores).all():
            return nan
        present = [label for label in np.unique(self.labels).tolist() if not (self.labels == label).all()]
        areas = [area_under_curve(self.scores[:, label], self.labels == label) for label in present]
        return float(np.mean(areas)) if areas else nan

    def __add__(self, other: EvaluationSums) -> EvaluationSums:
        if self.confusion.shape != other.confusion.shape:
            raise ValueError(
                f"Evaluations over {len(self.confusion)} and {len(other.confusion)} classes cannot be added."
            )
        sums = {name: self.sums.get(name, 0.0) + other.sums.get(name, 0.0) for name in {**self.sums, **other.sums}}
        both = {name: found + other.further[name] for name, found in self.further.items() if name in other.further}
        whole = EvaluationSums(
            self.loss_sum + other.loss_sum,
            self.confusion + other.confusion,
            sums=sums,
            count=self.count + other.count,
            further={**self.further, **other.further, **both},
        )
        parts = [part for part in (self, other) if part.samples]
        if not parts or any(part.scores is None for part in parts):
            return whole
        return replace(
            whole,
            scores=np.concatenate([part.scores for part in parts if part.scores is not None]),
            labels=np.concatenate([part.labels for part in parts if part.labels is not None]),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EvaluationSums):
            return NotImplemented
        own = (self.loss_sum, self.sums, self.count, self.further)
        sums = own == (other.loss_sum, other.sums, other.count, other.further)
        return sums and np.array_equal(self.confusion, other.confusion)

    __hash__ = None  # type: ignore[assignment]  # an array has none


def evaluate(
    module: nn.Module,
    batches: Iterable[Batch],
    classes: int,
    scores: bool = False,
    objective: Objective = CLASSIFICATION,
) -> EvaluationSums:
    """Loss and figures of a module over batches, on the batches' device; of classes also the confusion.

    The module maps `batch.x` to outputs as the objective asks for, logits [B, classes] by default; WorkloadError if it
    does not. It is evaluated in evaluation mode and left, all its parts, in the mode it was in. For given outputs the
    result does not depend on how the samples are cut into batches, unless a loss or metric that was given returns the
    mean of a batch: see LOSS_UNIT. With `scores` the probabilities of every sample are kept, for `EvaluationSums.auc`.
    """
    import torch

    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    sums: dict[str, Tensor] = {}
    confusion: Tensor | None = None
    count = 0
    kept: list[tuple[Tensor, Tensor]] = []
    try:
        with torch.inference_mode():
            for batch in batches:
                outputs, labels = module(batch.x), batch.y
                objective.check(outputs, labels, classes)
                for name, values in objective.figures(outputs, labels).items():
                    found = _exact_sum(values, len(labels), name)
                    sums[name] = sums[name] + found if name in sums else found
                count += len(labels)
                if objective.kind == "classification":
                    cells = torch.bincount(labels * classes + outputs.argmax(dim=1), minlength=classes * classes)
                    confusion = cells if confusion is None else confusion + cells
                if scores:
                    kept.append((outputs.softmax(dim=1), labels))
    finally:
        for part, training in modes:
            part.training = training
    table = np.zeros((0, 0) if objective.kind != "classification" else (classes, classes), dtype=np.int64)
    if not sums:
        return EvaluationSums(0.0, table)
    if confusion is not None:
        table = confusion.cpu().numpy().reshape(classes, classes)
    totals = {name: value.item() * LOSS_UNIT for name, value in sums.items()}
    loss_sum = totals.pop("loss")
    judged = EvaluationSums(loss_sum, table, sums=totals, count=0 if confusion is not None else count)
    if not scores:
        return judged
    probabilities = torch.cat([part for part, _ in kept]).float().cpu().numpy()
    return replace(judged, scores=probabilities, labels=torch.cat([labels for _, labels in kept]).cpu().numpy())


def area_under_curve(scores: NDArray[np.floating[Any]], positive: NDArray[np.bool_]) -> float:
    """The share of pairs of a positive and a negative sample in which the positive one scores higher; ties count half.

    Scores and marks are [samples]. It is the area under the ROC curve (Hanley and McNeil 1982), here without the
    curve: thousands of clients are judged in a round.
    """
    negatives, positives = np.sort(scores[~positive]), scores[positive]
    below = np.searchsorted(negatives, positives, "left").sum()
    not_above = np.searchsorted(negatives, positives, "right").sum()
    return float((below + not_above) / (2 * len(negatives) * len(positives)))


def _exact_sum(values: Tensor, samples: int, name: str) -> Tensor:
    """The sum over samples of a figure, in LOSS_UNITs: of each one's mean over its outputs, or of the batch's mean."""
    if values.ndim and len(values) != samples:
        raise WorkloadError(
            f"{name}: shape {tuple(values.shape)} for {samples} samples; return one number for each sample, or one "
            "for all of them (their mean)"
        )
    if values.ndim > 1:
        values = values.double().flatten(1).mean(dim=1)
    units = (values.double() / LOSS_UNIT).round()
    return units.sum() if values.ndim else ((values.double() * samples) / LOSS_UNIT).round()


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
