from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.workloads.errors import WorkloadError
from raysim.workloads.splits import partition, skewed_splits
from raysim.workloads.splits.partition import Partition


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def split(kind: str, labels: np.ndarray, clients: int, alpha: float, least: int, seed: int) -> Partition:
    if kind == "iid":
        return partition.iid(len(labels), clients, least, generator(seed))
    if kind == "quantity":
        return partition.quantity(len(labels), clients, alpha, least, generator(seed))
    if kind == "lognormal":
        return partition.lognormal(len(labels), clients, min(alpha, 5.0), least, generator(seed))
    if kind == "dirichlet":
        return partition.dirichlet(labels, clients, alpha, least, generator(seed))
    if kind == "quantile":
        return skewed_splits.quantiles(generator(seed).normal(size=len(labels)), clients, least, generator(seed))
    if kind == "pathological":
        shards = 1 + seed % min(3, len(labels) // clients)
        return skewed_splits.sorted_shards(labels, clients, shards, least, generator(seed))
    if kind == "pachinko":
        superclasses = np.arange(int(labels.max(initial=0)) + 1) // 3
        return skewed_splits.pachinko(labels, superclasses, clients, alpha, 1 / alpha, least, generator(seed))
    present = len(np.unique(labels))
    return partition.shards(labels, clients, max(1, -(-present // clients)), least, generator(seed))


def assert_complete(result: Partition, samples: int) -> None:
    assert np.array_equal(np.sort(result.indices), np.arange(samples))
    assert result.offsets[0] == 0
    assert result.offsets[-1] == samples
    assert result.indices.dtype == result.offsets.dtype == np.int64


KINDS = ["iid", "quantity", "lognormal", "dirichlet", "shards", "quantile", "pathological", "pachinko"]


@settings(deadline=None, max_examples=100)
@given(
    kind=st.sampled_from(KINDS),
    clients=st.integers(1, 30),
    least=st.integers(1, 12),
    extra=st.integers(0, 300),
    classes=st.integers(1, 12),
    alpha=st.floats(1e-6, 1e6),
    seed=st.integers(0, 2**32),
)
def test_splits_are_disjoint_complete_repeatable_and_keep_the_minimum(
    kind: str, clients: int, least: int, extra: int, classes: int, alpha: float, seed: int
) -> None:
    labels = generator(seed).integers(classes, size=clients * least + extra)
    result = split(kind, labels, clients, alpha, least, seed)
    assert result.clients == clients
    assert_complete(result, len(labels))
    assert result.sizes.min() >= least
    again = split(kind, labels, clients, alpha, least, seed)
    assert np.array_equal(result.indices, again.indices)
    assert np.array_equal(result.offsets, again.offsets)


@settings(deadline=None, max_examples=50)
@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=20), share=st.floats(0.01, 0.99), seed=st.integers(0, 2**32)
)
def test_cut_divides_each_client(sizes: list[int], share: float, seed: int) -> None:
    owners = generator(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    whole = partition.from_owners(owners, len(sizes))
    train, test = partition.cut(whole, share, generator(seed))
    for client, size in enumerate(sizes):
        both = np.concatenate([train.of(client), test.of(client)])
        assert np.array_equal(np.sort(both), whole.of(client))
        assert train.size(client) >= 1
        assert test.size(client) == (0 if size == 1 else min(max(int(share * size + 0.5), 1), size - 1))


def test_log_normal_sizes() -> None:
    """Median and spread of the logarithms, of many clients large enough for rounding to count for little."""
    logarithms = np.log(partition.lognormal(2_000_000, 2_000, 1.0, 1, generator()).sizes)
    assert abs(np.median(logarithms) - (np.log(1_000) - 0.5)) < 0.1  # the mean is exp(σ²/2) medians
    assert abs(logarithms.std() - 1.0) < 0.05
    assert np.ptp(partition.lognormal(1_000, 10, 0.0, 1, generator()).sizes) <= 2  # rounded


def test_cut_is_random() -> None:
    whole = partition.iid(100, 2, 1, generator())
    first = partition.cut(whole, 0.2, generator(1))[1]
    second = partition.cut(whole, 0.2, generator(2))[1]
    assert not np.array_equal(first.indices, second.indices)


def test_iid_sizes_differ_by_at_most_one() -> None:
    assert sorted(partition.iid(103, 10, 1, generator()).sizes) == [10] * 7 + [11] * 3


def test_dirichlet_skews_labels_more_for_smaller_alpha() -> None:
    labels = np.arange(5000) % 10

    def largest_share(alpha: float) -> float:
        result = partition.dirichlet(labels, 10, alpha, 1, generator(3))
        counts = [np.bincount(labels[result.of(client)], minlength=10) for client in range(10)]
        return float(np.mean([count.max() / count.sum() for count in counts]))

    assert largest_share(1000.0) < 0.15 < 0.3 < largest_share(0.1)


def test_quantity_skews_sizes_only() -> None:
    labels = np.arange(10_000) % 2
    result = partition.quantity(10_000, 10, 0.5, 10, generator(1))
    assert result.sizes.max() > 3 * result.sizes.min()
    largest = int(result.sizes.argmax())
    assert abs(labels[result.of(largest)].mean() - 0.5) < 0.05


@pytest.mark.parametrize("kind", ["quantity", "lognormal"])
def test_clients_that_are_filled_up_have_random_samples_of_sorted_data_too(kind: str) -> None:
    labels = np.repeat(np.arange(10), 500)
    split = partition.quantity if kind == "quantity" else partition.lognormal
    assert partition.lie_by_class(labels) and partition.lie_by_class(np.concatenate([labels, labels]))
    assert not partition.lie_by_class(generator().permutation(labels)) and not partition.lie_by_class(labels[:9])
    skew = 0.1 if kind == "quantity" else 2.0
    result = split(len(labels), 100, skew, 10, generator(1), by_class=True)
    small = [client for client in range(100) if result.sizes[client] == 10]
    classes = np.mean([len(np.unique(labels[result.of(client)])) for client in small])
    assert len(small) > 30 and 6 < classes < 7  # of ten random samples 6.5


def test_leveling_takes_from_the_largest_and_no_more_than_needed() -> None:
    owners = np.repeat([0, 1, 2, 3], [10, 7, 2, 1])
    leveled = partition.level(owners, 4, 4, generator())
    # 5 are missing: 10 and 7 come down to a common level of 6.
    assert np.bincount(leveled).tolist() == [6, 6, 4, 4]
    assert set(np.flatnonzero(leveled != owners)) <= set(range(17))
    assert np.bincount(partition.level(np.repeat([0, 1], [5, 3]), 2, 3, generator())).tolist() == [5, 3]


@pytest.mark.parametrize(("clients", "each"), [(10, 2), (7, 3), (100, 2), (5, 10), (10, 1)])
def test_shards_give_each_client_its_number_of_classes(clients: int, each: int) -> None:
    labels = generator().permutation(np.arange(5000) % 10)
    result = partition.shards(labels, clients, each, 1, generator(1))
    assert_complete(result, 5000)
    for client in range(clients):
        assert len(np.unique(labels[result.of(client)])) == each


def test_shards_cut_larger_classes_into_more_shards() -> None:
    labels = np.repeat([0, 1, 2], [600, 200, 100])
    assert partition._shard_counts(np.array([600, 200, 100]), 9, 1).tolist() == [6, 2, 1]
    assert set(partition.shards(labels, 9, 1, 1, generator()).sizes) == {100}


def test_shards_say_what_cannot_be() -> None:
    labels = np.arange(100) % 10
    with pytest.raises(WorkloadError, match=r"cannot have 11 classes.*1\.\.10"):
        partition.shards(labels, 10, 11, 1, generator())
    with pytest.raises(WorkloadError, match=r"3 clients with 2 classes each cannot cover 10 classes"):
        partition.shards(labels, 3, 2, 1, generator())


def test_sites_are_sorted_clients() -> None:
    result, names = partition.sites(np.array(["b", "a", "b", "c"]))
    assert names.tolist() == ["a", "b", "c"]
    assert [result.of(client).tolist() for client in range(3)] == [[1], [0, 2], [3]]


@pytest.mark.parametrize("kind", ["iid", "quantity", "lognormal", "dirichlet", "shards"])
def test_more_clients_than_samples_and_unreachable_minimum(kind: str) -> None:
    labels = np.arange(20) % 2
    with pytest.raises(WorkloadError, match="21 clients are more than the 20 training samples"):
        split(kind, labels, 21, 0.5, 1, 0)
    with pytest.raises(WorkloadError, match=r"min_samples = 5 \(25 needed\).*at most 4 or min_samples to at most 4"):
        split(kind, labels, 5, 0.5, 5, 0)


def test_an_unknown_client_is_not_wrapped_around() -> None:
    with pytest.raises(IndexError, match="client -1"):
        partition.iid(10, 2, 1, generator()).of(-1)


def test_population_scale_is_quick_and_compact() -> None:
    labels = np.arange(200_000) % 10
    result = partition.dirichlet(labels, 20_000, 0.5, 2, generator())
    assert result.sizes.min() >= 2
    assert result.indices.nbytes + result.offsets.nbytes == 8 * (200_000 + 20_001)
