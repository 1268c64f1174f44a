"""Local training of many clients of equal model as one batched program: the vectorised form of raysim/training.py.

The clients' flat vectors are the rows of one matrix [n, N]. A step takes a mini-batch of every client in a group of
rows, computes all gradients in one call (``torch.func.vmap`` over the rows) and moves them all by one optimiser step.
Each client sees exactly the batches, in the order, that :func:`raysim.training.train_epochs` would give it, and takes
as many steps; its values agree with that form up to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.func import functional_call, grad_and_value, vmap

from raysim import stacked_optimizers
from raysim.parameters import laid_out
from raysim.training import Trained, Visit, epoch_batches
from workloads.models.classifier import has_batch_norm

if TYPE_CHECKING:
    from raysim.parameters import FlatModel
    from raysim.stacked_optimizers import Moments
    from raysim.together import LocalTraining
    from workloads.data import Batch, Samples

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Rows:
    """All that steps change, a row for each client."""

    parameters: torch.Tensor
    """[n, P]"""
    buffers: Tensors
    """The model's buffers, integers too, by name, [n, ...]."""
    moments: Moments

    def choose(self, rows: list[int]) -> Rows:
        """A copy of some rows."""
        buffers = {name: tensor[rows] for name, tensor in self.buffers.items()}
        return Rows(self.parameters[rows], buffers, {name: tensor[rows] for name, tensor in self.moments.items()})

    def put(self, rows: list[int], part: Rows) -> None:
        """Write changed copies back."""
        self.parameters[rows] = part.parameters
        for name, tensor in part.buffers.items():
            self.buffers[name][rows] = tensor
        for name, tensor in part.moments.items():
            self.moments[name][rows] = tensor


def train_stacked(
    model: FlatModel, values: torch.Tensor, visits: Sequence[Visit], requests: Sequence[LocalTraining]
) -> list[Trained]:
    """Train every row of ``values`` in place for its visit's local epochs.

    Args:
        model: gives the module and where its tensors lie in a row; its own values are not used.
        values: [n, N], a row like ``FlatModel.buffer``.
        visits: of the n clients; they agree in learning rate and ``training``.
        requests: what each client's method asked for; they agree in all but the samples.

    A model without BatchNorm takes batches of different size in one call, the shorter ones filled up with samples of
    weight zero. With BatchNorm these would count in the batch's statistics, so only batches of equal size go together,
    the size that most clients wait with first.
    """
    gradients = Gradients(model)
    optimizer = stacked_optimizers.make(visits[0].training, visits[0].learning_rate)
    shared = slice(model.parameters.numel() - model.shared_parameter_count, model.parameters.numel())
    add_gradient = requests[0].add_gradient
    start = values[:, shared].clone() if add_gradient is not None else values[:, :0]
    parameters = values[:, : model.parameters.numel()]
    everyone = Rows(parameters, gradients.buffers(values), optimizer.moments(parameters))
    walks = [_Walk(_batches(request.samples, visit)) for request, visit in zip(requests, visits, strict=True)]
    by_size = has_batch_norm(model.module)
    history: list[tuple[list[int], torch.Tensor]] = []
    while rows := _next_rows(walks, by_size):
        whole = len(rows) == len(walks)
        part = everyone if whole else everyone.choose(rows)
        gradient, losses = gradients(part, [walks[row].advance() for row in rows])
        if add_gradient is not None:
            add_gradient(gradient[:, shared], part.parameters[:, shared], start if whole else start[rows])
        optimizer.step(part.parameters, gradient, part.moments, [len(walks[row].sizes) for row in rows])
        if not whole:
            everyone.put(rows, part)
        history.append((rows, losses))
    gradients.put_buffers(everyone.buffers, values)
    if history:
        # Read back once, at the end: doing so every step would stall a GPU.
        every_loss = iter(torch.cat([losses for _, losses in history]).tolist())
        for rows, _ in history:
            for row in rows:
                walks[row].losses.append(next(every_loss))
    return [walk.trained() for walk in walks]


def _batches(samples: Samples, visit: Visit) -> Iterator[tuple[int, Batch]]:
    """Local epoch and batch of every step."""
    generator = visit.generator("shuffle")
    for epoch in range(visit.local_epochs):
        for batch in epoch_batches(samples, visit, generator):
            yield epoch, batch


