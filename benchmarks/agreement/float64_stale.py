"""The methods of virtual time in plain float64 code: asynchronous and buffered server steps of stale updates.

When clients are back is worked out here (:func:`arrivals`); local work is that of :mod:`benchmarks.agreement.float64`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.agreement import ifca_authors, problem
from benchmarks.agreement.case import Case
from benchmarks.agreement.float64 import CLIENTS, STEPS, Doubles, first, trained, value_and_gradient, vectors
from benchmarks.agreement.problem import EPOCHS, RATE, SIZES, Values

BUFFER, MIXING, LATENCY, SECONDS = 2, 0.6, 0.05, 0.01
ALPHA = 0.1
"""Server state of FedDyn."""
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
    """Change that a stale model adds to the current one: FedAsync's α s (θ̃ − θ), else s Δ."""
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


def cases() -> Iterator[tuple[str, Case]]:
    """Cases compared in virtual time, by their names in words."""
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
