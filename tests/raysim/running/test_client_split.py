from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pyarrow
import pytest
import torch

import raysim
from raysim.errors import ConfigError, RaysimError
from raysim.running import client_split
from raysim.running.client_split import PARTITIONS
from raysim.workloads.errors import WorkloadError
from raysim.workloads.splits.split_options import PartitionName
from tests.own_data import QUICK, Items, samples


def test_every_sample_has_one_client_and_a_seed_gives_one_split() -> None:
    x, y = samples(90)
    clients = raysim.split((x, y), clients=4, alpha=0.3, min_samples=5)
    assert len(clients) == 4 and min(len(labels) for _, labels in clients) >= 5
    assert sorted(np.concatenate([own[:, 0] for own, _ in clients])) == sorted(x[:, 0])
    same, other = (raysim.split((x, y), clients=4, alpha=0.3, min_samples=5, seed=seed) for seed in (0, 1))
    assert np.array_equal(clients[2][1], same[2][1]) and np.array_equal(clients[-1][0], same[3][0])
    assert any(not np.array_equal(one[0], two[0]) for one, two in zip(clients, other, strict=True))
    assert [len(part[1]) for part in clients[1:3]] == [len(clients[1][1]), len(clients[2][1])]


def test_a_dataset_may_be_split_by_the_names_of_sites() -> None:
    x, y = samples(6)
    clients = raysim.split(Items(x, y), sites=["b", "a", "b", "a", "a", "c"])
    assert clients.names.tolist() == ["a", "b", "c"]
    assert [own[:, 0].tolist() for own, _ in clients] == [x[[1, 3, 4], 0].tolist(), x[[0, 2], 0].tolist(), [x[5, 0]]]


@pytest.mark.parametrize("options", [{"partition": "quantity", "alpha": 0.1}, {"partition": "lognormal", "sigma": 2.0}])
def test_small_clients_of_sorted_data_have_many_classes(options: dict[str, Any]) -> None:
    labels = np.repeat(np.arange(10), 500)
    clients = raysim.split((np.zeros((5000, 2), np.float32), labels), clients=100, **options)
    small = [len(np.unique(own)) for _, own in clients if len(own) == 10]
    assert len(small) > 30 and np.mean(small) > 6


def test_columns_of_pandas_that_may_miss_values_are_numbers() -> None:
    table = pd.DataFrame({"age": [30, 40, 50, 60], "dose": [0.5, 1.5, 2.5, 3.0]}).convert_dtypes()
    (x, y), *_ = raysim.split((table, table["age"]), clients=2, partition="iid", min_samples=1)
    assert str(table.dtypes["dose"]) == "Float64" and (x.dtype.kind, y.dtype.kind) == ("f", "i") and x.shape == (2, 2)
    assert raysim.split((table[["age"]], table["age"]), clients=1, min_samples=1)[0][0].dtype.kind == "i"
    with pytest.raises(WorkloadError, match="type object is no number"):
        raysim.split((table.assign(ward="north"), table["age"]), clients=2)
    with pytest.raises(WorkloadError, match="type object is no number"):  # no column of pandas, though it has to_numpy
        raysim.split((table, pyarrow.chunked_array([["a", "b", "a", "b"]])), clients=2)


def test_test_sets_in_a_list_go_by_names_that_are_in_order(tmp_path: Path) -> None:
    x, y = samples(24)

    def start(sites: list[Any], tests: Any) -> None:
        clients = raysim.split((x, y), sites=sites)
        linear = torch.nn.Linear(x.shape[1], int(y.max()) + 1)
        raysim.run(model=linear, clients=clients, test=tests, output=str(tmp_path / "run"), **QUICK)

    tests = [(x[:2], y[:2])] * 12
    with pytest.raises(RaysimError, match="the clients are called 0, 1, 10, …, in the order of texts, and a list of"):
        start([*range(12)] * 2, tests)
    start([f"{number:02}" for number in range(12)] * 2, tests)


