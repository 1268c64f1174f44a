"""Losses and figures of every kind of task, worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import Batch
from raysim.workloads.metrics import LOSS_UNIT, EvaluationSums, evaluate
from raysim.workloads.objective import Kind, Objective

OUTPUTS: dict[Kind, torch.Tensor] = {
    "classification": torch.tensor([[0.0, 0.0], [0.0, np.log(3.0)]]),
    "sequences": torch.tensor([[[0.0, 0.0], [0.0, np.log(3.0)]], [[np.log(3.0), 0.0], [np.log(3.0), 0.0]]]),
    "multilabel": torch.tensor([[0.0, np.log(3.0)], [-np.log(3.0), np.log(3.0)]]),
    "regression": torch.tensor([[1.0], [-2.0]]),
}
LABELS: dict[Kind, torch.Tensor] = {
    "classification": torch.tensor([0, 1]),
    "sequences": torch.tensor([[0, 1], [0, 1]]),
    "multilabel": torch.tensor([[1, 1], [0, 0]]),
    "regression": torch.tensor([3.0, -2.5]),
}
HALF, QUARTER, MOST = np.log(2), np.log(4), np.log(4 / 3)
LOSSES: dict[Kind, float] = {
    "classification": (HALF + MOST) / 2,
    "sequences": (HALF + MOST + MOST + QUARTER) / 4,
    "multilabel": (HALF + MOST + MOST + QUARTER) / 4,
    "regression": (4.0 + 0.25) / 2,
}


def judged(kind: Kind, size: int = 2, **given: object) -> EvaluationSums:
    def batches() -> Iterator[Batch]:
        for start in range(0, 2, size):
            yield Batch(OUTPUTS[kind][start : start + size], LABELS[kind][start : start + size])

    return evaluate(torch.nn.Identity(), batches(), 2, objective=Objective(kind, **given))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", LOSSES)
def test_the_loss_in_training_and_in_evaluation_is_that_by_hand(kind: Kind) -> None:
    assert Objective(kind).mean_loss(OUTPUTS[kind], LABELS[kind]).item() == pytest.approx(LOSSES[kind], rel=1e-6)
    assert judged(kind).loss == pytest.approx(LOSSES[kind], abs=LOSS_UNIT)
    losses = Objective(kind).figures(OUTPUTS[kind], LABELS[kind])["loss"]
    assert losses.dtype == torch.float64 and losses.shape == LABELS[kind].shape


def test_every_kind_has_its_own_figures() -> None:
    assert judged("classification").accuracy == 1.0
    assert judged("sequences").figure("accuracy") == 0.75
    assert judged("multilabel").figure("label_accuracy") == 0.5  # an output of 0 decides for 0
    assert judged("regression").figure("absolute_error") == 1.25
    assert np.isnan(judged("regression").accuracy)
    assert [Objective(kind).accurate for kind in LOSSES] == [True, True, False, False]


@pytest.mark.parametrize("kind", LOSSES)
def test_sums_do_not_depend_on_batches_or_order(kind: Kind) -> None:
    metrics = {"largest": lambda outputs, labels: outputs.reshape(len(labels), -1).max(dim=1).values}
    whole, single = judged(kind, metrics=metrics), judged(kind, size=1, metrics=metrics)
    assert whole == single and whole.samples == 2
    assert (single + whole).figure("largest") == whole.figure("largest")
    assert whole + EvaluationSums(0.0, whole.confusion * 0) == whole


def test_a_loss_of_ones_own_may_be_of_samples_or_of_the_batch() -> None:
    def each(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return (outputs - labels).abs()

    for loss in (each, lambda outputs, labels: each(outputs, labels).mean()):
        assert judged("regression", loss=loss).loss == 1.25
        assert Objective("regression", loss).mean_loss(OUTPUTS["regression"], LABELS["regression"]).item() == 1.25
    with pytest.raises(WorkloadError, match=r"loss: shape \(3,\) for 2 samples"):
        judged("regression", loss=lambda outputs, labels: torch.zeros(3))


@pytest.mark.parametrize("shape", [(2,), (2, 1)])
def test_outputs_of_a_regression_reach_a_loss_in_the_shape_of_the_labels(shape: tuple[int, ...]) -> None:
    """Not broadcast to all pairs of a sample's output and another's label, whose mean square would be 10.375."""
    outputs, labels = OUTPUTS["regression"].reshape(shape), LABELS["regression"]
    own = Objective("regression", torch.nn.functional.mse_loss, {"bias": lambda found, wanted: found - wanted})
    assert own.mean_loss(outputs, labels).item() == (4.0 + 0.25) / 2
    assert own.mean_loss(outputs.flatten()[:, None], labels[:, None]).item() == (4.0 + 0.25) / 2
    assert own.figures(outputs, labels)["bias"].tolist() == [-2.0, 0.5]
    with pytest.raises(WorkloadError, match=r"outputs of shape \(2, 2\) for labels of shape \(2,\)"):
        own.mean_loss(torch.zeros(2, 2), labels)


def test_outputs_of_another_shape_are_refused() -> None:
    with pytest.raises(WorkloadError, match=r"shape \(2, 2\) .* regression asks for \(2,\) or \(2, 1\)"):
        Objective("regression").check(OUTPUTS["classification"], LABELS["regression"], 1)
