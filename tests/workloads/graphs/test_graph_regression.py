"""Numbers that a user's own graphs are labeled with: predicted, judged, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import global_add_pool

import raysim
from raysim.workloads.errors import WorkloadError
from tests.own_graphs import Net, graph

OPTIONS: dict[str, Any] = {"rounds": 3, "local_epochs": 1, "engine": {"backend": "inline"}, "pictures": False}


def test_numbers_are_predicted_and_judged(tmp_path: Path) -> None:
    """The number of nodes, from features of ones: a linear layer on their sum needs weights that sum to 1."""

    def sized(count: int, twice: bool = False) -> list[Data]:
        numbers = [4 + number % 5 for number in range(count)]
        targets = [torch.tensor([[nodes / 4, -nodes / 4]] if twice else [nodes / 4]) for nodes in numbers]
        return [graph(1, n, x=torch.ones(n, 1) / 4, y=y) for n, y in zip(numbers, targets, strict=True)]

    class Sum(torch.nn.Module):
        def __init__(self, outputs: int = 1) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, outputs, bias=False)
            torch.nn.init.zeros_(self.layer.weight)

        def forward(self, batch: Any) -> torch.Tensor:
            found: torch.Tensor = self.layer(global_add_pool(batch.x, batch.batch, batch.num_graphs))
            return found

    options = {**OPTIONS, "rounds": 20, "learning_rate": 0.1}
    clients = raysim.split(sized(40), clients=2, partition="iid")
    metrics = {"size": lambda outputs, y: y}
    tests = [
        sized(5),
        sized(5),
    ]  # 4 to 8 nodes, targets 1 to 2: mean 1.5, of squares (1 + 1.25² + 1.5² + 1.75² + 4) / 5
    found = raysim.run(
        "fedavg", model=Sum(), clients=clients, test=tests, metrics=metrics, **options, output=str(tmp_path / "one")
    )
    assert found.config["workload"]["classes"] == 1 and "accuracy" not in found.rounds
    assert found.rounds["size"].tolist() == [1.5] * 20
    assert found.rounds["absolute_error"].iloc[-1] < 0.01
    assert found.model.get_parameter("layer.weight").item() == pytest.approx(1, abs=0.01)
    still: dict[str, Any] = {"loss": lambda outputs, y: 0 * outputs.sum(dim=1) + (y**2).mean(dim=1)}
    two = raysim.run(
        "fedavg",
        model=Sum(2),
        clients=[sized(10, True)] * 2,
        test=[sized(5, True)] * 2,
        **still,
        **OPTIONS,
        output=str(tmp_path / "two"),
    )
    assert two.rounds["loss"].tolist() == [2.375] * 3 and two.rounds["absolute_error"].iloc[-1] == 1.5


@pytest.mark.parametrize(
    ("labels", "model", "words"),
    [
        (
            (torch.tensor([0.5]), torch.tensor([1])),
            Net(3, 1),
            "client 1: its graphs have classes for y, and others 1 numb",
        ),
        ((torch.tensor([0.5]), torch.tensor([float("nan")])), Net(3, 1), "float y must be finite and one number or"),
        ((torch.tensor([0.5, 1.0]),) * 2, Net(3, 2), r"float y must be finite and one number or \[1, D\]"),
        ((torch.tensor([0.5]),) * 2, Net(3, 2), r"must give \(2,\) or \(2, 1\)"),
    ],
)
def test_numbers_that_cannot_be_predicted(labels: Any, model: Any, words: str, tmp_path: Path) -> None:
    clients = [[graph(0, y=label) for _ in range(5)] for label in labels]
    with pytest.raises(WorkloadError, match=words):
        raysim.run("fedavg", model=model, clients=clients, output=str(tmp_path / "run"), **OPTIONS)
    assert not (tmp_path / "run").exists()