def test_an_option_that_the_partition_does_not_read_is_told_of() -> None:
    words = "split: alpha has no effect with partition iid: it is read with dirichlet, equal_dirichlet, quantity."
    with pytest.warns(UserWarning, match=rf"^{re.escape(words)}$"):
        raysim.split(samples(90), clients=3, partition="iid", alpha=0.1)
    with pytest.warns(UserWarning, match="sigma has no effect with partition sites: it is read with lognormal"):
        raysim.split(samples(90), sites=["a", "b"] * 45, sigma=2.0)
    raysim.split(samples(90), clients=3, partition="auto", alpha=100.0)
    raysim.split(samples(90), clients=3, partition="iid", alpha=0.5)  # the default


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alpa": 0.1}, "split: unknown option alpa. Did you mean alpha"),
        ({"beta": 1.0}, "split: unknown option beta"),
        ({"alpha": -1}, "split.alpha: -1 is not allowed"),
        ({"partition": "dirichle"}, "split.partition: 'dirichle' is not allowed. Did you mean dirichlet"),
        *(
            (
                {"partition": name},
                rf"split.partition: '{name}' is not allowed\..* Allowed: auto \| iid \| .* \| lognormal \| sites; def",
            )
            for name in ("views", "pachinko", "quantile")
        ),
        ({"partition": 3}, "split.partition: 3 is not allowed. Allowed: auto"),
        ({"clients": 100}, "100 clients are more than the 90 training samples"),
        ({"sites": ["a", "b"]}, "give one name for each sample"),
        ({"sites": [None] * 90}, "sites: the key None is no name"),
        ({"sites": ["a", float("nan"), "b"] * 30}, "sites: the key nan is no name"),
        ({"sites": [1.0, float("nan"), 2.0] * 30}, "sites: the key nan is no name"),
        ({"seed": -1}, "split.seed: -1 is not allowed"),
        ({"seed": None}, "split.seed: None is not allowed"),
        ({"seed": "a"}, "split.seed: 'a' is not allowed"),
        ({"seed": float("nan")}, "split.seed: nan is not allowed"),
    ],
)
def test_what_cannot_be_is_one_sentence(options: dict[str, Any], words: str) -> None:
    with pytest.raises((ConfigError, WorkloadError), match=words):
        raysim.split(samples(90), **options)


def test_labels_that_are_no_classes_cannot_make_label_skew() -> None:
    x, _ = samples(30)
    with pytest.raises(WorkloadError, match="partition=dirichlet goes by whole-number labels"):
        raysim.split((x, x), clients=2)
    assert len(raysim.split((x, x), clients=2, partition="iid")) == 2
    _, y = samples(30)
    with pytest.raises(WorkloadError, match=r"give y.ravel\(\) if they are classes"):
        raysim.split((x, y[:, None]), clients=2)
    with pytest.raises(WorkloadError, match=r"give y.astype\(int\) if they are classes"):
        raysim.split((x, y / 1.0), clients=2)
    with pytest.raises(WorkloadError, match=r"give y.argmax\(1\) if they are classes"):
        raysim.split((x, np.eye(3)[y]), clients=2)


def test_a_graph_with_labeled_nodes_is_refused_with_what_to_use_instead() -> None:
    data = pytest.importorskip("torch_geometric.data")
    mask = torch.tensor([True, False, True])
    graph = data.Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.arange(3), train_mask=mask)
    for given in (graph, [graph]):
        with pytest.raises(WorkloadError, match=r"data: it is one graph.*workload='nodes' with path=FILE\.npz"):
            raysim.split(given, clients=1)


def test_the_partitions_that_are_named_are_those_that_cut() -> None:
    """The error, the page and what each does agree, of all partitions that the command line knows."""
    rng = np.random.default_rng(0)
    data, works = (rng.normal(size=(400, 4)), rng.integers(0, 3, 400)), list[str]()
    for name in get_args(PartitionName):
        with suppress(RaysimError):
            more: dict[str, Any] = {"sites": ["a", "b"] * 200} if name == "sites" else {}
            assert len(raysim.split(data, clients=4, partition=name, **more)) == (2 if more else 4)
            works.append(name)
    assert works == [*PARTITIONS]
    page = (Path(__file__).parents[3] / "docs/own-data.md").read_text(encoding="utf-8")
    listed = page.partition("seed=0)` knows ")[2].partition(" of the")[0]
    assert re.findall(r"`(\w+)`", listed) == works
    words = (client_split.split.__doc__ or "").partition("partition: ")[2].partition("seed: ")[0]
    assert all(name in words for name in works)
