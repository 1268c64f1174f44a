"""The local training loop, against steps worked out by hand and against a plain loop."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from raysim.config.sections import Training
from raysim.flat_model import FlatModel, all_names
from raysim.method import ClientTask
from raysim.training.gradients import training_mode
from raysim.training.local_sgd import Phase, train_epochs
from raysim.workloads.federated_data import Batch
from tests.raysim.methods.by_hand import InOrder


def points(*pairs: tuple[float, float]) -> InOrder:
    """Samples (x, y), one a mini-batch, of a scalar model y = w x with known steps."""
    return InOrder(*(Batch(torch.tensor([[float(x)]]), torch.tensor([float(y)])) for x, y in pairs))


def squared_error(module: torch.nn.Module, batch: Batch) -> torch.Tensor:
    loss: torch.Tensor = 0.5 * (module(batch.x)[:, 0] - batch.y).square().mean()
    return loss


def scalar_model(weight: float) -> FlatModel:
    module = torch.nn.Linear(1, 1, bias=False)
    module.weight.data.fill_(weight)
    return FlatModel(module, all_names(module))


@pytest.fixture
def task() -> ClientTask:
    training = Training(learning_rate=0.1, batch_size=1)
    return ClientTask(seed=0, round=1, client=0, local_epochs=1, learning_rate=0.1, training=training)


def test_two_steps_by_hand(task: ClientTask) -> None:
    # w = 1. Step 1: (x, y) = (1, 3): gradient (1 - 3)·1 = -2, w = 1.2, loss 2.
    # Step 2: (2, 1): gradient (2.4 - 1)·2 = 2.8, w = 0.92, loss 0.98. Mean loss 1.49.
    model = scalar_model(1.0)
    trained = train_epochs(model, points((1, 3), (2, 1)), task, squared_error)
    assert float(model.buffer) == pytest.approx(0.92, abs=1e-6)
    assert trained.loss == pytest.approx(1.49, abs=1e-6)
    assert trained.steps == 2


def test_an_added_gradient_acts_in_every_step(task: ClientTask) -> None:
    # As above with a constant 1 added: w = 1 - 0.1·(-2 + 1) = 1.1; step 2: (2.2 - 1)·2 + 1 = 3.4, w = 0.76.
    # Were it lost after the first step, w would be 0.86.
    model = scalar_model(1.0)
    train_epochs(
        model, points((1, 3), (2, 1)), task, squared_error, add_gradient=lambda model: model.gradient.add_(1.0)
    )
    assert float(model.buffer) == pytest.approx(0.76, abs=1e-6)


def test_epochs_and_steps_per_epoch(task: ClientTask) -> None:
    two = points((1, 3), (2, 1))
    assert train_epochs(scalar_model(1), two, replace(task, local_epochs=3), squared_error).steps == 6
    five = replace(task, local_epochs=2, training=replace(task.training, steps_per_epoch=5))
    # Five mini-batches are more than one pass over two: passes go on until there are five.
    assert train_epochs(scalar_model(1), two, five, squared_error).steps == 10


def test_only_the_chosen_parameters_move(task: ClientTask) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Linear(1, 1))
    model = FlatModel(module, all_names(module))
    before = {name: value.detach().clone() for name, value in module.named_parameters()}
    train_epochs(model, points((1, 3)), task, squared_error, trains=lambda name: name.startswith("1."))
    for name, value in module.named_parameters():
        assert torch.equal(value.detach(), before[name]) == name.startswith("0.")


@pytest.mark.parametrize(
    ("options", "reference"),
    [
        ({"weight_decay": 0.5}, torch.optim.SGD),
        ({"weight_decay": 0.5, "momentum": 0.5}, torch.optim.SGD),
        ({"weight_decay": 0.5, "optimizer": "adam"}, torch.optim.Adam),
        ({"weight_decay": 0.5, "optimizer": "adamw"}, torch.optim.AdamW),
    ],
)
def test_frozen_parameters_stay_as_in_torch(task: ClientTask, options: dict[str, Any], reference: Any) -> None:
    """A pretrained layer with ``requires_grad_(False)`` does not decay, and the rest trains as with torch's class."""
    torch.manual_seed(0)
    plain = torch.nn.Sequential(torch.nn.Linear(1, 2).requires_grad_(False), torch.nn.Linear(2, 1))
    model, samples = FlatModel(copy.deepcopy(plain), all_names(plain)), points((1, 3), (2, -1))
    train_epochs(model, samples, replace(task, training=replace(task.training, **options)), squared_error)
    optimizer = reference(plain[1].parameters(), 0.1, **{key: options[key] for key in options if key != "optimizer"})
    for batch in samples.batches(1):
        optimizer.zero_grad()
        squared_error(plain, batch).backward()
        optimizer.step()
    for found, expected in zip(model.module.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(found.data, expected.data, rtol=1e-6, atol=1e-7)
    assert torch.equal(model.module.get_parameter("0.weight"), plain.get_parameter("0.weight"))


def test_no_epoch_leaves_the_model_and_has_no_loss(task: ClientTask) -> None:
    model = scalar_model(1.0)
    trained = train_epochs(model, points((1, 3)), task, squared_error, phase=Phase(epochs=0))
    assert float(model.buffer) == 1.0
    assert trained.steps == 0
    assert math.isnan(trained.loss)


def test_streams_differ_by_client_round_and_purpose(task: ClientTask) -> None:
    def draw(one: ClientTask, purpose: str) -> list[float]:
        return torch.rand(4, generator=one.generator(purpose)).tolist()

    first = draw(task, "shuffle")
    assert draw(task, "shuffle") == first
    others = [
        draw(replace(task, client=1), "shuffle"),
        draw(replace(task, round=2), "shuffle"),
        draw(task, "global"),
    ]
    assert all(other != first for other in others)


def test_plain_descent_has_the_bits_of_the_flat_optimizer_and_gives_the_gradients_back(task: ClientTask) -> None:
    # A penalty of zero takes the other way: into the flat gradient, and one step of torch's SGD over the flat vector.
    def network() -> FlatModel:
        torch.manual_seed(3)
        module = torch.nn.Sequential(
            torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 1)
        )
        return FlatModel(module, all_names(module))

    def image_batch(seed: int, y: float) -> Batch:
        images = torch.randn(5, 3, 8, 8, generator=torch.Generator().manual_seed(seed))
        return Batch(images.to(memory_format=torch.channels_last), torch.tensor([y]))

    images = InOrder(image_batch(1, 3.0), image_batch(2, 1.0), image_batch(3, -2.0))
    plain, flat, part = network(), network(), network()
    train_epochs(plain, images, task, squared_error)
    train_epochs(flat, images, task, squared_error, add_gradient=lambda model: None)
    assert torch.equal(plain.buffer, flat.buffer)
    assert all(parameter.grad is None for parameter in plain.module.parameters())  # nothing is left over
    plain.gradient.fill_(7)
    for _ in range(2):
        assert all(parameter.grad is not None and parameter.grad.eq(7).all() for parameter in plain.module.parameters())
        train_epochs(plain, images, task, squared_error)  # puts them back as they were
    # Of the chosen names only: the head moves, the convolution stays.
    before = part.buffer.clone()
    train_epochs(part, images, task, squared_error, trains=lambda name: name.startswith("3."))
    moved = {
        entry.name
        for entry in part.entries
        if not torch.equal(*(b[entry.start : entry.stop] for b in (before, part.buffer)))
    }
    assert moved == {"3.weight", "3.bias"}


