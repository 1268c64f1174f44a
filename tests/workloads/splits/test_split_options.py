from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest

from raysim.workloads.errors import WorkloadError
from raysim.workloads.splits.split_options import Labeled, PartitionName, SplitOptions
from raysim.workloads.splits.time_order import Recordings

LABELS = np.arange(120) % 6


def stream(purpose: str) -> np.random.Generator:
    return np.random.default_rng([len(purpose)])


def labeled(**options: Any) -> Labeled:
    known: dict[str, Any] = {
        "sites": np.repeat(["a", "b", "c"], 40),
        "superclasses": np.array([0, 0, 0, 1, 1, 1]),
        "feature": lambda: np.arange(120.0),
    }
    return Labeled(LABELS, 30, **known | options)


@pytest.mark.parametrize("name", get_args(PartitionName))
def test_every_partition_gives_each_client_samples_to_train_and_to_test(name: Any) -> None:
    split = SplitOptions(clients=3, partition=name, view_samples=20, validation_share=0.2).split(labeled(), stream)
    assert split.train.clients == 3 and split.partition == ("sites" if name == "auto" else name)
    assert split.validation is not None and not split.local_test_is_global
    for client in range(3):
        parts = [part.of(client) for part in (split.train, split.validation, split.local_test)]
        assert all(len(part) for part in parts)
        assert len(np.unique(np.concatenate(parts))) == sum(map(len, parts))


def test_ends_of_recordings_are_cut_off_where_clients_are_sites() -> None:
    """The last 10 of 40 windows, one that overlaps left out, and of the other 29 the last 9, one left out."""
    recordings = Recordings(np.repeat([0, 1, 2], 40), overlap=1)
    options = SplitOptions(partition="sites", test_share=0.25, validation_share=0.3)
    split = options.split(labeled(recordings=recordings), stream)
    assert split.validation is not None
    parts = [part.of(1).tolist() for part in (split.train, split.validation, split.local_test)]
    assert parts == [list(range(40, 59)), list(range(60, 69)), list(range(70, 80))]


def test_quantiles_follow_the_feature() -> None:
    split = SplitOptions(clients=3, partition="quantile").split(labeled(), stream)
    for client in range(3):
        own = np.concatenate([split.train.of(client), split.local_test.of(client)])
        assert sorted(own.tolist()) == list(range(40 * client, 40 * client + 40))


@pytest.mark.parametrize(
    ("name", "lacking", "words"),
    [
        ("sites", "sites", "partition=sites needs the real client of every training sample, and there is none; choose"),
        ("pachinko", "superclasses", "needs data whose classes have superclasses.*choose dirichlet"),
        ("quantile", "feature", "needs a feature to sort by"),
    ],
)
def test_what_a_partition_needs_and_the_data_has_not(name: Any, lacking: str, words: str) -> None:
    with pytest.raises(WorkloadError, match=words):
        SplitOptions(partition=name).split(labeled(**{lacking: None}), stream)


@pytest.mark.parametrize("name", ["m\udcfcnchen", "two\nlines", ""])  # as of a folder that is named in Latin-1
def test_a_site_whose_name_cannot_stand_in_tables(name: str) -> None:
    data = labeled(sites=np.array([name, "b"]).repeat(60))
    with pytest.raises(WorkloadError, match=r"partition=sites: client '.* has an? (empty )?name.*; rename it"):
        SplitOptions(partition="sites").split(data, stream)
    assert SplitOptions(partition="iid").split(data, stream).train.clients == 10


def test_tests_of_sites_are_their_own() -> None:
    names = np.array(["b", "x", "a"] * 10)
    split = SplitOptions(partition="sites").split(labeled(test_sites=names), stream)
    assert split.local_test_is_global
    assert split.client_names.tolist() == ["a", "b", "c"]
    assert [split.local_test.size(client) for client in range(3)] == [10, 10, 0]
    assert split.local_test.of(1).tolist() == list(range(0, 30, 3))
