"""The vectorised form of local training, against training the same clients one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest
import torch

from raysim.parameters import FlatModel, all_names
from raysim.sections import Training
from raysim.stacked import train_stacked
from raysim.together import AddGradient, LocalTraining
from raysim.training import Trained, Visit
from workloads.data import Batch, Task, batch_bounds
from workloads.models.options import Cnn, Mlp, MobileNet, ModelOptions

TASK = Task((3, 16, 16), 4)
UNEQUAL = (11, 8, 3, 8, 9)
"""Batches of 4: clients take 3, 2, 1, 2 and 2 steps an epoch, of sizes 4 and 3, 4, 3, 4, and 4 and 5."""


class Pictures:
    """Random images with labels, shuffled like a workload's."""

    def __init__(self, count: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.x = torch.randn(count, *TASK.input_shape, generator=generator)
        self.y = torch.randint(TASK.classes, (count,), generator=generator)

    def __len__(self) -> int:
        return len(self.y)

    def batches(self, batch_size: int, generator: torch.Generator | None = None) -> Iterator[Batch]:
        order = torch.randperm(len(self), generator=generator)
        for start, stop in batch_bounds(len(self), batch_size, training=True):
            chosen = order[start:stop]
            yield Batch(self.x[chosen].contiguous(memory_format=torch.channels_last), self.y[chosen])


def flat_model(options: ModelOptions) -> FlatModel:
    torch.manual_seed(0)
    module = options.build(TASK)
    # Not all of it shared: penalties act on a part of the row only.
    return FlatModel(module, {name for name in all_names(module) if not name.startswith("head")})


def visits(count: int, epochs: int, training: Training) -> list[Visit]:
    return [Visit(5, 1, client, epochs, training.learning_rate, training, TASK.classes) for client in range(count)]


def both(
    model: FlatModel,
    sizes: Sequence[int],
    training: Training,
    *,
    epochs: int = 2,
    add_gradient: AddGradient | None = None,
    first: Callable[[torch.Tensor, int], None] = lambda values, client: None,
) -> tuple[torch.Tensor, list[Trained], torch.Tensor, list[Trained]]:
    """Values [n, N] and results of the sequential form, then of the vectorised one."""
    model.reset()
    start = model.buffer.expand(len(sizes), -1).clone()
    for client, row in enumerate(start):
        first(row, client)
    requests = [LocalTraining(Pictures(size, client), add_gradient) for client, size in enumerate(sizes)]
    alone, results = [], []
    for row, request, visit in zip(start, requests, visits(len(sizes), epochs, training), strict=True):
        model.reset()
        model.buffer.copy_(row)
        results.append(request.run(model, visit))
        alone.append(model.buffer.clone())
    model.reset()
    stacked = start.clone()
    found = train_stacked(model, stacked, visits(len(sizes), epochs, training), requests)
    return torch.stack(alone), results, stacked, found


def check_equal(
    alone: torch.Tensor, results: list[Trained], stacked: torch.Tensor, found: list[Trained], tolerance: float = 1e-5
) -> None:
    assert [trained.steps for trained in found] == [trained.steps for trained in results]
    assert [t.loss for t in found] == pytest.approx([t.loss for t in results], rel=1e-4)
    torch.testing.assert_close(stacked, alone, rtol=1e-4, atol=tolerance)


@pytest.mark.parametrize("options", [Mlp(), Cnn()], ids=["mlp", "cnn"])
def test_every_client_is_trained_as_if_alone(options: ModelOptions) -> None:
    model = flat_model(options)
    # Batches of 12 and 13; of 12; of 12 and 9.
    training = Training(learning_rate=0.1, batch_size=12)
    alone, results, stacked, found = both(model, (25, 12, 21), training, epochs=1)
    check_equal(alone, results, stacked, found)
    assert [trained.steps for trained in found] == [2, 1, 2]
    # The clients are not alike, and they moved by much more than the tolerance.
    assert (stacked[0] - stacked[1]).abs().max() > 5e-3
    assert (stacked - model.buffer).abs().amax(1).min() > 5e-3


def test_a_deep_network_is_trained_as_if_alone_as_far_as_that_means_anything() -> None:
    """In an untrained MobileNetV2 two steps amplify a rounding error of the weights ten thousandfold (kinks of ReLU6,
    batches of nine under BatchNorm). So the forms may be as far apart as two sequential runs whose first weights differ
    by rounding, and no further; one wrong layer or statistic is further."""
    model = flat_model(MobileNet(width=0.25, dropout=0.0))
    for part in model.module.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.eps = 0.1  # its default multiplies rounding errors by hundreds once more
    training = Training(learning_rate=0.02, batch_size=12)
    noise = 1e-6 * torch.randn(model.buffer.numel(), generator=torch.Generator().manual_seed(0))

    def rounded(values: torch.Tensor, client: int) -> None:
        values.mul_(1 + noise)

    alone, results, stacked, found = both(model, (25, 12, 21), training, epochs=1)
    other, other_results = both(model, (25, 12, 21), training, epochs=1, first=rounded)[:2]
    assert [trained.steps for trained in found] == [2, 1, 2]
    apart = [(values - alone).norm(dim=1) / (alone - model.buffer).norm(dim=1) for values in (stacked, other)]
    assert apart[1].max() < 0.1 and bool((apart[0] < 2 * apart[1]).all()), apart
    for trained, expected, near in zip(found, results, other_results, strict=True):
        assert abs(trained.loss - expected.loss) <= 1e-5 + 2 * abs(near.loss - expected.loss)


def add_pull(gradient: torch.Tensor, shared: torch.Tensor, start: torch.Tensor) -> None:
    gradient.add_(shared - start, alpha=5.0)


OPTIMIZERS = {
    "decay": Training(learning_rate=0.05, batch_size=4, weight_decay=0.1),
    "momentum": Training(learning_rate=0.05, batch_size=4, weight_decay=0.1, momentum=0.9),
    "adamw": Training(optimizer="adamw", learning_rate=0.01, batch_size=4, weight_decay=0.1),
    "steps": Training(learning_rate=0.05, batch_size=4, steps_per_epoch=4),
}


@pytest.mark.parametrize("batch_norm", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimisers_and_penalties_act_on_every_client_alone(name: str, batch_norm: bool) -> None:
    model = flat_model(Mlp())
    if batch_norm:
        module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, bias=False), torch.nn.BatchNorm2d(4))
        module.extend([torch.nn.Flatten(), torch.nn.Linear(4 * 14 * 14, 4)])
        model = FlatModel(module, {"3.weight", "1.running_mean", "1.weight"})
    training = OPTIMIZERS[name]

    def differ(values: torch.Tensor, client: int) -> None:
        values[: model.parameters.numel()] += 0.01 * client

    check_equal(*both(model, UNEQUAL, training, add_gradient=add_pull, first=differ))
    # Without the penalty the result is another one, so that the check above sees it.
    with_it = both(model, UNEQUAL, training, add_gradient=add_pull)[2]
    without = both(model, UNEQUAL, training)[2]
    assert (with_it - without).abs().max() > 1e-3


