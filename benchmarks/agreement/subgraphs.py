"""Methods of subgraph learning in plain float64 code: dense matrices, autograd, a loop over clients.

Nothing of it calls raysim, but for the first values of the model and the random graph of FED-PUB, which follow from
raysim's seed. The network is a GCN of two layers on three clients' parts of one graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

import raysim
from benchmarks.agreement import problem
from benchmarks.agreement.case import Case
from benchmarks.agreement.problem import Values
from raysim import seeds
from raysim.client_side.worker import Worker
from raysim.config.command_line import given_config
from raysim.engine.load_federation import load_federation
from raysim.workloads.parallel_map import Sequential

NODES, WIDTH, CLASSES, CLIENTS, HIDDEN = 36, 6, 3, 3, 5
EPOCHS, RATE = 2, 0.3
GENERATOR = {
    "method.generator_epochs": 100,
    "method.generator_rate": 0.01,
    "method.hidden_share": 1.0,
    "method.width": 16,
    "workload.exchange": "samples",
}
"""Options of FedSage+ with which two clients make four neighbors each."""
LAYERS = ("body.convolutions.0.lin.weight", "body.convolutions.0.bias", "head.weight", "head.bias")
Model = dict[str, Tensor]
"""The values of the layers, and with masks those of ``mask NAME``."""
Loss = Callable[[Model], Tensor]


class Parts:
    """The graph of the problem: features, labels, edges, the client and the role of each node."""

    def __init__(self) -> None:
        draws = np.random.default_rng(5)
        self.labels = draws.integers(CLASSES, size=NODES)
        self.x = np.eye(CLASSES)[self.labels] @ draws.random((CLASSES, WIDTH)) + 0.3 * draws.random((NODES, WIDTH))
        self.x = self.x.astype(np.float32)
        near = self.labels[:, None] == self.labels[None]
        drawn = np.triu(draws.random((NODES, NODES)) < np.where(near, 0.25, 0.05), 1)
        self.edges = np.argwhere(drawn)
        self.owners = np.arange(NODES) % CLIENTS
        self.masks = {
            part: (np.arange(NODES) // CLIENTS) % 3 == row for row, part in enumerate(("train", "val", "test"))
        }

    def options(self, folder: Path) -> Mapping[str, object]:
        """The graph written to files, and the options that read them."""
        masks: dict[str, Any] = {f"{part}_masks": mask[None] for part, mask in self.masks.items()}
        np.savez(folder / "made.npz", node_features=self.x, node_labels=self.labels, edges=self.edges, **masks)
        (folder / "owners.txt").write_text("\n".join(map(str, self.owners)))
        return {
            "workload.name": "nodes",
            "workload.path": str(folder / "made.npz"),
            "workload.partition": "file",
            "workload.owners": str(folder / "owners.txt"),
            "workload.clients": CLIENTS,
            "workload.normalize": False,
            "model.name": "gcn",
            "model.hidden": HIDDEN,
            "model.dropout": 0.0,
            "training.optimizer": "sgd",
            "training.weight_decay": 0.0,
            "training.learning_rate": RATE,
            "schedule.local_epochs": EPOCHS,
            "schedule.rounds": problem.ROUNDS,
            "engine.backend": "inline",
        }

    def adjacency(self, nodes: np.ndarray[Any, Any]) -> Tensor:
        """A of the edges between some nodes [n, n]."""
        whole = np.zeros((NODES, NODES))
        whole[tuple(self.edges.T)] = 1
        return torch.from_numpy((whole + whole.T)[np.ix_(nodes, nodes)])

    def client(self, client: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """A, X, training nodes and their labels of a client."""
        own = np.flatnonzero(self.owners == client)
        train = np.flatnonzero(self.masks["train"][own])
        x = torch.from_numpy(self.x[own]).double()
        return self.adjacency(own), x, torch.from_numpy(train), torch.from_numpy(self.labels[own[train]])


PARTS = Parts()


def spreading(adjacency: Tensor) -> Tensor:
    """D̃^{-1/2} (A + I) D̃^{-1/2}."""
    looped = adjacency + torch.eye(len(adjacency), dtype=adjacency.dtype)
    roots = looped.sum(1).rsqrt()
    return roots[:, None] * looped * roots[None]


def weight(model: Model, name: str) -> Tensor:
    return model[name] * model.get(f"mask {name}", torch.ones(()))


def features(model: Model, spread: Tensor, x: Tensor) -> Tensor:
    """Â relu(Â X W₁ᵀ + b₁)."""
    return spread @ (spread @ x @ weight(model, LAYERS[0]).T + model[LAYERS[1]]).relu()


def logits(model: Model, spread: Tensor, x: Tensor) -> Tensor:
    return features(model, spread, x) @ weight(model, LAYERS[2]).T + model[LAYERS[3]]


def first(method: str, names: Sequence[str] = LAYERS, options: Mapping[str, object] = {}) -> Model:
    """The values that raysim's model begins with."""
    with TemporaryDirectory() as place:
        config = given_config({"method": method, **PARTS.options(Path(place)), **options})
        worker = Worker(config, load_federation(config, Sequential()))
        named = dict(worker.model(0).module.named_parameters())
    return {name: named[name].detach().double() for name in names}


