"""Computes the single steps of several clients as one batch: FedSGD.

It is done for methods that declare ``Traits(single_step_gradient=True)``, on models whose samples do not depend on the
others of their batch. A client whose local training is one step of SGD from θ returns Δ_k = −r (∇f_k(θ) + w θ), r the
learning rate and w the weight decay. A momentum has no effect on a first step. What the server needs of a group of
clients is then one gradient,

    Σ_k m_k Δ_k = −r (∇ Σ_k m_k f_k(θ) + w θ Σ_k m_k),

that of a single loss over all their samples, instead of a copy of the model, a backward pass and a difference for each
(timed by benchmarks/single_step.py).

Source: McMahan et al. 2017, section 2, "FederatedSGD". The sums agree with those of single tasks up to rounding.
"""

from __future__ import annotations

import itertools
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from raysim import seeds
from raysim.client_side.device import is_out_of_memory
from raysim.client_side.per_sample import operations, takes_samples_alone
from raysim.config import registry
from raysim.errors import reason_of
from raysim.exchange.payload import Failure
from raysim.exchange.pool_protocol import power_of_two
from raysim.exchange.profile_marks import Marks
from raysim.flat_model import FlatModel, finite
from raysim.method import NOTHING, ClientTask, Message, Update, Vector
from raysim.training.gradients import autocast
from raysim.training.local_sgd import Trained, epoch_batches
from raysim.workloads.batch_bounds import batch_bounds
from raysim.workloads.federated_data import distinct_input_specs

if TYPE_CHECKING:
    from raysim.client_side.worker import Worker
    from raysim.config.run_config import Training
    from raysim.workloads.federated_data import Batch

MERGED_SAMPLES = 512
"""Most samples in a batch of merged clients."""
LEAST_GROUPS = 16
"""Least number of groups of a round for clients to be merged."""
MOST_OPERATIONS = 5e7
"""In the forward pass of a client's batch: a task of a few milliseconds. What takes longer gains nothing, and its
clients are better shared among actors than done by one."""
TRIED_CLIENTS = 1000
"""Look at no more clients than this for two that take a single step."""
TOLERANCE, COARSE_TOLERANCE = 1e-3, 0.05
"""How far, relative to the largest value, a merged step may be from the method's own: in float32 and in bfloat16."""


def possible(worker: Worker) -> bool:
    """Whether clients that take a single step may be merged in this run, by what method, model and settings say.

    A sample's gradient must not depend on the others in its batch, and clients may keep nothing.
    """
    config, method = worker.config, worker.method
    training, tasks, model = config.training, distinct_input_specs(worker.federation), worker.model(0)
    most = MOST_OPERATIONS / training.batch_size
    return (
        config.engine.merge_single_steps
        and method.traits.single_step_gradient
        and method.traits.weighted_mean
        and not method.traits.plain_mean  # a merged step is a sum by samples
        and worker.objective.plain
        and worker.first_state(0) is None
        and training.optimizer == "sgd"
        and len(tasks) == 1
        and tasks[0].kind == "array"
        and group_size(training, 1, worker.federation.clients) > 1
        and 2 * model.parameters.numel() <= most  # every one is used, as a rule: large models are not tried out
        and all(entry.trained for entry in model.entries if entry.parameter)  # what is frozen does not decay
        and takes_samples_alone(model, tasks[0].input_shape)
        and operations(model, tasks[0].input_shape) <= most
    )


def contradiction(worker: Worker) -> str:
    """A sentence about a method whose single step is not the one that its trait declares; empty if it is.

    A class that inherits the trait and trains with a loss of its own, say, would silently be trained as federated
    averaging. The first two clients that take a single step are therefore trained by the method and merged, once before
    the first round, from values in the model that are not its initial ones. What differs later, or on other clients
    alone, is not seen.
    """
    config, federation = worker.config, worker.federation
    first = range(min(federation.clients, TRIED_CLIENTS))
    single = (client for client in first if take_one_step(config.training, [federation.samples(client)]))
    clients = [*itertools.islice(single, 2)]
    if not clients:
        return ""
    samples = [federation.samples(client) for client in clients]
    rate = config.training.learning_rate
    tasks = [ClientTask(config.seed, 1, client, 1, rate, config.training) for client in clients]
    model = worker.model(0)
    noise = np.random.default_rng(0).standard_normal(model.shared.numel(), np.float32)
    start = model.take_shared() + np.float32(0.05) * noise
    merged = train_merged(worker, tasks, samples, start, Marks(False))
    if not isinstance(merged, Merged):
        return ""  # the clients themselves fail, and will be named where they do
    with seeds.kept_streams():
        try:
            deltas = [worker.train(task, Message(start), None)[0].delta for task in tasks]
        except Exception:  # of the method, which raises it again where it can be told of a client and a round
            return ""
    own = sum(delta * np.float32(count) for delta, count in zip(deltas, samples, strict=True))
    tolerance = COARSE_TOLERANCE if config.training.precision == "bf16" else TOLERANCE
    if np.abs(merged.total - own).max() <= tolerance * np.abs(merged.total).max():
        return ""
    name = registry.public_name("method", worker.method)
    return (
        f"method {name} declares Traits(single_step_gradient=True), but a single step of clients {clients} is another "
        "one. Clients are therefore trained one by one; leave the trait out of the method, or correct its train"
    )


