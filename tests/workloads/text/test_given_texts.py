from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import raysim
from raysim.workloads.errors import RaysimError
from raysim.workloads.given.arrays import gather
from tests.own_data import QUICK
from tests.workloads.text.test_labeled_texts import reviews


def pair(count: int = 120, seed: int = 0) -> tuple[list[str], list[int]]:
    frame = reviews(count, seed)
    return frame["text"].tolist(), (frame["label"] == "pos").astype(int).tolist()


class Bag(torch.nn.Module):
    """Sums embeddings; what it is given are token ids."""

    def __init__(self, task: Any) -> None:
        super().__init__()
        self.body = torch.nn.Embedding(task.vocabulary, 8, padding_idx=0)
        self.head = torch.nn.Linear(8, task.classes)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.head(self.body(tokens).mean(1))
        return scores


def test_a_split_of_texts_holds_the_texts() -> None:
    texts, labels = pair(30)
    clients = raysim.split((texts, labels), clients=3, partition="iid", min_samples=2)
    parts = [list(zip(*client, strict=True)) for client in clients]
    assert sorted(item for part in parts for item in part) == sorted(zip(texts, labels, strict=True))


class Items(torch.utils.data.Dataset[Any]):
    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        return self.items[index]


def test_texts_in_every_form_are_the_same_data() -> None:
    pairs = [pair(20, seed) for seed in range(2)]
    forms: list[Any] = [
        pairs,
        [(pd.Series(x), pd.Series(y)) for x, y in pairs],
        [(np.array(x), np.array(y)) for x, y in pairs],
        [(tuple(x), torch.tensor(y)) for x, y in pairs],
        [Items([*zip(x, y, strict=True)]) for x, y in pairs],
    ]
    assert len({gather(form, pair(10, 3)).digest() for form in forms}) == 1


def test_a_run_of_a_split_is_above_the_majority(tmp_path: Any) -> None:
    """Two thirds are positive."""
    clients = raysim.split(pair(300), clients=2, partition="iid", seed=1)
    options = {**QUICK, "rounds": 5, "learning_rate": 2.0, "training.batch_size": 16, "output": str(tmp_path / "run")}
    result = raysim.run("fedavg", model="embedding-bag", clients=clients, test=pair(90, 1), **options)
    assert result.rounds["accuracy"].iloc[-1] > 0.8


def test_a_module_of_ones_own_with_bytes(tmp_path: Any) -> None:
    clients = [pair(60, seed) for seed in range(2)]
    options = {"tokens": "bytes", "max_tokens": 20, "output": str(tmp_path / "run"), **QUICK}
    result = raysim.run("fedavg", model=lambda task: Bag(task), clients=clients, **options)
    model: Any = result.model
    assert model.body.num_embeddings == 257


def test_the_vocabulary_is_that_of_what_clients_train_on(tmp_path: Any) -> None:
    texts = [f"only{row} fine" for row in range(40)]
    clients = raysim.split((texts, np.arange(40) % 2), clients=2, partition="iid")
    result = raysim.run("fedavg", model="embedding-bag", clients=clients, output=str(tmp_path / "run"), **QUICK)
    model: Any = result.model
    assert model.body.embedding.num_embeddings == 32 + 1 + 2  # four of five texts, "fine", padding and unknown


def test_the_digest_is_that_of_the_texts() -> None:
    one, two, three = (gather([(texts, [0, 1])]) for texts in (["ab", "c"], ["a", "bc"], ["ab", "c"]))
    assert one.digest() == three.digest() != two.digest()


BAD: list[tuple[Any, str]] = [
    ([(["a", ""], [0, 1])], "client 0: x: 1 of the texts are empty, first that of sample 1; leave these out"),
    ([(["a", 3], [0, 1])], "client 0: x: sample 1 is int, not a text"),
    ([(["a"], [0, 1])], "x has 1 samples and y 2"),
    ([(["a", "b"], [0, 1]), (np.zeros(2), [0, 1])], "client 1: x holds numbers, but that of client 0 texts"),
    ([(["a", "b"], ["no", "yes"])], "client 0: y: type <U3 is no number"),
]


@pytest.mark.parametrize(("clients", "message"), BAD)
def test_odd_texts_get_a_sentence(clients: Any, message: str, tmp_path: Any) -> None:
    with pytest.raises(RaysimError, match=re.escape(message)):
        raysim.run("fedavg", model="embedding-bag", clients=clients, output=str(tmp_path / "run"), **QUICK)