def stepped(model: Model, loss: Loss, epochs: int = EPOCHS) -> Model:
    """Steps of gradient descent."""
    for _ in range(epochs):
        leaves = {name: value.detach().requires_grad_() for name, value in model.items()}
        gradients = torch.autograd.grad(loss(leaves), list(leaves.values()))
        model = {
            name: value.detach() - RATE * gradient
            for (name, value), gradient in zip(leaves.items(), gradients, strict=True)
        }
    return model


def plain(client: int, model: Model) -> Tensor:
    adjacency, x, train, labels = PARTS.client(client)
    return cross_entropy(logits(model, spreading(adjacency), x)[train], labels)


def mixture(models: list[Model], weights: Tensor) -> Model:
    return {
        name: torch.stack([w * model[name] for w, model in zip(weights, models, strict=True)]).sum(0) for name in LAYERS
    }


def joined(models: list[Model]) -> Values:
    return {
        f"client {k}": torch.cat([model[name].flatten() for name in LAYERS]).float() for k, model in enumerate(models)
    }


def fedgta() -> Values:
    """Five steps of label propagation, six raw and central moments, threshold 0.5."""
    models = [first("fedgta") for _ in range(CLIENTS)]
    for _ in range(problem.ROUNDS):
        models = [stepped(model, partial(plain, client)) for client, model in enumerate(models)]
        moments, sure = zip(*(statistics(client, model) for client, model in enumerate(models)), strict=True)
        alike = torch.nn.functional.cosine_similarity(torch.stack(moments)[:, None], torch.stack(moments)[None], dim=2)
        weights = torch.where(alike > 0.97, torch.tensor(sure)[None], 0.0)
        models = [mixture(models, row / row.sum()) for row in weights]
    return joined(models)


def statistics(client: int, model: Model) -> tuple[Tensor, float]:
    """M and H of a client's model."""
    adjacency, x, train, labels = PARTS.client(client)
    spread = spreading(adjacency)

    def labeled(values: Tensor) -> Tensor:
        values = values.clone()
        values[train] = one_hot(labels, CLASSES).double()
        return values

    start = labeled(logits(model, spread, x).softmax(1))
    values = start
    for _ in range(5):
        values = 0.5 * start + 0.5 * spread @ values
    found, sure = labeled(values.softmax(1)), labeled((values / 20).softmax(1))
    centered = found - found.mean(0)
    moments = torch.cat([(part**k).mean(0) for part in (found, centered) for k in range(1, 7)])
    entropy = torch.where(sure > 0, sure * sure.clamp(min=1e-300).log(), 0.0)
    degrees = adjacency.sum(1) + 1
    return moments, float((degrees[:, None] * (np.exp(-1) + entropy)).sum())


def fedpub() -> Values:
    """Masks on both weights, both penalties from the second round on, similarities on raysim's random graph."""
    from raysim.methods.fedpub import proxy_graph

    proxy = proxy_graph(WIDTH, 1, 0.1, 0, "cpu")
    dense = torch.zeros(len(proxy.x), len(proxy.x), dtype=torch.float64)
    dense[tuple(proxy.edge_index)] = 1
    start = first("fedpub")
    received = [start] * CLIENTS
    masks = [{f"mask {name}": torch.ones_like(start[name]) for name in (LAYERS[0], LAYERS[2])} for _ in range(CLIENTS)]
    trained: list[Model] = []
    for number in range(problem.ROUNDS):
        trained = []
        for client in range(CLIENTS):
            loss = partial(penalized, client, received[client], 0.05 if number else 0.0)
            trained.append(stepped({**received[client], **masks[client]}, loss))
            masks[client] = {name: value for name, value in trained[client].items() if name.startswith("mask")}
        means = torch.stack([features(model, spreading(dense), proxy.x.double()).mean(0) for model in trained])
        alike = torch.nn.functional.cosine_similarity(means[:, None], means[None], dim=2)
        received = [mixture(trained, row) for row in (3 * alike).softmax(1)]
    return joined(trained)


