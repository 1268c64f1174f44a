"""AdaFGL in plain float64 code: dense matrices, first layers on the wide features, autograd, a loop over clients.

Nothing of it calls raysim, but for first values and for the halves of the labels that raysim draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, cross_entropy

from benchmarks.agreement import problem
from benchmarks.agreement.case import Case
from benchmarks.agreement.problem import Values
from benchmarks.agreement.subgraphs import (
    CLASSES,
    CLIENTS,
    LAYERS,
    PARTS,
    Model,
    case,
    first,
    logits,
    mixture,
    plain,
    spreading,
    stepped,
)
from raysim.seeds import torch_generator

FEDERATED, EPOCHS, HOPS, WIDTH, STEPS = 1, 3, 2, 4, 3
ALPHA, BETA, ALIKE = 0.3, 0.4, 0.998
NETWORKS = {"homophilous": 2, "of_features": 3, "of_hops": 3, "of_messages": 3}
"""Layers of each."""
OPTIONS = {
    "method.federated_rounds": FEDERATED,
    "method.personal_epochs": EPOCHS,
    "method.hops": HOPS,
    "method.width": WIDTH,
    "method.steps": STEPS,
    "method.dropout": 0.0,
    "method.alpha": ALPHA,
    "method.beta": BETA,
    "method.alike": ALIKE,
}


def names() -> list[str]:
    """Parameters of a client's own networks."""
    found = []
    for network, layers in NETWORKS.items():
        found += [f"personal.{network}.{part}" for part in ("first", "bias", "slope")]
        found += [f"personal.{network}.layers.{k}.{part}" for k in range(layers - 1) for part in ("weight", "bias")]
    return found


@dataclass(frozen=True)
class Client:
    """A client's knowledge once the averaged model is there."""

    wide: Tensor
    """X, P̃X, P̃²X side by side [n, 3 F]."""
    width: int
    """F."""
    known: Tensor
    """P̂ [n, C]."""
    alike: Tensor
    """B [n, n]."""
    score: float
    train: Tensor
    labels: Tensor


def known_of(client: int, model: Model) -> Client:
    adjacency, x, train, labels = PARTS.client(client)
    known = logits(model, spreading(adjacency), x).softmax(1)
    alike = (cosine_similarity(known[:, None], known[None], dim=2) > ALIKE).double()
    alike.fill_diagonal_(0)
    assert 0 < alike.sum() < alike.numel() - len(alike), "all nodes are alike, or none"
    mended = spreading(ALPHA * adjacency + (1 - ALPHA) * alike)
    hops = [x]
    for _ in range(HOPS):
        hops.append(mended @ hops[-1])
    score = confidence(client, spreading(adjacency), train, labels)
    return Client(torch.cat(hops, dim=1), x.shape[1], known, alike, score, train, labels)


def confidence(client: int, spread: Tensor, train: Tensor, labels: Tensor) -> float:
    """The share of hidden training nodes to which the right label spreads from the others."""
    order = torch.randperm(len(train), generator=torch_generator(0, "adafgl labels", 1, client)).tolist()
    half = len(order) // 2
    start = np.full((len(spread), CLASSES), 1 / CLASSES)
    for place in order[:half]:
        start[train[place]] = np.eye(CLASSES)[labels[place]]
    values = start
    for _ in range(STEPS):
        values = 0.5 * start + 0.5 * spread.numpy() @ values
    right = 0
    for place in order[half:]:
        own, rest = values[train[place], labels[place]], np.delete(values[train[place]], labels[place])
        right += own > (1 + 1e-5) * rest.max()
    return right / (len(order) - half)


def perceptron(model: Model, network: str, x: Tensor) -> Tensor:
    prefix = f"personal.{network}"
    found = x @ torch.cat(model[f"{prefix}.first"].split(WIDTH, dim=1)) + model[f"{prefix}.bias"]
    for k in range(NETWORKS[network] - 1):
        found = torch.where(found > 0, found, model[f"{prefix}.slope"] * found)
        found = found @ model[f"{prefix}.layers.{k}.weight"].T + model[f"{prefix}.layers.{k}.bias"]
    return found


def messages(model: Model, client: Client) -> Tensor:
    start = perceptron(model, "of_messages", client.wide)
    slope, chances = model["personal.of_messages.slope"], start.softmax(1)
    related = cosine_similarity(chances[:, None], chances[None], dim=2) * (1 - torch.eye(len(start)).double())
    related = BETA * client.alike + (1 - BETA) * related
    mean = related.mean()
    signed = torch.where(related > mean, (related - mean) / (related.max() - mean), -related / mean)
    signed = signed + torch.eye(len(start)).double()
    both = [torch.where(each > 0, each, slope * each) @ start for each in (signed, -signed)]
    return 0.5 * (both[0].softmax(1) - both[1].softmax(1) + start)


def loss(client: Client, model: Model) -> Tensor:
    near = perceptron(model, "homophilous", client.wide)
    far = [
        perceptron(model, "of_features", client.wide[:, : client.width]),
        perceptron(model, "of_hops", client.wide),
        messages(model, client),
    ]
    found = torch.zeros(()).double()
    for each in [near, *far]:
        counts = client.score > 0 if each is near else client.score < 1
        found = found + counts * cross_entropy(each[client.train], client.labels)
    return found + (client.score > 0) * (near - client.known).square().mean()


def adafgl() -> Values:
    """One round of FedAvg, two of three personal steps."""
    model, own = first("adafgl", LAYERS, OPTIONS), first("adafgl", names(), OPTIONS)
    samples = torch.tensor([len(PARTS.client(client)[2]) for client in range(CLIENTS)], dtype=torch.float64)
    for _ in range(FEDERATED):
        trained = [stepped(model, partial(plain, client)) for client in range(CLIENTS)]
        model = mixture(trained, samples / samples.sum())
    found = {}
    for client in range(CLIENTS):
        networks = stepped(own, partial(loss, known_of(client, model)), EPOCHS * (problem.ROUNDS - FEDERATED))
        parts = [*(model[name] for name in LAYERS), *(networks[name] for name in names())]
        found[f"client {client}"] = torch.cat([part.flatten() for part in parts]).float()
    return found


def cases() -> Iterator[tuple[str, Case]]:
    """AdaFGL by the models that clients are judged by: the averaged one, and each client's networks."""
    yield "personal networks on dense graphs", case("adafgl", adafgl, OPTIONS, [*LAYERS, *names()])
