from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.workloads.errors import WorkloadError
from raysim.workloads.splits.virtual_clients import _fitting, set_aside, views


@settings(deadline=None, max_examples=50)
@given(
    labels=st.lists(st.integers(0, 5), min_size=2, max_size=60),
    clients=st.integers(1, 10**12),
    samples=st.integers(1, 40),
    alpha=st.floats(1e-6, 1e6),
    share=st.floats(0.01, 0.99),
    seed=st.integers(0, 2**32),
    data=st.data(),
)
def test_any_client_has_distinct_samples_of_its_own_and_no_other_trains_on_its_test(
    labels: list[int], clients: int, samples: int, alpha: float, share: float, seed: int, data: st.DataObject
) -> None:
    known = np.array(labels)
    try:
        train, test = views(known, clients, alpha, samples, share, np.random.default_rng(seed))
    except WorkloadError:
        # Every class of two samples or more has one on either side.
        assert samples > np.count_nonzero(np.bincount(known) >= 2)
        return
    assert sorted([*train.pool, *test.pool]) == list(range(len(labels)))
    assert train.each + test.each == samples
    again, _ = views(known, clients, alpha, samples, share, np.random.default_rng(seed))
    for client in data.draw(st.lists(st.integers(0, clients - 1), min_size=1, max_size=3)):
        for part in (train, test):
            indices = part.of(client)
            assert len(indices) == part.size(client) == part.each
            assert np.all(np.diff(indices) > 0)
            assert np.isin(indices, part.pool).all()
        assert np.array_equal(again.of(client), train.of(client))
    with pytest.raises(IndexError, match=f"client {clients} of {clients} views"):
        train.of(clients)


def test_nothing_is_stored_for_a_client() -> None:
    labels = np.arange(1000) % 10
    few, many = (views(labels, clients, 0.5, 50, 0.2, np.random.default_rng(0))[0] for clients in (10, 1_000_000))
    assert len(pickle.dumps(many)) <= len(pickle.dumps(few)) + 8
    # A client is the same in a larger population.
    assert np.array_equal(few.of(7), many.of(7))
    assert not np.array_equal(many.of(7), many.of(8))


def test_a_client_is_trained_and_tested_on_the_same_skewed_classes() -> None:
    labels = np.arange(20_000) % 10
    train, test = views(labels, 100, 0.1, 400, 0.25, np.random.default_rng(3))

    def shares(indices: np.ndarray) -> np.ndarray:
        return np.bincount(labels[indices], minlength=10) / len(indices)

    own, largest = [], []
    for client in range(100):
        own.append(np.abs(shares(train.of(client)) - shares(test.of(client))).sum())
        largest.append(shares(train.of(client)).max())
    assert np.mean(own) < 0.25
    assert np.mean(largest) > 0.5
    flat, _ = views(labels, 1, 1e6, 400, 0.25, np.random.default_rng(3))
    assert shares(flat.of(0)).max() < 0.2


def test_every_sample_of_a_pool_is_used() -> None:
    labels = np.arange(100) % 4
    train, test = views(labels, 2000, 1.0, 10, 0.2, np.random.default_rng(1))
    for part in (train, test):
        seen = np.unique(np.concatenate([part.of(client) for client in range(part.clients)]))
        assert np.array_equal(seen, np.sort(part.pool))
        assert np.array_equal(part.pooled().of(0), seen)


def test_a_class_that_is_too_small_is_used_up_and_the_rest_comes_from_the_largest() -> None:
    assert _fitting(np.array([5, 1, 0]), np.array([2, 3, 9])).tolist() == [2, 1, 3]
    assert _fitting(np.array([6, 6, 0]), np.array([2, 9, 4])).tolist() == [2, 6, 4]
    assert _fitting(np.array([2, 3]), np.array([2, 3])).tolist() == [2, 3]


def test_views_larger_than_the_data_are_refused() -> None:
    labels = np.repeat([0, 1], 50)
    with pytest.raises(WorkloadError, match=r"91 training samples is larger than the 90 .* view_samples \(101\)"):
        views(labels, 5, 1.0, 101, 0.1, np.random.default_rng(0))
    train, _ = views(labels, 5, 1.0, 100, 0.1, np.random.default_rng(0))
    assert train.size(4) == 90


def test_nobody_trains_on_what_anybody_is_validated_on() -> None:
    labels = np.arange(400) % 4
    whole, test = views(labels, 10**6, 0.3, 40, 0.25, np.random.default_rng(2))
    train, validation = set_aside(whole, 0.2)
    assert (train.each, validation.each, test.each) == (24, 6, 10)
    assert sorted([*train.pool, *validation.pool]) == sorted(whole.pool)
    # A fifth of each class' 75 samples.
    assert np.bincount(labels[validation.pool]).tolist() == [15] * 4
    seen = {part: np.concatenate([part.of(client) for client in range(300)]) for part in (train, validation)}
    assert np.array_equal(np.unique(seen[train]), np.sort(train.pool))
    assert np.array_equal(np.unique(seen[validation]), np.sort(validation.pool))
    # Both follow the client's own class shares.
    most = [np.bincount(labels[part.of(7)], minlength=4).argmax() for part in (train, validation)]
    assert most[0] == most[1]


def test_a_view_of_one_training_sample_keeps_it() -> None:
    whole, _ = views(np.arange(40) % 4, 5, 1.0, 2, 0.5, np.random.default_rng(0))
    train, validation = set_aside(whole, 0.5)
    assert (train.each, validation.each) == (1, 0)
    assert len(train.of(3)) == 1 and len(validation.of(3)) == 0


def test_validation_views_larger_than_their_part_are_refused() -> None:
    # One of four training samples of each class, but one of a client's eight: seven are not left.
    whole, _ = views(np.repeat([0, 1], 5), 5, 1.0, 10, 0.2, np.random.default_rng(0))
    with pytest.raises(WorkloadError, match=r"7 training samples is larger than the 6 .* validation_share \(0.1\)"):
        set_aside(whole, 0.1)