class _Walk:
    """One client's way through its batches."""

    def __init__(self, batches: Iterator[tuple[int, Batch]]) -> None:
        self._batches = batches
        self._next = next(batches, None)
        self._epochs: list[int] = []
        self.sizes: list[int] = []
        """Batch size of every step so far."""
        self.losses: list[float] = []

    @property
    def waiting(self) -> int | None:
        """Size of the next batch; None at the end."""
        return None if self._next is None else len(self._next[1])

    def advance(self) -> Batch:
        assert self._next is not None
        epoch, batch = self._next
        self._epochs.append(epoch)
        self.sizes.append(len(batch))
        self._next = next(self._batches, None)
        return batch

    def trained(self) -> Trained:
        steps = zip(self._epochs, self.sizes, self.losses, strict=True)
        last = [(size, loss) for epoch, size, loss in steps if epoch == self._epochs[-1]]
        seen = sum(size for size, _ in last)
        return Trained(len(self.sizes), sum(size * loss for size, loss in last) / seen if seen else float("nan"))


def _next_rows(walks: Sequence[_Walk], by_size: bool) -> list[int]:
    """The clients of the next step, ascending; empty when all are done."""
    groups: dict[int, list[int]] = {}
    for row, walk in enumerate(walks):
        if walk.waiting is not None:
            groups.setdefault(walk.waiting if by_size else 0, []).append(row)
    return max(groups.values(), key=len, default=[])


class Gradients:
    """Loss and gradient of many rows at once, for a model's structure.

    Args:
        model: whose module is put into training mode.
    """

    def __init__(self, model: FlatModel) -> None:
        self._module = model.module.train()
        self._parameters = [entry for entry in model.entries if entry.parameter]
        self._buffers = [entry for entry in model.entries if not entry.parameter]
        self._integers = {n: tensor for n, tensor in self._module.named_buffers() if not tensor.is_floating_point()}
        self._sizes = [entry.stop - entry.start for entry in self._parameters]
        self._every = vmap(grad_and_value(self._loss))

    def buffers(self, values: torch.Tensor) -> Tensors:
        """Every buffer [n, ...] by name, copied out of rows [n, N]; integers with their initial values."""
        found = {name: tensor.expand(len(values), *tensor.shape).clone() for name, tensor in self._integers.items()}
        for entry in self._buffers:
            view = laid_out(values[:, entry.start : entry.stop], entry.shape)
            # torch updates running statistics of a batched BatchNorm in place only where they are contiguous.
            found[entry.name] = view.clone(memory_format=torch.contiguous_format)
        return found

    def put_buffers(self, buffers: Tensors, values: torch.Tensor) -> None:
        """Back into the rows, but for integers, which do not outlive a visit."""
        for entry in self._buffers:
            laid_out(values[:, entry.start : entry.stop], entry.shape).copy_(buffers[entry.name])

    def __call__(self, rows: Rows, batches: Sequence[Batch]) -> tuple[torch.Tensor, torch.Tensor]:
        """Gradients [n, P] and mean losses [n] of one batch for each row; updates the buffers in ``rows``."""
        size = max(len(batch) for batch in batches)
        inputs = torch.stack([_filled(batch.x, size) for batch in batches])
        labels = torch.stack([_filled(batch.y, size) for batch in batches])
        weights = torch.zeros(len(batches), size)
        for row, batch in enumerate(batches):
            weights[row, : len(batch)] = 1 / len(batch)
        gradient, losses = self._every(rows.parameters, rows.buffers, inputs, labels, weights.to(inputs.device))
        return gradient, losses

    def _loss(
        self, row: torch.Tensor, buffers: Tensors, inputs: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        """Of one client; the gradient by its whole row comes as one vector [P], tensors nobody used as zeros."""
        pieces = zip(torch.split(row, self._sizes), self._parameters, strict=True)
        own = {entry.name: laid_out(piece, entry.shape) for piece, entry in pieces}
        outputs = functional_call(self._module, {**own, **buffers}, (inputs,))
        each = torch.nn.functional.cross_entropy(outputs, labels, reduction="none")
        return (each * weights).sum()


def _filled(tensor: torch.Tensor, size: int) -> torch.Tensor:
    """Repeat the last sample up to ``size`` samples: a filling that is finite where the client's own samples are."""
    missing = size - len(tensor)
    return tensor if missing == 0 else torch.cat([tensor, tensor[-1:].expand(missing, *tensor.shape[1:])])
