"""DP-SGD: per-sample gradients against a loop of single samples, noise, Poisson batches, and whole trainings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from raysim.config.privacy import SamplePrivacy
from raysim.config.sections import Training
from raysim.flat_model import FlatModel, all_names
from raysim.method import ClientTask
from raysim.training import private_gradient
from raysim.training.local_sgd import Phase, train_epochs
from raysim.training.private_gradient import PrivateGradient, poisson_batches, poisson_sampling
from raysim.workloads.arrays.array_samples import ArraySamples
from raysim.workloads.federated_data import Batch

COUNT, CLIP = 7, 1.25
X, Y = torch.randn(COUNT, 4, generator=torch.Generator().manual_seed(3)), torch.arange(COUNT) % 3
SAMPLES = ArraySamples(X.numpy(), Y.numpy(), "cpu")


def small_model() -> FlatModel:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))
    return FlatModel(module, all_names(module))


def private_task(noise: float, training: Training) -> ClientTask:
    return ClientTask(0, 1, 2, 1, training.learning_rate, training, sample_privacy=SamplePrivacy(CLIP, noise))


@pytest.mark.parametrize("rows", [2**24, 3 * 43, 1])
def test_is_the_loop_over_single_samples(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Σ_b g_b · min(1, C / ‖g_b‖) / B in one piece, in pieces of three samples, and one by one; some are cut."""
    monkeypatch.setattr(private_gradient, "VALUES", rows)
    model, task = small_model(), private_task(0.0, Training(batch_size=5))
    expected, lengths, losses = torch.zeros_like(model.gradient), [], []
    for x, y in zip(X, Y, strict=True):
        model.gradient.zero_()
        loss = task.loss(model.module, Batch(x[None], y[None]))
        loss.backward()
        losses.append(loss.item())
        lengths.append(float(model.gradient.norm()))
        expected += model.gradient * min(1.0, CLIP / lengths[-1])
    assert min(lengths) < CLIP < max(lengths)
    model.gradient.zero_()
    private = PrivateGradient(model, task, task.loss, lambda name: True, COUNT)
    mean = private.backward(Batch(X, Y))
    torch.testing.assert_close(model.gradient, expected / 5)
    assert float(mean) == pytest.approx(np.mean(losses))


def test_noise_of_an_empty_batch() -> None:
    """z C / B is the deviation of every entry, whatever the batch; only what is trained has any."""
    module = torch.nn.Linear(300, 300)
    model = FlatModel(module, all_names(module))
    task = private_task(1.5, Training(batch_size=4))
    private = PrivateGradient(model, task, task.loss, lambda name: name == "weight", 100)
    model.gradient.zero_()
    assert float(private.backward(Batch(torch.zeros(0, 300), torch.zeros(0, dtype=torch.int64)))) == 0
    weight, bias = module.weight.grad, module.bias.grad
    assert weight is not None and bias is not None and not bias.any()
    deviation = 1.5 * CLIP / 4  # of 90,000 numbers: within six standard errors
    assert abs(float(weight.var()) - deviation**2) <= 6 * deviation**2 * (2 / 90_000) ** 0.5


def test_poisson_batches() -> None:
    """Every sample is in as many of 4,000 batches as its probability says, within six standard errors."""
    training = Training(batch_size=5, steps_per_epoch=4000)
    task = private_task(1.0, training)
    counts, sizes = torch.zeros(COUNT), []
    for batch in poisson_batches(SAMPLES, task, task.generator("shuffle")):
        sizes.append(len(batch))
        counts += (X[:, None] == batch.x[None]).all(2).any(1)
    rate = 5 / COUNT
    assert (counts - 4000 * rate).abs().max() <= 6 * (4000 * rate * (1 - rate)) ** 0.5
    assert np.var(sizes) == pytest.approx(COUNT * rate * (1 - rate), rel=0.15)
    assert poisson_sampling(20, Training(batch_size=8)) == (8, 3)
    assert poisson_sampling(3, Training(batch_size=8)) == (3, 1)


@pytest.mark.parametrize("options", [{}, {"momentum": 0.9}, {"optimizer": "adam"}])
def test_training(options: dict[str, Any]) -> None:
    """Without noise, a bound out of reach and all samples in every batch, it is training on whole batches."""
    training = Training(batch_size=COUNT, **options)
    task = replace(private_task(0.0, training), local_epochs=5, sample_privacy=SamplePrivacy(1e6, 0.0))
    private, plain = small_model(), small_model()
    found = train_epochs(private, SAMPLES, task)
    expected = train_epochs(plain, SAMPLES, replace(task, sample_privacy=None))
    torch.testing.assert_close(private.buffer, plain.buffer, rtol=1e-4, atol=1e-6)
    assert found.steps == expected.steps and found.loss == pytest.approx(expected.loss, rel=1e-5)


def test_training_of_a_part() -> None:
    """Several steps on some parameters, beside others that stay as they are but have gradients of their own."""
    training = Training(batch_size=COUNT)
    task = replace(private_task(0.0, training), local_epochs=3, sample_privacy=SamplePrivacy(1e6, 0.0))
    private, plain = small_model(), small_model()
    for model, given in ((private, task), (plain, replace(task, sample_privacy=None))):
        train_epochs(model, SAMPLES, given, trains=lambda name: name.startswith("0."))
    torch.testing.assert_close(private.buffer, plain.buffer, rtol=1e-4, atol=1e-6)
    assert not torch.equal(private.buffer, small_model().buffer)


def test_frozen_parameters_are_in_no_gradient() -> None:
    """Neither in its length, by which it is clipped, nor in the noise: as if the method trained the others alone."""
    task = replace(private_task(1.0, Training()), sample_privacy=SamplePrivacy(0.1, 1.0))
    frozen, chosen = small_model(), small_model()
    frozen.module.get_submodule("0").requires_grad_(False)
    train_epochs(FlatModel(frozen.module, ()), SAMPLES, task)
    train_epochs(chosen, SAMPLES, task, trains=lambda name: name.startswith("2."))
    for found, expected in zip(frozen.module.parameters(), chosen.module.parameters(), strict=True):
        torch.testing.assert_close(found.data, expected.data)
    assert not torch.equal(chosen.buffer, small_model().buffer)


def test_a_parameter_that_is_one_number_is_clipped_with_the_others() -> None:
    class Scaled(torch.nn.Module):
        def __init__(self, form: tuple[int, ...]) -> None:
            super().__init__()
            self.body = small_model().module
            self.scale = torch.nn.Parameter(torch.full(form, 2.0))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.as_tensor(self.scale * self.body(x))

    task = replace(private_task(1.0, Training()), sample_privacy=SamplePrivacy(0.1, 1.0))
    number, vector = (FlatModel(Scaled(form), ()) for form in ((), (1,)))
    for model in (number, vector):
        train_epochs(model, SAMPLES, task)
    assert torch.equal(number.buffer, vector.buffer) and number.module.get_parameter("scale").item() != 2


def test_phases_are_refused() -> None:
    """Their steps are in no one's count."""
    with pytest.raises(RuntimeError, match="takes steps that privacy does not count"):
        train_epochs(small_model(), SAMPLES, private_task(1.0, Training()), phase=Phase("shuffle head"))
