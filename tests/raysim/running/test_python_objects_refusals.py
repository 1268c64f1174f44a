"""Data of a user's own that cannot be trained on: one sentence each, before anything is written."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

import raysim
from raysim.errors import ConfigError, RaysimError
from raysim.workloads.given import fit
from tests.own_data import QUICK, Items, Net, samples, seeded, three_clients

X, Y = samples(12)


class Growing(Items):
    def __len__(self) -> int:
        self.asked = getattr(self, "asked", 0) + 1
        return len(self.y) - (self.asked < 2)


class Random(Items):
    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return torch.tensor(self.x[index]) + torch.rand(4), int(self.y[index])


class Exiting(Items):
    def __getitem__(self, index: int) -> Any:
        return super().__getitem__(index) if index < 3 else sys.exit(0)


class Sparse(Items):
    def __getitem__(self, index: int) -> Any:
        return torch.tensor(self.x[index]).to_sparse(), self.y[index]


class Triples(Items):
    def __getitem__(self, index: int) -> Any:
        return self.x[index], self.y[index], index


class Failing(Items):
    def __getitem__(self, index: int) -> Any:
        raise OSError(f"no file {index}.png")


class Stream(torch.utils.data.IterableDataset[Any]):
    def __iter__(self) -> Any:
        return iter(zip(X, Y, strict=True))


def with_nan() -> np.ndarray:
    broken = X.copy()
    broken[7, 2] = np.nan
    return broken


def third(data: object) -> dict[str, Any]:
    """Two good clients and this one."""
    return {"clients": [*three_clients()[:2], data]}


CASES: dict[str, tuple[Callable[[], dict[str, Any]], str]] = {
    "fewer labels than inputs": (lambda: third((X, Y[:5])), r"client 2: x has 12 samples and y 5"),
    "another shape than the others": (
        lambda: third((X[:, :3], Y)),
        r"client 2: a sample's x has shape \(3,\), but that of client 0 \(4,\)",
    ),
    "another type than the others": (lambda: third((X.astype(int), Y)), r"client 2: x is int64, but .* float32"),
    "texts": (lambda: third((X, np.array(["a"] * 12))), r"client 2: y: type <U1 is no number"),
    "objects": (lambda: third((np.array([None] * 12), Y)), r"client 2: x: type object is no number"),
    "rows of several lengths": (lambda: third(([[1.0], [1.0, 2.0]], [0, 1])), "client 2: x: its samples have differ"),
    "no sample": (lambda: third((X[:0], Y[:0])), r"client 2: it has no sample"),
    "NaN": (lambda: third((with_nan(), Y)), r"client 2: x holds NaN or infinite values, first in sample 7"),
    "infinite": (lambda: third((X / 0.0, Y)), r"client 2: x holds NaN or infinite values, first in sample 0"),
    "a label beyond the outputs": (lambda: third((X, Y + 5)), r"label 7 is out of range for 3 classes \(0 to 2\)"),
    "a negative label": (lambda: third((X, Y - 3)), r"label -3 is out of range for 3 classes"),
    "a test label beyond them": (lambda: {"test": (X, Y + 1)}, r"test: label 3 is out of range"),
    "a test of another shape": (lambda: {"test": (X[:, :1], Y)}, r"test: a sample's x has shape \(1,\)"),
    "too few tests": (lambda: {"test": [(X, Y)]}, r"test: 1 test sets for 3 clients"),
    "tests of other numbers": (
        lambda: {"test": dict.fromkeys((1, 2, 3), (X, Y))},
        r"same names as clients \(0 to 2, as clients are given in a list\), and '0' is in one",
    ),
    "tests of other names": (
        lambda: {"clients": {"a": (X, Y), "b": (X, Y)}, "test": {"a": (X, Y), "c": (X, Y)}},
        r"test: it must have the same names as clients, and 'b' is in one",
    ),
    "a Dataset that is random": (lambda: third(Random(X, Y)), r"client 2: .* something else when item 0 was read"),
    "a Dataset that grows": (lambda: third(Growing(X, Y)), r"client 2: the Dataset had 11 items and now has 12"),
    "a Dataset of triples": (lambda: third(Triples(X, Y)), r"client 2: item 0 of the Dataset is 3 values"),
    "a Dataset that fails": (lambda: third(Failing(X, Y)), r"client 2: item 0 .* cannot be read: OSError: no file 0"),
    "a first Dataset that fails": (
        lambda: {"clients": [Failing(X, Y)]},
        r"client 0: item 0 .* cannot be read: OSError: no file 0",
    ),
    "a first stream": (lambda: {"clients": [Stream()]}, r"client 0: Stream has no length"),
    "one list of numbers for all": (
        lambda: {"clients": (torch.zeros(5), torch.zeros(5, dtype=torch.int64))},
        r"clients: .*raysim.split\(data, clients=10\)",
    ),
    "a label that no one can mean": (
        lambda: {"clients": [(X, np.full(12, 2**62))], "test": None},
        r"label 4611686018427387904 would make 4611686018427387905 classes, and at most 1048576 are allowed",
    ),
    "items of several shapes": (
        lambda: third(Items([X[0], X[1, :2], *X[2:]], Y)),
        r"client 2: x of item 1 has shape \(2,\)",
    ),
    "a stream": (lambda: third(Stream()), r"client 2: Stream has no length"),
    "a name for data": (lambda: third("mnist"), r"client 2: str is no data for training"),
    "one data set for all": (lambda: {"clients": (X, Y)}, r"clients: .*raysim.split\(data, clients=10\)"),
    "no clients": (lambda: {"clients": []}, r"clients: there is none"),
    "inputs that the model cannot take": (
        lambda: {"clients": [(X[:, :2], Y)], "test": None},
        r"the model cannot take the clients' inputs \(x of float32 \(2, 2\)\): RuntimeError: .*multiplied \(2x2 and "
        r"4x\d+\)\. A batch of x has the shape \(B, 2\): make the model's first layer take that, or reshape x$",
    ),
    "whole numbers for a model of fractions": (
        lambda: {"clients": [(X.astype(np.uint8), Y)], "test": None},
        r"the model cannot take the clients' inputs \(x of int64 \(2, 4\)\): .* convert x, or the model$",
    ),
    "a class for each sample, said to be sequences": (
        lambda: {"task": "sequences"},
        r"clients: y is int64 \(90,\); sequences wants whole numbers, the class of each position of a sample from 0",
    ),
    "labels of one column": (
        lambda: {"clients": [(X, Y[:, None])], "test": None},
        r"the model gives \(2, 3\) .* with labels \(2, 1\); .* Give y.ravel\(\) for classes",
    ),
    "classes with a fraction": (
        lambda: {"clients": [(X, Y.astype(float))], "test": None},
        r"regression asks for \(2,\). Give y.astype\(int\) for classes, or set task=",
    ),
    "classes with a fraction in one column": (
        lambda: {"clients": [(X, Y[:, None].astype(float))], "test": None},
        r"Give y.ravel\(\).astype\(int\) for classes",
    ),
    "a key that is no name": (lambda: {"clients": {None: (X, Y)}, "test": None}, "clients: the key None is no name"),
    "two keys of one name": (
        lambda: {"clients": {1: (X, Y), "1": (X, Y)}, "test": None},
        "clients: two of its keys are called '1'",
    ),
    "a name that is no text": (
        lambda: {"clients": {"a\ud800": (X, Y)}, "test": None},
        r"clients: client 'a\\ud800' has a name with signs that are no characters",
    ),
    "a name without an end": (
        lambda: {"clients": {"a" * 300: (X, Y)}, "test": None},
        "clients: client 'a{40}'… has a name of 300 characters, and 200 are allowed; rename it",
    ),
    "a name that is empty": (lambda: {"clients": {"": (X, Y)}, "test": None}, "clients: client '' has an empty name"),
    "a title that is no text": (lambda: {"title": "a\x00b"}, r"title: the data 'a\\x00b' has a name with signs"),
    "a title without an end": (lambda: {"title": "t" * 201}, "title: the data 't{40}'… has a name of 201 characters"),
    "one-hot labels": (
        lambda: {"clients": [(X, np.eye(3)[Y])], "test": None},
        r"y is one-hot, float64 \(12, 3\) .* y.argmax\(1\) to learn 3 classes, or say task='regression'",
    ),
    "one-hot labels of whole numbers": (
        lambda: {"clients": [(X, np.eye(3, dtype=int)[Y])], "test": None},
        r"y is one-hot, int64 \(12, 3\) .* y.argmax\(1\) to learn 3 classes, or say task='multilabel'",
    ),
    "one-hot labels of truths": (
        lambda: {"clients": [(X, np.eye(3, dtype=bool)[Y])], "test": None},
        r"y is one-hot, bool \(12, 3\) .* y.argmax\(1\) to learn 3 classes, or say task='multilabel'",
    ),
    "a sparse tensor": (lambda: third((torch.tensor(X).to_sparse(), Y)), r"client 2: x: a tensor that is sparse coo; "),
    "a sparse matrix": (lambda: third((csr_matrix(X), Y)), r"client 2: x: a sparse matrix; give .* x.toarray\(\)"),
    "a tensor without values": (
        lambda: third((torch.empty(12, 4, device="meta"), Y)),
        "client 2: x: a tensor that is on the device meta",
    ),
    "a quantized tensor": (
        lambda: third((torch.quantize_per_tensor(torch.tensor(X), 0.1, 0, torch.qint8), Y)),
        "client 2: x: a tensor that is quantized",
    ),
    "masked values": (lambda: third((np.ma.masked_array(X, X > 0), Y)), r"client 2: x: \d+ of its values are masked"),
    "items without values": (
        lambda: third(Sparse(X, Y)),
        r"client 2: item 0 of the Dataset is no array: a tensor that is sparse coo",
    ),
    "a Dataset that ends the program": (
        lambda: third(Exiting(X, Y)),
        r"item 3 .* cannot be read: SystemExit: sys.exit",
    ),
    "a model of one number": (
        lambda: {"model": torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.Flatten(0))},
        r"the model gives \(2,\) for x of float32 \(2, 4\)",
    ),
}


@pytest.mark.parametrize("method", ["fedpac", "fedproto", "moon", "fedcp"])
def test_a_method_that_takes_a_model_apart_refuses_one_with_more_than_body_and_head(
    method: str, tmp_path: Path
) -> None:
    """Net has an activation between the two, which the method would leave out."""
    given = {"clients": three_clients(), **quick(tmp_path)}
    with pytest.raises(RaysimError, match=rf"method {method} .* head\(body\(x\)\) and no more, and Net is not"):
        raysim.run(method, model=seeded(), **given)
    assert not (tmp_path / "run").exists()
    parts = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Linear(6, 3))
    with pytest.raises(RaysimError, match=r"Sequential (is not|has none)\. Call its parts self.body and self.head"):
        raysim.run(method, model=parts, **given)
    whole: Any = seeded()
    whole.body = torch.nn.Sequential(whole.body, torch.nn.ReLU())  # of its outputs, a second ReLU changes nothing
    assert len(raysim.run(method, model=whole, **given).rounds) == QUICK["rounds"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda net: net.double(), "model: body.weight of Net is float64, and .* Give module.float()"),
        (
            lambda net: net.register_buffer("offset", torch.zeros(2, dtype=torch.float64)) or net,
            "model: offset of Net is float64, and .* Give module.float()",
        ),
        (lambda net: torch.nn.Sequential(torch.nn.LazyLinear(3)), "model: 0.weight of Sequential has no shape before"),
    ],
)
def test_parameters_and_buffers_without_a_shape_or_of_another_type(change: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        raysim.run("fedavg", model=change(seeded()), clients=three_clients(), **quick(tmp_path))


def quick(folder: Path) -> dict[str, Any]:
    return {**QUICK, "output": str(folder / "run")}


def test_whole_numbers_do_not_drift(tmp_path: Path) -> None:
    tokens = [(x.round().astype(np.int64), y) for x, y in three_clients()]
    drift: dict[str, Any] = {"events.drift": "features", "events.drift_round": 2}
    with pytest.raises(ConfigError, match=r"own data, whose inputs are whole numbers"):
        raysim.run("fedavg", model=Tokens(), clients=tokens, **quick(tmp_path), **drift)


class Tokens(Net):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.float())


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_what_cannot_be_trained_on_is_one_sentence(kind: str, tmp_path: Path) -> None:
    change, words = CASES[kind]
    given: dict[str, Any] = {"model": seeded(), "clients": three_clients(), "test": samples(20, 9)}
    with pytest.raises(raysim.RaysimError, match=words) as refusal:
        raysim.run(**{"method": "fedavg", **QUICK, **given, **change(), "output": str(tmp_path / "run")})
    assert "\n" not in str(refusal.value)
    assert not (tmp_path / "run").exists()


def test_big_endian_arrays_are_the_same_data(tmp_path: Path) -> None:
    given = [(x.astype(">f4"), y.astype(">i8")) for x, y in three_clients()]
    runs = [
        raysim.run("fedavg", model=seeded(), clients=clients, **{**QUICK, "output": str(tmp_path / name)})
        for name, clients in (("big", given), ("native", three_clients()))
    ]
    assert runs[0].rounds["loss"].tolist() == runs[1].rounds["loss"].tolist()


@pytest.mark.parametrize(
    "more", [{"task": "regression"}, {"loss": torch.nn.CrossEntropyLoss()}, {"task": "multilabel"}], ids=str
)
def test_one_hot_labels_are_taken_where_a_task_or_a_loss_is_given(more: Any, tmp_path: Path) -> None:
    clients = [(X, np.eye(3, dtype=np.float32)[Y])] * 2
    found = raysim.run("fedavg", model=seeded(), clients=clients, **quick(tmp_path), **more)
    assert len(found.rounds) == QUICK["rounds"]


@pytest.mark.parametrize(
    ("module", "wrong_type", "wrong_shape"),
    [
        (torch.nn.Conv2d(3, 2, 3), torch.zeros(2, 3, 8, 8, dtype=torch.int64), torch.zeros(2, 8)),
        (torch.nn.Embedding(5, 2), torch.zeros(2, 8), torch.full((2, 8), 7)),
        (torch.nn.LSTM(8, 4), torch.zeros(2, 3, 8, dtype=torch.int64), torch.zeros(2, 3, 4)),
        (torch.nn.Softmax(1), torch.zeros(2, 8, dtype=torch.int64), torch.zeros(2)),
    ],
)
def test_the_advice_goes_by_what_torch_says(
    module: torch.nn.Module, wrong_type: torch.Tensor, wrong_shape: torch.Tensor
) -> None:
    for x, advice in ((wrong_type, "convert"), (wrong_shape, "reshape")):
        with pytest.raises(RaysimError, match=advice):
            fit._shown(module, x, "inputs", "reshape", "convert")
