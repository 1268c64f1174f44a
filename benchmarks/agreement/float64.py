"""What no other program has, or has otherwise, in plain float64 code: a loop over clients, autograd, and NumPy.

Nothing of it calls raysim, but for who is drawn into a Poisson cohort, which follows from raysim's seed, and the first
values of IFCA's models. When clients are back is worked out here (:func:`arrivals`).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy, linear

from benchmarks.agreement import ifca_authors, problem
from benchmarks.agreement.case import Case
from benchmarks.agreement.problem import CLASSES, EPOCHS, HIDDEN, RATE, ROUNDS, SIZES, WIDTH, Values

Doubles = NDArray[np.float64]
CLIENTS = range(len(SIZES))
SHARES = np.array(SIZES) / sum(SIZES)
STEPS, BUFFER, MIXING, LATENCY, SECONDS = 12, 2, 0.6, 0.05, 0.01
ALPHA = 0.1
"""Of FedDyn."""
CLOCK = {
    "schedule.rounds": STEPS,
    "devices.preset": "uniform",
    "devices.latency": LATENCY,
    "devices.seconds_per_sample": SECONDS,
    "devices.bandwidth_down": 1e9,
    "devices.bandwidth_up": 1e9,
}
"""All clients are alike, but for their numbers of samples; bytes take no time."""
MODES: Mapping[str, Mapping[str, object]] = {
    "async": {**CLOCK, "timing.mode": "async", "timing.mixing": MIXING},
    "buffered": {**CLOCK, "timing.mode": "buffered", "timing.buffer": BUFFER},
}
Loss = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""Of features, logits, labels, and the model's values."""


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


@dataclass(frozen=True)
class Arrival:
    client: int
    version: int
    """Server steps before it was sent a model."""


def arrivals(buffer: int) -> Iterator[list[Arrival]]:
    """The updates of every server step: all three clients work at any time, but for those who wait for the step."""
    spent = [2 * LATENCY + SECONDS * EPOCHS * size for size in SIZES]
    under_way = [(spent[client], Arrival(client, 0)) for client in CLIENTS]
    heapq.heapify(queue := [(time, number, arrival) for number, (time, arrival) in enumerate(under_way)])
    for step in range(1, STEPS + 1):
        taken: list[Arrival] = []
        while len(taken) < buffer:
            time, _, arrival = heapq.heappop(queue)
            taken.append(arrival)
        yield sorted(taken, key=lambda arrival: arrival.client)
        for arrival in taken:
            client = arrival.client
            heapq.heappush(queue, (time + spent[client], step * len(SIZES) + client, Arrival(client, step)))


def weight(step: int, arrival: Arrival) -> float:
    """s(τ) = (1 + τ)^−½ in the step of this number, counted from 1."""
    return float((step - arrival.version) ** -0.5)


def vectors(**values: Doubles) -> Values:
    return {name.replace("_", " "): torch.from_numpy(value).float() for name, value in values.items()}


def fedasync() -> Values:
    """θ ← (1 − α s) θ + α s θ̃ (Xie et al. 2019, Algorithm 1)."""
    model = first()
    versions = [model]
    for step, (arrival,) in enumerate(arrivals(1), 1):
        share = MIXING * weight(step, arrival)
        model = (1 - share) * model + share * trained(versions[arrival.version], arrival.client)
        versions.append(model)
    return vectors(server=model)


def ifca_async() -> Values:
    """FedAsync on the model that a client chose: its loss is least of those that it was sent."""
    models = [np.asarray(problem.vector(its.parameters()).double().numpy()) for its in ifca_authors.first_models()]
    versions = [list(models)]
    for step, (arrival,) in enumerate(arrivals(1), 1):
        started, client = versions[arrival.version], arrival.client
        own = int(np.argmin([value_and_gradient(each, *problem.clients()[client])[0] for each in started]))
        share = MIXING * weight(step, arrival)
        models[own] = (1 - share) * models[own] + share * trained(started[own], client)
        versions.append(list(models))
    return vectors(**{f"model_{number}": model for number, model in enumerate(models)})


def fedbuff(uniform: bool) -> Values:
    """θ ← θ + Σ p_i s_i Δ_i with p_i = 1 / K (Nguyen et al. 2022, Algorithm 1), or by samples."""
    model = first()
    versions = [model]
    for step, taken in enumerate(arrivals(BUFFER), 1):
        changes = []
        for arrival in taken:
            start = versions[arrival.version]
            changes.append(weight(step, arrival) * (trained(start, arrival.client) - start))
        weights = [1 if uniform else SIZES[arrival.client] for arrival in taken]
        model = model + np.average(changes, axis=0, weights=weights)
        versions.append(model)
    return vectors(server=model)


