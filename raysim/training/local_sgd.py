"""The only local training loop: mini-batch optimization of one client's model."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch

from raysim.config.sections import Training
from raysim.flat_model import FlatModel
from raysim.method import ClientTask, Loss, Message, Update
from raysim.training import optimizers
from raysim.training.gradients import backward, restored, training_mode
from raysim.training.private_gradient import PrivateGradient, poisson_batches
from raysim.workloads.federated_data import Batch, ClientData, Samples


@dataclass(frozen=True)
class Trained:
    """Numbers of a finished local training."""

    steps: int
    loss: float
    """Mean mini-batch loss over the last local epoch, weighted by batch size; nan without a step."""

    def metrics(self) -> dict[str, float]:
        """The numbers for the clients table: ``steps`` and ``train_loss``."""
        return {"steps": float(self.steps), "train_loss": self.loss}


@dataclass(frozen=True)
class Phase:
    """Settings of one of several trainings of a client task."""

    stream: str = "shuffle"
    """Name of the random stream; a method that trains in phases gives each its own. With ``training.optimizer_state
    kept`` the optimizer goes on from its state after the last training of the same parameters under this name, in this
    task or an earlier one."""
    epochs: int | None = None
    """Instead of ``task.local_epochs``."""
    learning_rate: float | None = None
    """Instead of ``task.learning_rate``."""
    before_epoch: Callable[[], None] | None = None
    """Called at the start of every local epoch."""


def cross_entropy(module: torch.nn.Module, batch: Batch) -> torch.Tensor:
    """Mean cross-entropy of a mini-batch: the loss of FedAvg."""
    return torch.nn.functional.cross_entropy(module(batch.x), batch.y)


def local_update(
    model: FlatModel, data: ClientData, message: Message, task: ClientTask, loss: Loss | None = None
) -> Update:
    """FedAvg's client task: train from the received parameters, return the change of what is shared."""
    model.load_shared(message.parameters)
    trained = train_epochs(model, data.train, task, loss)
    return Update(model.change_from(message.parameters), trained.metrics())


def train_epochs(  # noqa: PLR0913 - the one training loop: what methods change in it
    model: FlatModel,
    samples: Samples,
    task: ClientTask,
    loss: Loss | None = None,
    *,
    add_gradient: Callable[[FlatModel], object] | None = None,
    gradient_at: Callable[[FlatModel], object] | None = None,
    trains: Callable[[str], bool] = lambda name: True,
    phase: Phase = Phase(),
) -> Trained:
    """Train ``model`` in place for the task's local epochs.

    Args:
        loss: scalar loss of a mini-batch; None: the one that the data asks for (``task.loss``).
        add_gradient: called after every backward pass; adds the gradient of a penalty on the flat parameters
            (``model.gradient``), which costs one vector operation instead of a graph over every tensor.
        gradient_at: moves ``model.parameters``, from the mini-batch's gradient in ``model.gradient`` say, to the point
            at which the gradient of the step is then taken, on the same mini-batch: a second pass. Parameters, and
            BatchNorm's statistics after the first pass, are put back before ``add_gradient`` and the step.
        trains: which parameters are optimized, by name; the others stay as they are (their gradient, of this mini-batch
            alone, is there for ``add_gradient`` to read), and so do those that the model has frozen
            (``requires_grad_(False)``).
        phase: which of several trainings of a client task it is, and what is called before its epochs.

    Source: McMahan et al. 2017, Algorithm 1 (ClientUpdate).
    """
    loss = loss or task.loss
    training_mode(model.module, task.training)
    rate = task.learning_rate if phase.learning_rate is None else phase.learning_rate
    generator = task.generator(phase.stream)
    private = None
    if task.sample_privacy is not None:
        if replace(phase, before_epoch=None) != Phase():
            raise RuntimeError("a training in phases takes steps that privacy does not count: no Traits.plain_training")
        if gradient_at is not None:
            raise RuntimeError("a second gradient of a step looks at samples again: no Traits.plain_training")
        private = PrivateGradient(model, task, loss, trains, len(samples))
    changes = add_gradient is not None or gradient_at is not None
    descends = not changes and private is None and optimizers.is_descent(task.training)
    steps = 0
    epoch_loss = float("nan")
    with model.loose_gradients(trains) if descends else nullcontext(model.select(trains)) as parameters:
        made = functools.partial(optimizers.make, parameters, task.training, rate)
        chosen = optimizers.Descent(parameters, rate) if descends else made()
        memory = "fresh" if descends else task.training.optimizer_state  # plain descent has no state
        name = _state_name(phase.stream, parameters) if memory == "kept" else ""
        if memory == "kept":
            chosen.load(model.optimizer_states.get(name, {}))
        for _ in range(task.local_epochs if phase.epochs is None else phase.epochs):
            total: Any = 0.0
            seen = 0
            if phase.before_epoch is not None:
                phase.before_epoch()
            for batch in epoch_batches(samples, task, generator):
                if memory == "batch":
                    chosen = made()
                if changes:
                    model.gradient.zero_()  # of parameters that are not trained, too: it may be read
                else:
                    chosen.clear()
                value = backward(model, batch, task, loss) if private is None else private.backward(batch)
                if gradient_at is not None:
                    _move_gradient(model, batch, task, loss, gradient_at)
                if add_gradient is not None:
                    add_gradient(model)
                chosen.step()
                size = len(batch)
                # Summed on a GPU, which reading the loss back in every step would stall.
                total += (value.item() if model.device == "cpu" else value.detach().double()) * size
                seen += size
                steps += 1
            epoch_loss = float(total) / seen if seen else float("nan")  # batches of DP-SGD may all be empty
        if memory == "kept":
            model.optimizer_states[name] = chosen.state()
    return Trained(steps, epoch_loss)


def _move_gradient(
    model: FlatModel, batch: Batch, task: ClientTask, loss: Loss, move: Callable[[FlatModel], object]
) -> None:
    """Put the gradient of a mini-batch at the point that ``move`` goes to in the place of that at the present one."""
    with restored(model):
        move(model)
        model.gradient.zero_()
        backward(model, batch, task, loss)


def _state_name(stream: str, parameters: Sequence[torch.nn.Parameter]) -> str:
    """The name of an optimizer's state: the random stream, and where the trained parameters lie in the flat vector."""
    places = (f"{each.storage_offset()}:{each.storage_offset() + each.numel()}" for each in parameters)
    return f"{stream} {','.join(places)}"


def epoch_batches(samples: Samples, task: ClientTask, generator: torch.Generator) -> Iterator[Batch]:
    """One local epoch: a full shuffled pass, or ``training.steps_per_epoch`` mini-batches over as many passes.

    With ``task.sample_privacy`` it is as many mini-batches, of which each is a Poisson sample.
    """
    if task.sample_privacy is not None:
        yield from poisson_batches(samples, task, generator)
        return
    limit = task.training.steps_per_epoch
    if limit == 0:
        yield from one_pass(samples, task.training, generator)
        return
    yield from itertools.islice(endless(samples, task.training, generator), limit)


def one_pass(samples: Samples, training: Training, generator: torch.Generator) -> Iterator[Batch]:
    """The mini-batches of one shuffled pass, cut by the options ``batch_size`` and ``last_batch`` of training."""
    yield from samples.batches(training.batch_size, generator, training.last)


def endless(samples: Samples, training: Training, generator: torch.Generator) -> Iterator[Batch]:
    """Mini-batches of as many shuffled passes as are asked for."""
    while True:
        yield from one_pass(samples, training, generator)