def penalized(client: int, received: Model, proximal: float, model: Model) -> Tensor:
    sparsity = torch.stack([value.abs().sum() for name, value in model.items() if name.startswith("mask")]).sum()
    distance = torch.stack([(model[name] - received[name]).square().sum() for name in LAYERS]).sum()
    return plain(client, model) + 0.02 * sparsity + proximal * distance


def fedgcn() -> Values:
    """Means by samples of models trained on Â X of the whole graph, the second layer on neighbors elsewhere too."""
    whole, every = spreading(PARTS.adjacency(np.arange(NODES))), torch.from_numpy(PARTS.x).double()
    model, samples = first("fedgcn"), [len(PARTS.client(client)[2]) for client in range(CLIENTS)]
    for _ in range(problem.ROUNDS):
        trained = [stepped(model, partial(in_whole_graph, client, whole, every)) for client in range(CLIENTS)]
        model = mixture(trained, torch.tensor(samples, dtype=torch.float64) / sum(samples))
    return joined([model] * CLIENTS)


def fedtad() -> Values:
    """Distillation twice a round on graphs of 12 nodes; the generator's first values and noise are raysim's draws."""
    from raysim.methods._node_generator import first_values
    from raysim.seeds import torch_generator

    model, phis = first("fedtad"), torch.stack([returns(*PARTS.client(client)) for client in range(CLIENTS)])
    samples = torch.tensor([len(PARTS.client(client)[2]) for client in range(CLIENTS)], dtype=torch.float64)
    draws = torch_generator(0, "fedtad generator", 0)
    generator = first_values(WIDTH, CLASSES, draws).double().requires_grad_()
    student = {name: value.clone().requires_grad_() for name, value in model.items()}
    steps = torch.optim.Adam([generator], 1e-3, weight_decay=5e-4)
    student_steps = torch.optim.Adam(student.values(), 1e-3, weight_decay=5e-4)
    labels = torch.arange(CLASSES).repeat_interleave(4)
    for number in range(1, problem.ROUNDS + 1):
        trained = [stepped(model, partial(plain, client)) for client in range(CLIENTS)]
        for name, value in mixture(trained, samples / samples.sum()).items():
            student[name].data.copy_(value)
        draws = draws if number == 1 else torch_generator(0, "fedtad generator", number)
        for _ in range(2):
            noise = torch.randn(12, 32, generator=draws).double()
            steps.zero_grad()
            x = made(generator, noise, labels)
            spread = joined_by_cosine(x.detach())
            loss = torch.stack([(noise[:, None] - noise[None]).square().mean(2)])[0]
            loss = CLIENTS * torch.exp(-(loss * (x[:, None] - x[None]).abs().mean(2)).mean())
            for client in range(CLIENTS):
                known, own = logits(trained[client], spread, x), logits(student, spread, x)
                for c in range(CLASSES):
                    share, rows = phis[client, c] / phis[:, c].sum(), labels == c
                    apart = (own - known.detach())[rows].abs().mean()
                    loss = loss + share * (cross_entropy(known[rows], labels[rows]) - apart)
            loss.backward()
            steps.step()
            x = made(generator, noise, labels).detach()
            spread = joined_by_cosine(x)
            for _ in range(2):
                student_steps.zero_grad()
                apart = torch.zeros((), dtype=torch.float64)
                for client in range(CLIENTS):
                    gap = (logits(student, spread, x) - logits(trained[client], spread, x)).abs()
                    for c in range(CLASSES):
                        apart = apart + phis[client, c] / phis[:, c].sum() * gap[labels == c].mean()
                apart.backward()
                student_steps.step()
        model = {name: value.detach().clone() for name, value in student.items()}
    return joined([model] * CLIENTS)


def returns(adjacency: Tensor, x: Tensor, train: Tensor, labels: Tensor) -> Tensor:
    """Φ of a client, with the probabilities of a walk's return after one and two steps."""
    walk = adjacency / adjacency.sum(1, keepdim=True).clamp(min=1)
    phi = torch.cat([x, walk.diagonal()[:, None], (walk @ walk).diagonal()[:, None]], dim=1)
    cosines = torch.nn.functional.cosine_similarity(phi[:, None], phi[None], dim=2)
    known = (1 + (adjacency * cosines).sum(1)) / (adjacency.sum(1) + 1)
    return torch.stack([known[train][labels == c].sum() for c in range(CLASSES)])