@pytest.mark.parametrize("frozen", [False, True])
def test_frozen_batchnorm_normalizes_by_its_statistics_and_keeps_them(task: ClientTask, frozen: bool) -> None:
    # Statistics of mean 1 and variance 4 - 1e-5: x = 5 becomes 2, times scale 3 is 6. One step at rate 0.1 toward 4:
    # gradient of the scale (6 - 4)·2 = 4, of the shift 2, so 2.6 and -0.2. In training mode x would become 0.
    layer = torch.nn.BatchNorm1d(1)
    layer.weight.data.fill_(3.0)
    mean = layer.get_buffer("running_mean").fill_(1.0)
    layer.get_buffer("running_var").fill_(4.0 - layer.eps)
    model = FlatModel(layer, all_names(layer))
    task = replace(task, training=replace(task.training, freeze_batchnorm=frozen))
    two = Batch(torch.tensor([[5.0], [5.0]]), torch.tensor([4.0, 4.0]))
    train_epochs(model, InOrder(two), task, squared_error)
    if frozen:
        assert model.buffer.tolist() == pytest.approx([2.6, -0.2, 1.0, 4.0], abs=1e-4)
    else:
        assert float(layer.weight.detach()) == pytest.approx(3.0) and float(mean) != 1.0


def test_frozen_batchnorm_still_drops_out(task: ClientTask) -> None:
    module = torch.nn.Sequential(torch.nn.BatchNorm1d(2), torch.nn.Dropout(0.5))
    training_mode(module, replace(task.training, freeze_batchnorm=True))
    assert [part.training for part in module] == [False, True]
