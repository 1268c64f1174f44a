from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raysim.workloads.errors import WorkloadError
from raysim.workloads.splits import skewed_splits


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_sorted_shards_by_hand() -> None:
    """Twelve samples of three classes, in six shards of two: no shard straddles, each client has two."""
    labels = np.array([2, 0, 1, 2, 0, 1, 0, 0, 1, 1, 2, 2])
    result = skewed_splits.sorted_shards(labels, 3, 2, 1, generator())
    for client in range(3):
        counts = np.bincount(labels[result.of(client)], minlength=3)
        assert sorted(counts.tolist()) in ([0, 2, 2], [0, 0, 4])


def test_a_shard_may_straddle_classes() -> None:
    """Sorted 0 0 0 0 0 1 in two shards of three: one client has three zeros, the other two and the one."""
    labels = np.array([0, 0, 1, 0, 0, 0])
    result = skewed_splits.sorted_shards(labels, 2, 1, 1, generator())
    assert sorted(sorted(labels[result.of(client)].tolist()) for client in range(2)) == [[0, 0, 0], [0, 0, 1]]


def test_shards_as_mcmahan_et_al_cut_mnist() -> None:
    """200 shards of 300 digits, two for each of 100 clients: most clients have two digits, nobody more than four."""
    labels = np.repeat(np.arange(10), 6000)
    result = skewed_splits.sorted_shards(labels, 100, 2, 1, generator(1))
    assert set(result.sizes.tolist()) == {600}
    digits = [len(np.unique(labels[result.of(client)])) for client in range(100)]
    assert max(digits) == 2 and 80 < digits.count(2) < 100


def test_more_shards_than_samples() -> None:
    with pytest.raises(WorkloadError, match=r"4 clients with 3 shards each need 12 .*10 training.*at most 2"):
        skewed_splits.sorted_shards(np.zeros(10, np.int64), 4, 3, 1, generator())


def test_limited_draws_by_hand() -> None:
    """What is over the limit of 2 goes to the only other category that is left, though its share is zero."""
    drawn = skewed_splits.draw_limited(4, np.array([1.0, 0.0, 0.0]), np.array([2, 3, 0]), generator())
    assert drawn.tolist() == [2, 2, 0]
    everything = np.array([3, 1, 5])
    assert skewed_splits.draw_limited(9, np.full(3, 1 / 3), everything, generator()).tolist() == [3, 1, 5]


def test_pachinko_has_two_levels() -> None:
    """Small alpha: the first clients have one superclass each; large beta: its two classes in equal parts."""
    labels, above = np.repeat(np.arange(6), 2000), np.array([0, 0, 1, 1, 2, 2])
    result = skewed_splits.pachinko(labels, above, 60, 1e-4, 1e4, 1, generator(2))
    assert set(result.sizes.tolist()) == {200}
    for client in range(10):
        counts = np.bincount(labels[result.of(client)], minlength=6).reshape(3, 2)
        largest = counts[counts.sum(axis=1).argmax()]
        assert largest.sum() == 200
        assert abs(largest[0] - 100) < 40
    flat = skewed_splits.pachinko(labels, above, 60, 1e4, 1e4, 1, generator(2))
    assert np.bincount(labels[flat.of(0)], minlength=6).min() > 15


def test_quantiles_by_hand() -> None:
    result = skewed_splits.quantiles(np.array([0.9, 0.1, 0.5, 0.3]), 2, 1, generator())
    assert [result.of(client).tolist() for client in range(2)] == [[1, 3], [0, 2]]


@given(
    labels=st.lists(st.integers(0, 4), min_size=6, max_size=60),
    clients=st.integers(1, 6),
    alpha=st.floats(1e-3, 100.0),
    seed=st.integers(0, 99),
)
def test_equal_dirichlet_deals_every_sample_once_to_clients_of_equal_size(
    labels: list[int], clients: int, alpha: float, seed: int
) -> None:
    result = skewed_splits.equal_dirichlet(np.array(labels), clients, alpha, 1, generator(seed))
    assert sorted(np.concatenate([result.of(client) for client in range(clients)]).tolist()) == [*range(len(labels))]
    assert max(result.sizes) - min(result.sizes) <= 1


def test_equal_dirichlet_takes_any_whole_numbers_as_classes() -> None:
    labels = np.random.default_rng(0).integers(0, 2, 400)
    for named in (labels, 2 * labels - 1, labels * 10**12):
        result = skewed_splits.equal_dirichlet(named, 5, 0.3, 1, generator(2))
        if named is labels:
            expected = result
        assert result.indices.tolist() == expected.indices.tolist()


def test_equal_dirichlet_is_as_skewed_as_alpha_says() -> None:
    """The first client has one class where alpha is tiny, and all classes alike where it is huge."""
    labels = np.repeat(np.arange(10), 1000)
    skewed = skewed_splits.equal_dirichlet(labels, 10, 1e-4, 1, generator(3))
    assert np.bincount(labels[skewed.of(0)], minlength=10).max() == 1000
    even = skewed_splits.equal_dirichlet(labels, 10, 1e6, 1, generator(3))
    assert all(np.abs(np.bincount(labels[even.of(client)], minlength=10) - 100).max() < 80 for client in range(10))
