from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score, confusion_matrix, log_loss
from torch import Tensor, nn

from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import Batch
from raysim.workloads.metrics import EvaluationSums, evaluate, fairness


def samples(count: int, classes: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(count, classes, generator=generator)
    return logits, torch.randint(0, classes, (count,), generator=generator)


def test_by_hand() -> None:
    # rows: class 0 three of four right, class 1 one of two, class 2 has no samples.
    evaluation = EvaluationSums(3.0, np.array([[3, 1, 0], [0, 1, 1], [0, 0, 0]], dtype=np.int64))
    assert (evaluation.samples, evaluation.loss, evaluation.accuracy) == (6, 0.5, 4 / 6)
    assert evaluation.balanced_accuracy == (3 / 4 + 1 / 2) / 2


def test_evaluate_by_hand() -> None:
    logits = torch.tensor([[0.0, math.log(3)], [0.0, 0.0], [math.log(3), 0.0]])
    evaluation = evaluate(nn.Identity(), [Batch(logits, torch.tensor([1, 0, 1]))], classes=2)
    assert evaluation.confusion.tolist() == [[1, 0], [1, 1]]
    assert evaluation.loss_sum == pytest.approx(-math.log(3 / 4) - math.log(1 / 2) - math.log(1 / 4), abs=2e-7)


def test_against_scikit_learn() -> None:
    logits, labels = samples(500, 5, seed=1)
    labels[labels == 3] = 2  # a class without samples, which is still predicted
    evaluation = evaluate(nn.Identity(), [Batch(logits, labels)], classes=5)
    true, predicted = labels.numpy(), logits.argmax(1).numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn mentions the class without samples
        assert evaluation.balanced_accuracy == pytest.approx(balanced_accuracy_score(true, predicted), rel=1e-12)
    assert evaluation.accuracy == pytest.approx(accuracy_score(true, predicted), rel=1e-12)
    assert np.array_equal(evaluation.confusion, confusion_matrix(true, predicted, labels=range(5)))
    expected = log_loss(true, logits.double().softmax(1).numpy(), labels=range(5))
    assert evaluation.loss == pytest.approx(expected, abs=1e-7)


@settings(deadline=None, max_examples=50)
@given(
    cuts=st.lists(st.integers(0, 60), max_size=8),
    groups=st.lists(st.integers(0, 2), min_size=9, max_size=9),
    seed=st.integers(0, 1000),
)
def test_any_grouping_into_batches_and_chunks_gives_the_same_bits(
    cuts: list[int], groups: list[int], seed: int
) -> None:
    logits, labels = samples(60, 4, seed)
    whole = evaluate(nn.Identity(), [Batch(logits, labels)], classes=4)
    bounds = [0, *sorted(cuts), 60]
    chunks: list[list[Batch]] = [[], [], []]
    for start, stop, group in zip(bounds[:-1], bounds[1:], groups, strict=False):
        chunks[group].append(Batch(logits[start:stop], labels[start:stop]))
    parts = [evaluate(nn.Identity(), chunk, classes=4) for chunk in chunks]
    assert (parts[0] + parts[1]) + parts[2] == whole
    assert parts[2] + (parts[1] + parts[0]) == whole


def test_evaluation_mode_inside_and_every_mode_restored() -> None:
    class Recorder(nn.Module):
        def forward(self, inputs: Tensor) -> Tensor:
            assert not self.training and torch.is_inference_mode_enabled()
            return inputs

    frozen = nn.BatchNorm1d(3).eval()  # must not come back in training mode
    module = nn.Sequential(frozen, nn.Dropout(0.9), Recorder())
    statistics = frozen.state_dict()["running_mean"].clone()
    logits, labels = samples(20, 3, seed=0)
    evaluate(module, [Batch(logits, labels)], classes=3)
    assert [part.training for part in module] == [False, True, True] and module.training
    assert torch.equal(frozen.state_dict()["running_mean"], statistics)
    with pytest.raises(WorkloadError, match="logits of shape"):
        evaluate(module, [Batch(logits, labels)], classes=4)
    assert [part.training for part in module] == [False, True, True] and module.training


def test_nan_loss_is_seen() -> None:
    evaluation = evaluate(nn.Identity(), [Batch(torch.tensor([[math.nan, 0.0]]), torch.tensor([0]))], classes=2)
    assert math.isnan(evaluation.loss) and evaluation.samples == 1


def test_no_samples() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluation = evaluate(nn.Identity(), [], classes=3)
        assert evaluation.samples == 0
        assert all(math.isnan(value) for value in (evaluation.loss, evaluation.accuracy, evaluation.balanced_accuracy))
        assert all(math.isnan(value) for value in fairness(np.array([])).values())
        assert all(math.isnan(value) for value in fairness(np.array([math.nan])).values())


def test_other_numbers_of_classes_do_not_add() -> None:
    with pytest.raises(ValueError, match="3 and 4 classes"):
        evaluate(nn.Identity(), [], classes=3) + evaluate(nn.Identity(), [], classes=4)


def test_fairness_by_hand() -> None:
    result = fairness(np.array([0.9, 0.5, 0.7, math.nan, 0.3]))
    assert result == pytest.approx({"mean": 0.6, "standard_deviation": math.sqrt(0.05), "worst_decile": 0.3})
    twenty = np.arange(20, 0, -1) / 20
    assert fairness(twenty)["worst_decile"] == pytest.approx((1 / 20 + 2 / 20) / 2)


def test_auc_by_hand_and_over_chunks() -> None:
    # Class 1 against the rest: scores .9 .4 for positives, .6 .1 for negatives: 3 of 4 pairs in order. Two classes, so
    # class 0 against the rest is the same: 0.75.
    scores = np.array([[0.1, 0.9], [0.6, 0.4], [0.4, 0.6], [0.9, 0.1]], np.float32)
    labels = np.array([1, 1, 0, 0])
    table = np.array([[1, 1], [1, 1]])
    whole = EvaluationSums(1.0, table, scores, labels)
    assert whole.auc == pytest.approx(0.75)
    halves = [EvaluationSums(0.5, np.array([[0, 0], [1, 1]]), scores[:2], labels[:2])]
    halves.append(EvaluationSums(0.5, np.array([[1, 1], [0, 0]]), scores[2:], labels[2:]))
    assert math.isnan(halves[0].auc)
    assert (evaluate(nn.Identity(), [], classes=2) + halves[0] + halves[1]).auc == pytest.approx(0.75)
    assert math.isnan((halves[0] + EvaluationSums(0.5, halves[1].confusion)).auc)


def test_auc_of_three_classes_against_scikit_learn() -> None:
    from sklearn.metrics import roc_auc_score

    draw = np.random.default_rng(0)
    scores = draw.dirichlet(np.ones(3), 60).astype(np.float32)
    labels = draw.integers(0, 3, 60)
    found = EvaluationSums(0.0, np.diag(np.bincount(labels)), scores, labels).auc
    assert found == pytest.approx(roc_auc_score(labels, scores, multi_class="ovr"), abs=1e-12)


def test_auc_of_a_model_that_has_diverged_is_none() -> None:
    scores = np.array([[np.nan, np.nan], [0.5, 0.5]], np.float32)
    assert math.isnan(EvaluationSums(1.0, np.eye(2, dtype=np.int64), scores, np.array([0, 1])).auc)


def test_scores_are_kept_only_when_asked_for() -> None:
    module = torch.nn.Linear(2, 3)
    batch = Batch(torch.randn(5, 2), torch.tensor([0, 1, 2, 0, 1]))
    assert evaluate(module, [batch], 3).scores is None
    found = evaluate(module, [batch, batch], 3, scores=True)
    assert found.scores is not None and found.labels is not None
    assert found.scores.shape == (10, 3)
    assert np.allclose(found.scores.sum(axis=1), 1, atol=1e-6)
    assert found.labels.tolist() == [0, 1, 2, 0, 1] * 2
