"""Gradients beside those of the training loop's own steps, against numbers worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from raysim.config.privacy import SamplePrivacy
from raysim.config.sections import Training
from raysim.flat_model import FlatModel, all_names
from raysim.method import ClientTask
from raysim.training.gradients import batch_gradient, full_gradient, restored
from raysim.training.local_sgd import train_epochs
from raysim.workloads.arrays.array_samples import ArraySamples
from raysim.workloads.federated_data import Batch
from tests.raysim.methods.by_hand import InOrder
from tests.raysim.training.test_local_sgd import points, scalar_model, squared_error

TASK = ClientTask(0, 1, 0, 1, 0.1, Training(learning_rate=0.1, batch_size=1))


def batch(inputs: list[float], targets: list[float]) -> Batch:
    return Batch(torch.tensor(inputs).float()[:, None], torch.tensor(targets).float())


def normalized() -> FlatModel:
    """y = w · BatchNorm(x) of one number x, w = 2, running mean 0 and variance 1; BatchNorm has no parameters."""
    module = torch.nn.Sequential(torch.nn.BatchNorm1d(1, affine=False, eps=1e-12), torch.nn.Linear(1, 1, bias=False))
    module[1].weight.data.fill_(2.0)  # type: ignore[operator]
    return FlatModel(module, all_names(module))


def climb(model: FlatModel) -> None:
    """Half a unit uphill."""
    model.parameters.add_(model.gradient / model.gradient.norm(), alpha=0.5)


def test_a_full_gradient_weighs_batches_by_their_samples() -> None:
    # w = 1. (1, 3) and (2, 1): ((1 - 3)·1 + (2 - 1)·2) / 2 = 0. (3, 0): 3·3 = 9. Of three samples: 9/3, not 9/2.
    model = scalar_model(1.0)
    samples = InOrder(batch([1, 2], [3, 1]), batch([3], [0]))
    assert full_gradient(model, samples, TASK, squared_error).tolist() == [3.0]
    assert batch_gradient(model, samples.given[0], TASK, squared_error).tolist() == [0.0]
    assert (model.parameters.tolist(), samples.passes) == ([1.0], 1)


def test_a_full_gradient_does_not_depend_on_the_size_of_its_batches() -> None:
    """Of seven samples too, whose last of batches of three would be of a single sample."""
    draws = np.random.default_rng(0)
    samples = ArraySamples(draws.normal(size=(7, 4)).astype(np.float32), draws.integers(0, 3, 7), "cpu")
    module = torch.nn.Linear(4, 3)
    model, task = FlatModel(module, all_names(module)), replace(TASK, training=Training(batch_size=2), classes=3)
    found = [full_gradient(model, samples, replace(task, evaluation_batch=size)) for size in (500, 3)]
    (whole,) = samples.batches(7)
    expected = torch.autograd.grad(task.loss(module, whole), list(module.parameters()))
    for gradient in found:
        np.testing.assert_allclose(gradient, torch.cat([each.flatten() for each in expected]), atol=1e-6)


def test_a_full_gradient_leaves_no_trace_in_batch_norm() -> None:
    # Inputs 1 and 3: mean 2, variance 1, so BatchNorm gives ∓1, outputs are ∓2, and targets 0: ((-2)(-1) + 2·1)/2.
    model, samples = normalized(), InOrder(batch([1, 3], [0, 0]))
    before = model.buffer.clone()
    assert full_gradient(model, samples, TASK, squared_error).tolist() == pytest.approx([2.0])
    assert torch.equal(model.buffer, before) and int(model.module[0].num_batches_tracked) == 0  # type: ignore[index]
    # Frozen, it passes inputs on as they are: outputs 2 and 6, (2·1 + 6·3)/2.
    frozen = replace(TASK, training=replace(TASK.training, freeze_batchnorm=True))
    assert full_gradient(model, samples, frozen, squared_error).tolist() == pytest.approx([10.0])


def test_restored_puts_everything_back_after_an_error_too() -> None:
    model = normalized()
    before = model.buffer.clone()
    with pytest.raises(ZeroDivisionError), restored(model):
        model.module(torch.tensor([[1.0], [5.0]]))
        model.parameters.add_(1)
        raise ZeroDivisionError
    assert torch.equal(model.buffer, before) and int(model.module[0].num_batches_tracked) == 0  # type: ignore[index]


def test_two_steps_along_gradients_at_shifted_points() -> None:
    # w = 1. (1, 3): uphill of -2 is 1/2, where the gradient is (1/2 - 3)·1 = -5/2: w = 1.25. Loss (1 - 3)²/2 = 2.
    # (2, 1): gradient (2.5 - 1)·2 = 3, at 1.75 (3.5 - 1)·2 = 5: w = 0.75. Loss 1.5²/2 = 1.125.
    model = scalar_model(1.0)
    trained = train_epochs(model, points((1, 3), (2, 1)), TASK, squared_error, gradient_at=climb)
    assert float(model.buffer) == pytest.approx(0.75, abs=1e-6)
    assert trained.loss == pytest.approx((2 + 1.125) / 2)


def test_what_is_added_is_added_to_the_gradient_at_the_shifted_point() -> None:
    # As the first step above, with (w - 3) added at w = 1 itself: -5/2 - 2, w = 1.45.
    model, seen = scalar_model(1.0), list[float]()

    def add(model: FlatModel) -> None:
        seen.append(float(model.gradient))
        model.gradient.add_(model.parameters - 3)

    train_epochs(model, points((1, 3)), TASK, squared_error, gradient_at=climb, add_gradient=add)
    assert seen == pytest.approx([-2.5]) and float(model.buffer) == pytest.approx(1.45)


def test_the_pass_at_a_shifted_point_leaves_no_trace_in_batch_norm() -> None:
    one, other = normalized(), normalized()
    samples = InOrder(batch([1, 3], [0, 0]))
    train_epochs(one, samples, TASK, squared_error, gradient_at=climb)
    train_epochs(other, samples, TASK, squared_error)
    assert one.buffer[1:].tolist() == pytest.approx(other.buffer[1:].tolist())
    assert other.buffer[1:].tolist() == pytest.approx([0.2, 1.1])  # 0.1 of the mean 2; 0.9 · 1 + 0.1 · 2, unbiased
    assert int(one.module[0].num_batches_tracked) == 1  # type: ignore[index]


def test_a_shift_sees_the_gradient_of_its_own_mini_batch_alone() -> None:
    """Also of parameters that are not trained, whose gradients the optimizer does not clear."""
    module = torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False))
    model, seen = FlatModel(module, all_names(module)), list[torch.Tensor]()
    model.buffer.fill_(1.0)

    def look(model: FlatModel) -> None:
        seen.append(model.gradient.clone())

    still = replace(TASK, learning_rate=0.0, local_epochs=2)
    train_epochs(model, points((1, 3)), still, squared_error, gradient_at=look, trains=lambda name: name == "1.weight")
    assert [each.tolist() for each in seen] == [[-2.0, -2.0]] * 2


def test_private_steps_have_no_shifted_points() -> None:
    private = replace(TASK, sample_privacy=SamplePrivacy(1.0, 1.0))
    with pytest.raises(RuntimeError, match="a second gradient of a step looks at samples again"):
        train_epochs(scalar_model(1.0), points((1, 3)), private, squared_error, gradient_at=climb)
