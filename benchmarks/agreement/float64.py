"""Methods that no other program has, or has otherwise, in plain float64 code: a loop over clients, autograd, NumPy.

Nothing of it calls raysim, but for who is drawn into a Poisson cohort, which follows from raysim's seed, and the first
values of IFCA's models. The methods of virtual time are in :mod:`benchmarks.agreement.float64_stale`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import fmean

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy, linear

from benchmarks.agreement import problem
from benchmarks.agreement.case import Case
from benchmarks.agreement.problem import CLASSES, EPOCHS, HIDDEN, RATE, ROUNDS, SIZES, WIDTH, Values

Doubles = NDArray[np.float64]
CLIENTS = range(len(SIZES))
SHARES = np.array(SIZES) / sum(SIZES)
STEPS = 12
"""Server rules in virtual time and with Poisson cohorts."""
Loss = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""Loss as a function of features, logits, labels, and the model's values."""


def first() -> Doubles:
    return np.asarray(problem.vector(problem.network().parameters()).double().numpy())


def outputs(values: Tensor, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Features [B, 6] and logits [B, 3] of the network with these values."""
    parts = values.split([HIDDEN * WIDTH, HIDDEN, CLASSES * HIDDEN, CLASSES])
    features = linear(inputs.double(), parts[0].reshape(HIDDEN, WIDTH), parts[1]).relu()
    return features, linear(features, parts[2].reshape(CLASSES, HIDDEN), parts[3])


def plain_loss(features: Tensor, logits: Tensor, labels: Tensor, values: Tensor) -> Tensor:
    return cross_entropy(logits, labels)


def value_and_gradient(
    model: Doubles, inputs: Tensor, labels: Tensor, loss: Loss = plain_loss
) -> tuple[float, Doubles]:
    values = torch.tensor(model, requires_grad=True)
    found = loss(*outputs(values, inputs), labels, values)
    found.backward()
    assert values.grad is not None
    return float(found.detach()), np.asarray(values.grad.numpy())


def trained(
    model: Doubles,
    client: int,
    loss: Loss = plain_loss,
    more: Callable[[Doubles], Doubles | float] = lambda model: 0.0,
    cuts: Sequence[int] = (),
) -> Doubles:
    """A client's local work: steps along the gradient of a mini-batch, to which ``more(model)`` is added.

    Args:
        cuts: sizes of the mini-batches; empty: those of the problem.
    """
    inputs, labels = problem.clients()[client]
    batches = [*zip(inputs.split([*cuts]), labels.split([*cuts]), strict=True)] if cuts else problem.batches(client)
    for inputs, labels in EPOCHS * batches:
        model = model - RATE * (value_and_gradient(model, inputs, labels, loss)[1] + more(model))
    return model


def vectors(**values: Doubles) -> Values:
    return {name.replace("_", " "): torch.from_numpy(value).float() for name, value in values.items()}


def fedproto() -> Values:
    """Own models drawn to C̄_y, all judged by the nearest C̄ (Tan et al. 2022; λ = 1, mean of squares)."""
    models, prototypes = [first() for _ in CLIENTS], None

    def features(model: Doubles, inputs: Tensor) -> Doubles:
        return np.asarray(outputs(torch.tensor(model), inputs)[0].numpy())

    for _ in range(ROUNDS):
        loss = plain_loss if prototypes is None else partial(drawn, torch.from_numpy(prototypes))
        models = [trained(model, client, loss) for client, model in enumerate(models)]
        every = np.concatenate([features(models[k], problem.clients()[k][0]) for k in CLIENTS])
        labels = np.concatenate([problem.clients()[k][1].numpy() for k in CLIENTS])
        prototypes = np.stack([every[labels == number].mean(axis=0) for number in range(CLASSES)])
    assert prototypes is not None
    found: dict[str, Doubles] = {}
    for client, model in enumerate(models):
        away = np.square(features(model, problem.points())[:, None] - prototypes).sum(axis=2)
        counts = np.bincount(away.argmin(axis=1), minlength=CLASSES)
        found |= {f"client_{client}": model, f"predictions_{client}": counts.astype(np.float64)}
    return vectors(**found)


def drawn(prototypes: Tensor, features: Tensor, logits: Tensor, labels: Tensor, values: Tensor) -> Tensor:
    return cross_entropy(logits, labels) + (features - prototypes[labels]).square().mean()


def rounds(step: Callable[[Sequence[int], Sequence[Doubles]], Doubles], loss: Loss = plain_loss) -> Values:
    """Rounds of all clients: ``step`` makes the change of the model from theirs."""
    model = first()
    for _ in range(ROUNDS):
        model = model + step(CLIENTS, [trained(model, client, loss) - model for client in CLIENTS])
    return vectors(server=model)


def alie(clients: Sequence[int], changes: Sequence[Doubles]) -> Doubles:
    """Client 0 sends μ − 1.5 σ of the two others; the mean is by samples."""
    honest = np.stack(changes[1:])
    mean, variance = honest.mean(axis=0), honest.var(axis=0)
    return np.asarray(SHARES @ np.stack([mean - 1.5 * np.sqrt(variance), *honest]))


def principal(clients: Sequence[int], changes: Sequence[Doubles]) -> Doubles:
    """Eq. 4-7 of Zeng et al. 2024 with the d × d matrix as it is printed, and its ⌊0.8 · 3⌋ = 2 leading axes."""
    gradients = -np.stack(changes)
    values, axes = np.linalg.eigh(gradients.T @ gradients / len(gradients))
    values, axes = values[-2:], axes[:, -2:]
    revised = gradients @ axes * values @ axes.T
    lengths = np.linalg.norm(gradients, axis=1) / np.linalg.norm(revised, axis=1)
    return np.asarray(-(lengths[:, None] * revised).mean(axis=0))


def with_margin(features: Tensor, logits: Tensor, labels: Tensor, values: Tensor) -> Tensor:
    return cross_entropy(logits, labels) + 0.03 * logits.square().sum(dim=1).mean()


def poisson() -> Values:
    """(Σ Δ min(1, C / ‖Δ‖)) / (q N), C = 0.5 and q = 0.5, of the clients that raysim draws."""
    from raysim import seeds
    from raysim.config.sections import Schedule
    from raysim.samplers._sampler import Known

    model, options = first(), Schedule(sampling="poisson", sampling_rate=0.5)
    for number in range(1, STEPS + 1):
        total = np.zeros(model.size)
        known = Known(number, range(len(SIZES)), 1, lambda clients: np.array(SIZES)[[*clients]])
        for client in options.sampler.cohort(known, seeds.numpy_generator(0, "participants", number)).tolist():
            moved = trained(model, client) - model
            total += moved * min(1.0, 0.5 / float(np.linalg.norm(moved)))
        model = model + total / (0.5 * len(SIZES))
    return vectors(server=model)


def merged() -> Values:
    """Mini-batches of 7: what is below 0.3 · 7 joins the one before, and 3 of 24 samples are one of their own."""
    cuts, model = ([7, 7, 7, 3], [7, 9], [8]), first()
    for _ in range(ROUNDS):
        model = SHARES @ np.stack([trained(model, client, cuts=cuts[client]) for client in CLIENTS])
    return vectors(server=model)


def tuned() -> Values:
    """FedAvg, and every client's loss after as many epochs of its own as a round has."""
    model = first()
    for _ in range(ROUNDS):
        model = SHARES @ np.stack([trained(model, client) for client in CLIENTS])
    losses = [value_and_gradient(trained(model, k), *problem.clients()[k])[0] for k in CLIENTS]
    return vectors(server=model, tuned=np.array([*losses, fmean(losses)]))


def cases() -> Iterator[tuple[str, Case]]:
    """Cases compared in rounds, by their names in words."""
    yield "prediction by prototypes", Case("fedproto", fedproto)
    private: dict[str, object] = {"privacy.kind": "central", "privacy.clip": 0.5, "privacy.noise_multiplier": 0.0}
    drawing = {"schedule.sampling": "poisson", "schedule.sampling_rate": 0.5, "schedule.rounds": STEPS}
    yield "Poisson cohorts, divisor qN", Case("fedavg", poisson, {**private, **drawing})
    attack = {"attack.kind": "alie", "attack.malicious": [0]}
    yield "ALIE", Case("fedavg", partial(rounds, alie), attack)
    rule = {"training.margin": 0.03, "defense.rule": "principal"}
    yield "margin and principal rule", Case("fedavg", partial(rounds, principal, with_margin), rule)
    yield "principal gradients", Case("fedld", partial(rounds, principal, with_margin), {"method.margin_weight": 0.03})
    merging = {"training.last_batch": "merge", "training.merge_below": 0.3}
    yield "left-over samples merged", Case("fedavg", merged, merging, batch=7)
    yield "fine-tuned clients", Case("fedavg", tuned, {"evaluation.fine_tune": EPOCHS})
