from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.workloads.errors import WorkloadError
from raysim.workloads.graphs.stratified_split import folded, published, stratified

shares = st.sampled_from([0.0, 0.1, 0.2, 0.25, 1 / 3, 0.45])
small_shares = st.sampled_from([0.0, 0.1, 0.17, 0.2, 0.25])  # even of 4 graphs this leaves one to train on


def draw(labels: list[int], validation: float, test: float, seed: int = 0) -> tuple[list[int], list[int], list[int]]:
    parts = stratified(np.array(labels, dtype=np.int64), validation, test, np.random.default_rng(seed))
    assert all(part.dtype == np.int64 for part in parts)
    train, validated, tested = (part.tolist() for part in parts)
    return train, validated, tested


@settings(deadline=None, max_examples=300)
@given(
    labels=st.lists(st.integers(-2, 5), max_size=120), validation=shares, test=shares, seed=st.integers(0, 2**32 - 1)
)
def test_a_split_is_a_partition_without_needless_gaps(
    labels: list[int], validation: float, test: float, seed: int
) -> None:
    train, validated, tested = draw(labels, validation, test, seed)
    assert sorted(train + validated + tested) == list(range(len(labels)))
    for part in (train, validated, tested):
        assert part == sorted(part)
    assert bool(train) == bool(labels)
    assert bool(tested) == (test > 0 and len(labels) > 1)
    assert bool(validated) == (validation > 0 and len(labels) > 1 + bool(tested))


@settings(deadline=None, max_examples=300)
@given(
    counts=st.lists(st.integers(4, 60), min_size=1, max_size=6),
    validation=small_shares,
    test=small_shares,
    seed=st.integers(0, 2**32 - 1),
)
def test_parts_and_classes_have_their_shares_up_to_rounding(
    counts: list[int], validation: float, test: float, seed: int
) -> None:
    labels = np.repeat(np.arange(len(counts)), counts)
    parts = draw(labels.tolist(), validation, test, seed)
    for share, part in ((validation, parts[1]), (test, parts[2])):
        assert abs(len(part) - share * len(labels)) <= 0.5 + 1e-9 or len(part) == 1
        kept = np.bincount(labels[part], minlength=len(counts))
        assert np.all(np.abs(kept - share * np.array(counts)) < 1 + 1e-9)
    assert np.bincount(labels[parts[0]], minlength=len(counts)).min() >= 1


def test_the_shares_by_hand() -> None:
    """MUTAG's 63 and 125 graphs: 18.8 to test, of each class 6.3 and 12.5; 6 + 12 = 18, the last is of the second."""
    labels = [0] * 63 + [1] * 125
    train, validation, test = draw(labels, 0.1, 0.1)
    for part in (validation, test):
        assert [sum(index < 63 for index in part), sum(index >= 63 for index in part)] == [6, 13]
    assert len(train) == 150


@pytest.mark.parametrize("count", range(1, 40))
def test_whole_numbers_are_not_lost_to_rounding(count: int) -> None:
    train, validation, test = draw([0] * 10 * count + [1] * 10 * count, 0.1, 0.3)
    assert (len(train), len(validation), len(test)) == (12 * count, 2 * count, 6 * count)


def test_a_class_keeps_a_graph_to_train_on() -> None:
    labels = [0, 1] + [2] * 8
    for seed in range(20):
        train, validation, test = draw(labels, 0.3, 0.3, seed)
        assert {0, 1} <= set(train)
        assert len(validation) == len(test) == 3


def test_the_draw_is_random_and_repeats() -> None:
    labels = [0, 1] * 50
    assert draw(labels, 0.1, 0.1, 1) == draw(labels, 0.1, 0.1, 1)
    assert draw(labels, 0.1, 0.1, 1)[2] != draw(labels, 0.1, 0.1, 2)[2]


def test_the_published_split_is_that_of_the_published_code() -> None:
    """Two calls of scikit-learn on the graphs in their order, as in GCFL's `split_data`."""
    from sklearn.model_selection import train_test_split

    labels = np.random.default_rng(0).integers(0, 3, 188)
    train, validation, test = published(labels, 0.1, 0.1, "S")
    graphs = [(number, label) for number, label in enumerate(labels.tolist())]
    first = {"shuffle": True, "random_state": 123, "stratify": labels.tolist()}
    kept, rest = train_test_split(graphs, train_size=None, test_size=0.2, **first)
    second = {**first, "stratify": [label for _, label in rest]}
    validated, tested = train_test_split(rest, train_size=0.5, test_size=0.5, **second)
    for part, expected in ((train, kept), (validation, validated), (test, tested)):
        assert part.tolist() == sorted(number for number, _ in expected)
    assert [len(train), len(validation), len(test)] == [150, 19, 19]


def test_a_published_split_without_validation_or_of_too_few_graphs() -> None:
    labels = np.array([0, 1] * 20)
    train, validation, test = published(labels, 0.0, 0.2, "S")
    assert [len(train), len(validation), len(test)] == [32, 0, 8]
    # Scikit-learn rounds 150 up and 200 to 201, one more than the 350 that there are.
    parts = published(np.arange(1000) % 2, 0.15, 0.2, "S")
    assert sorted(np.concatenate(parts).tolist()) == list(range(1000)) and len(parts[0]) == 650
    with pytest.raises(WorkloadError, match=r"S: its 3 graphs cannot be split as published \(.*\); set split to drawn"):
        published(np.array([0, 1, 2]), 0.1, 0.1, "S")


@settings(deadline=None, max_examples=60)
@given(counts=st.lists(st.integers(1, 40), min_size=1, max_size=4), repeat=st.integers(0, 2))
def test_folds_test_every_graph_once_and_are_stratified(counts: list[int], repeat: int) -> None:
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(len(counts)), counts))
    if len(labels) < 5:
        with pytest.raises(WorkloadError, match=rf"ONE: {len(labels)} graphs are fewer than 5 folds; raise test_share"):
            folded(labels, 0.1, 0.2, 0, "ONE")
        return
    parts = [folded(labels, 0.1, 0.2, 5 * repeat + fold, "ONE") for fold in range(5)]
    assert sorted(np.concatenate([test for _, _, test in parts]).tolist()) == list(range(len(labels)))
    for part in parts:
        assert sorted(np.concatenate(part).tolist()) == list(range(len(labels)))
        assert all((np.diff(indices) > 0).all() for indices in part) and len(part[0])
    tested = [np.bincount(labels[test], minlength=len(counts)) for _, _, test in parts]
    assert np.ptp(tested, axis=0).max() <= 1 and np.ptp(np.sum(tested, axis=1)) <= 1


def test_folds_are_those_of_a_set_and_a_drawing() -> None:
    labels = np.repeat([0, 1], [63, 125])
    first, again, other, second = (
        folded(labels, 0.1, 0.1, fold, name) for fold, name in ((3, "MUTAG"), (3, "MUTAG"), (3, "BZR"), (13, "MUTAG"))
    )
    assert all(np.array_equal(one, two) for one, two in zip(first, again, strict=True))
    assert not np.array_equal(first[2], other[2]) and not np.array_equal(first[2], second[2])
    assert list(map(len, first)) == [150, 19, 19]
    with pytest.raises(WorkloadError, match=r"MUTAG: test_share = 0\.3 makes no whole number of folds; set it to 0\.1"):
        folded(labels, 0.1, 0.3, 0, "MUTAG")