def made(values: Tensor, noise: Tensor, labels: Tensor) -> Tensor:
    """The generator: an embedding [3, 3], and layers of 64, 128, 256 and 6 with tanh between."""
    found = torch.cat([values[: CLASSES**2].reshape(CLASSES, CLASSES)[labels], noise], dim=1)
    start = CLASSES**2
    for place, width in enumerate((64, 128, 256, WIDTH)):
        before = found.shape[1]
        matrix = values[start : start + width * before].reshape(width, before)
        start += width * before
        found = found @ matrix.T + values[start : start + width]
        start += width
        found = found.tanh() if place < 3 else found
    return found


def joined_by_cosine(x: Tensor) -> Tensor:
    """Â of the graph that joins each node with the three of the largest cosine, itself among them."""
    cosines = torch.nn.functional.cosine_similarity(x[:, None], x[None], dim=2)
    adjacency = torch.zeros(len(x), len(x), dtype=torch.float64)
    for node, row in enumerate(cosines):
        for other in row.argsort(descending=True)[:3].tolist():
            if other != node:
                adjacency[node, other] = adjacency[other, node] = 1
    return spreading(adjacency)


def fedsageplus() -> Values:
    """Means by samples of models trained on mended graphs; the neighbors are those that raysim's generators make."""
    model, mended, samples = first("fedsageplus"), [], []
    with TemporaryDirectory() as place:
        options = {**PARTS.options(Path(place)), "method": "fedsageplus", "model.name": "gcn", **GENERATOR}
        config = given_config(options)
        federation = load_federation(config, Sequential())
        for client in range(CLIENTS):
            torch.default_generator.manual_seed(seeds.number(0, "global", 1, client))
            mended.append(config.method.mended(federation.client(client, "cpu"), CLASSES))
            samples.append(len(PARTS.client(client)[2]))
    assert any(len(made.centers) for made in mended), "no client has made a neighbor"
    for _ in range(problem.ROUNDS):
        trained = [stepped(model, partial(on_mended_graph, client, mended[client])) for client in range(CLIENTS)]
        model = mixture(trained, torch.tensor(samples, dtype=torch.float64) / sum(samples))
    return joined([model] * CLIENTS)


def on_mended_graph(client: int, made: Any, model: Model) -> Tensor:
    """The loss of a client's training nodes on its graph with the neighbors that were made."""
    adjacency, x, train, labels = PARTS.client(client)
    size, new = len(x), len(made.centers)
    whole = torch.zeros(size + new, size + new, dtype=torch.float64)
    whole[:size, :size] = adjacency
    for place, center in enumerate(made.centers):
        whole[size + place, center] = whole[center, size + place] = 1
    features = torch.cat([x, torch.from_numpy(made.features).double().view(new, x.shape[1])])
    return cross_entropy(logits(model, spreading(whole), features)[train], labels)


def in_whole_graph(client: int, whole: Tensor, every: Tensor, model: Model) -> Tensor:
    """The loss of a client's training nodes, by the outputs of the model on the graph that no client has."""
    chosen = torch.from_numpy(np.flatnonzero((PARTS.owners == client) & PARTS.masks["train"]))
    return cross_entropy(logits(model, whole, every)[chosen], torch.from_numpy(PARTS.labels)[chosen])


def cases() -> Iterator[tuple[str, Case]]:
    """Each method beside plain code, by the models that clients are judged by."""
    yield "dense GCN", case("fedgta", fedgta, {"method.threshold": 0.97})
    yield "the whole graph's GCN", case("fedgcn", fedgcn, {})
    yield "GCN on mended graphs", case("fedsageplus", fedsageplus, GENERATOR)
    few = {"method.epochs": 2, "method.distillations": 2, "method.nodes": 12, "method.neighbors": 3, "method.walk": 2}
    yield "dense GCN", case("fedtad", fedtad, few)
    options = {"method.sparsity": 0.02, "method.proximal": 0.05, "method.prune": 0.0, "method.proxies": 1}
    yield "dense GCN", case("fedpub", fedpub, options)


def case(
    method: str, theirs: Callable[[], Values], options: Mapping[str, object], names: Sequence[str] = LAYERS
) -> Case:
    """A case whose values are these parameters of each client's model, one after another."""

    def run(case: Case, wanted: Iterable[str]) -> Values:
        with TemporaryDirectory() as place:
            settings = {**PARTS.options(Path(place)), "method": method, "output": f"{place}/run", **options}
            result = raysim.run(settings)
            models = {name: result.client_model(int(name[-1])) for name in wanted}
        named = {name: dict(model.named_parameters()) for name, model in models.items()}
        return {name: problem.vector(values[layer] for layer in names) for name, values in named.items()}

    return Case(method, theirs, options, run=run)