def change(mode: str, weight: float, start: Doubles, trained: Doubles, current: Doubles) -> Doubles:
    """What a stale model adds to the current one: FedAsync's α s (θ̃ − θ), else s Δ."""
    return MIXING * weight * (trained - current) if mode == "async" else weight * (trained - start)


def scaffold(mode: str) -> Values:
    """x by s, and c the mean of all c_i (Karimireddy et al. 2020, Algorithm 1, option II)."""
    model, own = first(), np.zeros((len(SIZES), first().size))
    versions = [(model, own.mean(axis=0))]
    for step, taken in enumerate(arrivals(1 if mode == "async" else BUFFER), 1):
        changes = []
        for arrival in taken:
            client, (start, control) = arrival.client, versions[arrival.version]
            correction = control - own[client]
            y = trained(start, client, more=lambda model, found=correction: found)  # type: ignore[misc]
            length = RATE * EPOCHS * len(problem.batches(client))
            own[client] = own[client] - control + (start - y) / length
            changes.append(change(mode, weight(step, arrival), start, y, model))
        model = model + np.mean(changes, axis=0)
        versions.append((model, own.mean(axis=0)))
    return vectors(server=model, control=own.mean(axis=0))


def feddyn(mode: str) -> Values:
    """θ ← θ + mean s Δ − h / α, h the mean of all g_k (Acar et al. 2021, Algorithm 1)."""
    model, own = first(), np.zeros((len(SIZES), first().size))
    versions = [model]
    for step, taken in enumerate(arrivals(1 if mode == "async" else BUFFER), 1):
        changes = []
        for arrival in taken:
            client, start = arrival.client, versions[arrival.version]
            pull = partial(lambda start, linear, model: ALPHA * (model - start) - linear, start, own[client].copy())
            w = trained(start, client, more=pull)
            own[client] -= ALPHA * (w - start)
            changes.append(change(mode, weight(step, arrival), start, w, model))
        model = model + np.mean(changes, axis=0) - own.mean(axis=0) / ALPHA
        versions.append(model)
    return vectors(server=model, correction=own.mean(axis=0))


def qfedavg() -> Values:
    """Σ p F s Δ L / Σ p (‖L Δ‖² + L F), q = 1 and L = 1/η (Li et al. 2020, Algorithm 2), F before local work."""
    model = first()
    versions = [model]
    for step, taken in enumerate(arrivals(BUFFER), 1):
        above, below = np.zeros(model.size), 0.0
        for arrival in taken:
            client, start = arrival.client, versions[arrival.version]
            loss = value_and_gradient(start, *problem.clients()[client])[0]
            moved = (trained(start, client) - start) / RATE
            above += SIZES[client] * loss * weight(step, arrival) * moved
            below += SIZES[client] * (float(moved @ moved) + loss / RATE)
        model = model + above / below
        versions.append(model)
    return vectors(server=model)


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
    from raysim.engine.schedule import cohort

    model, options = first(), Schedule(sampling="poisson", sampling_rate=0.5)
    for number in range(1, STEPS + 1):
        total = np.zeros(model.size)
        for client in cohort(options, len(SIZES), seeds.numpy_generator(0, "participants", number)).tolist():
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
    """What is compared, in words, and the case."""
    asynchronous, buffered = MODES["async"], MODES["buffered"]
    yield "FedAsync", Case("fedavg", fedasync, asynchronous)
    yield "FedAsync", Case("ifca", ifca_async, {**asynchronous, "method.clusters": ifca_authors.CLUSTERS})
    for weights in ("uniform", "samples"):
        options: dict[str, Any] = {**buffered, "timing.buffer_weights": weights}
        yield f"FedBuff, {weights}", Case("fedavg", partial(fedbuff, weights == "uniform"), options)
    for mode, timing in MODES.items():
        yield mode, Case("scaffold", partial(scaffold, mode), timing)
        yield mode, Case("feddyn", partial(feddyn, mode), {**timing, "method.alpha": ALPHA})
    yield "buffered", Case("qfedavg", qfedavg, {**buffered, "method.q": 1.0})
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