class OwnBuffers(torch.nn.Module):
    """A fixed kernel that every client has its own values of, and a count that doubles as a seasoning of the output."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kernel", torch.randn(2, 3, 3, 3))
        self.register_buffer("count", torch.tensor(1))
        self.head = torch.nn.Linear(2 * 14 * 14, 4)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        self.count.add_(1)
        features: torch.Tensor = self.head(torch.nn.functional.conv2d(inputs, self.kernel).flatten(1))
        return features / self.count


def test_buffers_are_each_clients_own() -> None:
    def differ(values: torch.Tensor, client: int) -> None:
        values += 0.1 * client

    model = FlatModel(OwnBuffers(), {"kernel"})
    alone, results, stacked, found = both(model, UNEQUAL, Training(learning_rate=0.05, batch_size=4), first=differ)
    check_equal(alone, results, stacked, found)
    assert model.module.count == 1


def test_nothing_to_do_leaves_the_rows_and_has_no_loss() -> None:
    model = flat_model(Mlp())
    alone, _, stacked, found = both(model, (8, 5), Training(batch_size=4), epochs=0)
    assert torch.equal(stacked, alone)
    assert all(trained.steps == 0 and trained.loss != trained.loss for trained in found)


@pytest.mark.parametrize("options", [Mlp(), MobileNet(width=0.25, dropout=0.0)], ids=["mlp", "mobilenet"])
def test_a_client_that_diverges_does_not_touch_the_others(options: ModelOptions) -> None:
    model = flat_model(options)

    def spoil(values: torch.Tensor, client: int) -> None:
        if client == 1:
            values[3] = float("nan")

    alone, _, stacked, found = both(model, (8, 8, 7), Training(learning_rate=1e-4, batch_size=8), first=spoil, epochs=1)
    assert not torch.isfinite(stacked[1]).all() and found[1].loss != found[1].loss
    torch.testing.assert_close(stacked[[0, 2]], alone[[0, 2]], rtol=1e-4, atol=1e-5)


def test_a_full_and_a_short_batch_by_hand() -> None:
    # One weight, logits (w x, 0), label 0: loss log(1 + exp(-w x)), gradient -x σ(-w x). From w = 0 it is -x/2, so a
    # step of rate 1 on the batch {2, 4} gives w = 1.5 and on the batch {6} w = 3; a filling that counted would not.
    model = FlatModel(torch.nn.Linear(1, 2, bias=False), ())
    values = torch.zeros(2, 2)

    class Points(Pictures):
        def __init__(self, points: list[float]) -> None:
            self.x, self.y = torch.tensor(points)[:, None], torch.zeros(len(points), dtype=torch.int64)

        def batches(self, batch_size: int, generator: torch.Generator | None = None) -> Iterator[Batch]:
            yield Batch(self.x, self.y)

    requests = [LocalTraining(Points([2.0, 4.0])), LocalTraining(Points([6.0]))]
    training = replace(Training(), learning_rate=1.0)
    found = train_stacked(model, values, visits(2, 1, training), requests)
    # Both weights move, in opposite directions.
    torch.testing.assert_close(values, torch.tensor([[1.5, -1.5], [3.0, -3.0]]))
    assert [trained.loss for trained in found] == pytest.approx([0.6931472, 0.6931472])
