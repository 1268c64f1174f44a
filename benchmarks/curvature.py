"""Whether the eigenvalues of clients' gradients are curvatures of the loss, as Remark 1 of FedLD's paper has it.

    python -m benchmarks.curvature --rows docs/results/fedld-curvature.csv

Digits of scikit-learn over ten clients by Dirichlet, a perceptron 64-32-10, FedAvg with one local epoch of SGD a round,
in plain PyTorch. Before some rounds: G has every client's gradient as a row, one of its whole loss or its update after
a local epoch, G Gᵀ / n has the eigenvalues λ_k, and the axes are v_k = Gᵀ e_k / ‖Gᵀ e_k‖ (Eq. 4). The curvature of the
global loss along v_k is v_kᵀ H v_k, by a Hessian-vector product in float64. Printed is the rank correlation (Spearman)
of λ_k with v_kᵀ H v_k over the ten axes, its mean over seeds with a 95 % interval, and the mean curvature along the
leading axis, the last one, and directions drawn at random.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.func import functional_call, grad, jvp

from raysim.comparison import csv_files
from raysim.comparison.differences import mean_difference

CLIENTS, RATE, BATCH, RANDOM = 10, 0.05, 20, 50
ROUNDS = (1, 5, 20, 60)
Record = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--alphas", type=float, nargs="+", default=[0.1, 100.0], help="concentrations of Dirichlet")
    parser.add_argument("--rows", type=Path, default=None, help="a CSV file that gets every axis' values")
    options = parser.parse_args()
    torch.set_num_threads(1)
    records = [record for alpha in options.alphas for seed in range(options.seeds) for record in measured(alpha, seed)]
    if options.rows:
        options.rows.write_text(csv_files.text(records), encoding="utf-8")
    print("\n".join(table(records)))


def read(path: Path) -> list[Record]:
    """The records of a CSV file that this program wrote."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            {name: value if name == "gradient" else float(value) for name, value in row.items()}
            for row in csv.DictReader(file)
        ]


def table(records: list[Record]) -> list[str]:
    """Lines of Markdown: a row for each concentration, kind of gradient and round."""
    lines = ["| α | rows of G | round | rank correlation of λ and curvature | curvature: leading, last, random |"]
    lines.append("|---|---|---|---|---|")
    for alpha, kind, round_ in dict.fromkeys((one["alpha"], one["gradient"], one["round"]) for one in records):
        own = [one for one in records if (one["alpha"], one["gradient"], one["round"]) == (alpha, kind, round_)]
        seeds = [[one for one in own if one["seed"] == seed] for seed in dict.fromkeys(one["seed"] for one in own)]
        ranks = [float(spearmanr([a["eigenvalue"] for a in s], [a["curvature"] for a in s]).statistic) for s in seeds]
        found = mean_difference(ranks)
        leading, last, drawn = (
            np.mean([float(seed[place][name]) for seed in seeds])
            for place, name in ((0, "curvature"), (-1, "curvature"), (0, "random_curvature"))
        )
        lines.append(
            f"| {alpha:g} | {kind} | {round_:g} | {found.text(1, '.2f')} | {leading:.3g}, {last:.3g}, {drawn:.2g} |"
        )
    return lines


def measured(alpha: float, seed: int) -> Iterator[Record]:
    """Eigenvalue and curvature of every axis, before each of :data:`ROUNDS` of one run."""
    generator = np.random.default_rng([seed, int(1000 * alpha)])
    images, labels = load_digits(return_X_y=True)
    parts = _parts(labels, alpha, generator)
    data = [(torch.tensor(images[own] / 16), torch.tensor(labels[own])) for own in parts]
    everything = tuple(torch.cat(column) for column in zip(*data, strict=True))
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)).double()
    shares = np.array([len(own) for own in parts]) / len(images)
    for round_ in range(1, max(ROUNDS) + 1):
        start = {name: value.detach().clone() for name, value in network.named_parameters()}
        updates = []
        for inputs, targets in data:
            network.load_state_dict(start)
            _train(network, inputs, targets, generator)
            updates.append({name: start[name] - value.detach() for name, value in network.named_parameters()})
        network.load_state_dict(start)
        if round_ in ROUNDS:
            whole = [grad(_loss)(start, network, *own) for own in data]
            for kind, gradients in (("gradient", whole), ("update", updates)):
                place = {"alpha": alpha, "seed": seed, "round": round_, "gradient": kind}
                yield from _axes(place, torch.stack([_flat(one) for one in gradients]), network, start, everything)
        mean = {name: sum(p * one[name] for p, one in zip(shares, updates, strict=True)) for name in start}
        network.load_state_dict({name: value - mean[name] for name, value in start.items()})


def _axes(
    place: Record, rows: Tensor, network: nn.Module, start: dict[str, Tensor], everything: tuple[Tensor, ...]
) -> Iterator[Record]:
    """The records of the axes of G [n, d], the leading one first."""
    values, vectors = torch.linalg.eigh(rows @ rows.T / len(rows))
    drawn = torch.randn(RANDOM, rows.shape[1], generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    random = np.mean([_curvature(one / one.norm(), network, start, everything) for one in drawn])
    for number, k in enumerate(reversed(range(len(rows))), start=1):
        axis = rows.T @ vectors[:, k]
        curvature = _curvature(axis / axis.norm(), network, start, everything)
        found = {"axis": number, "eigenvalue": float(values[k]), "curvature": curvature}
        yield {**place, **found, "random_curvature": float(random)}


def _curvature(axis: Tensor, network: nn.Module, start: Mapping[str, Tensor], everything: tuple[Tensor, ...]) -> float:
    """vᵀ H v of the loss of all samples, for v [d]."""
    sizes = [value.numel() for value in start.values()]
    direction = {
        name: part.view_as(value) for (name, value), part in zip(start.items(), axis.split(sizes), strict=True)
    }
    product = jvp(lambda at: grad(_loss)(at, network, *everything), (dict(start),), (direction,))[1]
    return float(_flat(product) @ axis)


def _loss(parameters: Mapping[str, Tensor], network: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.cross_entropy(functional_call(network, dict(parameters), (inputs,)), targets)


def _flat(values: Mapping[str, Tensor]) -> Tensor:
    return torch.cat([value.reshape(-1) for value in values.values()])


def _train(network: nn.Module, inputs: Tensor, targets: Tensor, generator: np.random.Generator) -> None:
    """One local epoch of SGD."""
    optimizer = torch.optim.SGD(network.parameters(), RATE)
    for batch in torch.from_numpy(generator.permutation(len(inputs))).split(BATCH):
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(inputs[batch]), targets[batch]).backward()
        optimizer.step()


def _parts(labels: np.ndarray, alpha: float, generator: np.random.Generator) -> list[np.ndarray]:
    """The samples of each client, at least 10: each class is cut by shares from a Dirichlet distribution."""
    while True:
        clients: list[list[int]] = [[] for _ in range(CLIENTS)]
        for label in range(10):
            own = generator.permutation(np.flatnonzero(labels == label))
            cuts = (np.cumsum(generator.dirichlet([alpha] * CLIENTS))[:-1] * len(own)).astype(int)
            for client, part in zip(clients, np.split(own, cuts), strict=True):
                client.extend(part.tolist())
        if min(map(len, clients)) >= 10:
            return [np.array(client) for client in clients]


if __name__ == "__main__":
    main()
