"""DP-SGD: every sample's gradient is clipped, and noise is added to their sum (Abadi et al. 2016, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch.func import functional_call, grad_and_value, vmap

from raysim.config.sections import Training
from raysim.flat_model import FlatModel
from raysim.method import ClientTask, Loss
from raysim.training.optimizers import gradient_of
from raysim.workloads.federated_data import Batch, Samples

VALUES = 2**24
"""Numbers that the gradients of samples computed at a time hold, 64 MiB."""
GradientsAndLosses = Callable[
    [dict[str, torch.Tensor], torch.Tensor, torch.Tensor], tuple[dict[str, torch.Tensor], torch.Tensor]
]


def poisson_sampling(samples: int, training: Training) -> tuple[int, int]:
    """The mean size of a batch, and the number of batches of a local epoch."""
    size = min(training.batch_size, samples)
    return size, training.steps_per_epoch or -(-samples // size)


def poisson_batches(samples: Samples, task: ClientTask, generator: torch.Generator) -> Iterator[Batch]:
    """One local epoch of batches in which every sample is with the same probability, independently of all else.

    Raises:
        TypeError: the inputs of the samples are no tensor.
    """
    count = len(samples)
    (whole,) = samples.batches(count, generator)
    if not isinstance(whole.x, torch.Tensor):
        raise TypeError(f"privacy.kind dp-sgd takes samples whose inputs are rows of a tensor, not {type(whole.x)}")
    size, steps = poisson_sampling(count, task.training)
    for _ in range(steps):
        drawn = torch.rand(count, generator=generator) < size / count
        rows = drawn.nonzero().flatten().to(whole.y.device)
        yield Batch(whole.x[rows], whole.y[rows])


def of_each_sample(module: torch.nn.Module, loss: Loss) -> GradientsAndLosses:
    """A function of a batch: each sample's gradients by some of the parameters [B, …], under their names, and loss [B].

    Its arguments are the values of these parameters, the inputs [B, …] and the labels [B, …].
    """

    def of_sample(values: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        def called(inputs: torch.Tensor) -> torch.Tensor:
            outputs: torch.Tensor = functional_call(module, values, (inputs,))
            return outputs

        return loss(called, Batch(x[None], y[None]))  # type: ignore[arg-type]  # it is only called

    return vmap(grad_and_value(of_sample), in_dims=(None, 0, 0), randomness="different")


class PrivateGradient:
    """A private gradient in the place of a backward pass: (Σ_b g_b · min(1, C / ‖g_b‖) + N(0, z² C² I)) / B.

    g_b is the gradient of one sample's loss by the parameters that are trained, B the mean size of a batch, which an
    empty batch is divided by too.

    Args:
        loss: scalar loss of a mini-batch, which calls the module it is given on the batch's inputs.
        samples: how many the client has.
    """

    def __init__(
        self,
        model: FlatModel,
        task: ClientTask,
        loss: Loss,
        trains: Callable[[str], bool],
        samples: int,
    ) -> None:
        assert task.sample_privacy is not None
        self._privacy = task.sample_privacy
        self._size, _ = poisson_sampling(samples, task.training)
        self._draws = task.generator("privacy noise shuffle")
        module = model.module
        self._parameters = {
            name: value for name, value in module.named_parameters() if value.requires_grad and trains(name)
        }
        self._values = {name: value.detach() for name, value in self._parameters.items()}
        self._rows = max(1, VALUES // max(1, sum(value.numel() for value in self._values.values())))
        self._each = of_each_sample(module, loss)

    def backward(self, batch: Batch) -> torch.Tensor:
        """Add the noised gradient to that of the parameters; the mean loss of the batch, 0 of an empty one."""
        total = torch.zeros((), device=batch.y.device)
        for start in range(0, len(batch), self._rows):
            rows = slice(start, start + self._rows)
            with torch.no_grad():  # or what is not trained would be part of a graph of its own
                gradients, losses = self._each(self._values, batch.x[rows], batch.y[rows])
            total += losses.sum()
            self._add_clipped(gradients)
        deviation = self._privacy.noise * self._privacy.clip
        for parameter in self._parameters.values():
            gradient = gradient_of(parameter)
            noise = torch.randn(parameter.shape, generator=self._draws)
            gradient.add_(noise.to(gradient.device), alpha=deviation).div_(self._size)
        return total / max(1, len(batch))

    def _add_clipped(self, gradients: dict[str, torch.Tensor]) -> None:
        squares = [each.reshape(len(each), -1).square().sum(1) for each in gradients.values()]
        lengths = torch.stack(squares).sum(0).sqrt()
        factors = (self._privacy.clip / lengths).clamp(max=1)
        for name, parameter in self._parameters.items():
            gradient_of(parameter).add_(torch.tensordot(factors, gradients[name], dims=1))