def group_size(training: Training, local_epochs: int, participants: int) -> int:
    """How many neighboring clients of a round are merged, as far as they take one step; a power of two, 1: none."""
    if local_epochs > 1 or training.steps_per_epoch > 1:
        return 1
    largest = training.last.largest(training.batch_size)
    return power_of_two(min(MERGED_SAMPLES // largest, participants // LEAST_GROUPS))


def worth_it(training: Training, samples: Sequence[int], size: int) -> bool:
    """Whether most of the groups of neighbors take one step each, ``samples`` being those of all participants.

    At least half of the groups, with three quarters of the samples, as the clients of the others share calls too.
    """
    groups = [samples[start : start + size] for start in range(0, len(samples), size)]
    merged = [sum(group) for group in groups if take_one_step(training, group)]
    return 2 * len(merged) >= len(groups) and 4 * sum(merged) >= 3 * sum(samples)


def take_one_step(training: Training, samples: Sequence[int]) -> bool:
    """Whether a local epoch is one step, on all samples, for clients with these numbers of samples."""
    if training.steps_per_epoch:
        return training.steps_per_epoch == 1 and min(samples) > 0
    size, last = training.batch_size, training.last
    return all(batch_bounds(count, size, last) == [(0, count)] for count in samples)


@dataclass(frozen=True)
class Merged:
    """Summed updates and metrics of a group of clients."""

    updates: tuple[Update, ...]
    """Their metrics."""
    total: Vector
    """Σ_k m_k Δ_k [d]."""
    seconds: float


def train_merged(
    worker: Worker,
    tasks: Sequence[ClientTask],
    samples: Sequence[int],
    parameters: Vector | None,
    marks: Marks,
) -> Merged | Failure | None:
    """The single steps of a few clients.

    Args:
        parameters: where they start, the shared entries [d]; None if that is in the model since the merged step before,
            which leaves it as it was.

    Returns:
        None if a value is not finite or a client has more batches, a Failure if anything was raised: the clients are
        then to be trained one after another, which also tells which it was.
    """
    started, client, stage = time.perf_counter(), tasks[0].client, "model"
    try:
        model = worker.built(client)
        if parameters is not None:
            model.reset()
            model.load_shared(parameters)
        batches: list[Batch] = []
        stage = "data"
        for task in tasks:
            client = task.client
            marks("load", client)
            epoch = epoch_batches(worker.data(client).train, task, task.generator("shuffle"))
            batches += itertools.islice(epoch, 1)
        if not tasks[0].training.steps_per_epoch and [*map(len, batches)] != [*samples]:
            return None  # samples of a kind that makes more batches of them
        marks("train")
        client, stage = tasks[0].client, "train merged"
        total, losses = _sum_and_losses(model, batches, tasks[0], samples)
    except (Exception, SystemExit) as error:
        if is_out_of_memory(error):
            raise  # the machine's, not a client's
        return Failure(client, stage, reason_of(error), traceback.format_exc())
    if not (np.isfinite(losses).all() and finite(torch.from_numpy(total))):
        return None
    updates = tuple(Update(NOTHING, Trained(1, loss).metrics()) for loss in losses.tolist())
    return Merged(updates, total, time.perf_counter() - started)


def _sum_and_losses(
    model: FlatModel, batches: Sequence[Batch], task: ClientTask, samples: Sequence[int]
) -> tuple[Vector, NDArray[np.float64]]:
    """Σ_k m_k Δ_k [d] and every client's mean loss [n]."""
    sizes = [len(batch) for batch in batches]
    inputs, labels = torch.cat([batch.x for batch in batches]), torch.cat([batch.y for batch in batches])
    module, training = model.module.train(), task.training
    with model.loose_gradients(lambda name: True):
        with autocast(training.precision, model.device):
            each = torch.nn.functional.cross_entropy(module(inputs), labels, reduction="none")
        if sizes == list(samples):
            value = each.sum()  # m_k times a mean over as many
        else:
            factors = np.repeat(np.divide(samples, sizes, dtype=np.float32), sizes)
            value = each @ torch.from_numpy(factors).to(model.device)
        value.backward()
        total = model.scaled_loose_gradient(-task.learning_rate)
    if training.weight_decay:
        factor = -task.learning_rate * training.weight_decay * sum(samples)
        total[: model.shared_parameter_count].add_(model.shared_parameters, alpha=factor)
    starts = np.cumsum([0, *sizes[:-1]])
    losses = np.add.reduceat(each.detach().double().cpu().numpy(), starts) / sizes
    return total.cpu().numpy(), losses
