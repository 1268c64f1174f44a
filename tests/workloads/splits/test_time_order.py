from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.workloads.splits.partition import Partition
from raysim.workloads.splits.time_order import Recordings, hold_out_ends


def test_ends_by_hand() -> None:
    """Ten samples of group 7 in turns with three of group 2; a fifth of ten is two, and one before them overlaps."""
    groups = np.array([7, 2, 7, 2, 7, 2, 7, 7, 7, 7, 7, 7, 7])
    trained, tested = hold_out_ends(groups, 0.2, gap=1)
    assert tested.tolist() == [5, 11, 12]
    assert trained.tolist() == [0, 1, 2, 4, 6, 7, 8, 9]
    assert [part.tolist() for part in hold_out_ends(groups, 0.0, gap=1)] == [list(range(13)), []]


def test_a_gap_takes_less_than_half_of_a_group() -> None:
    """Where 80 windows overlap, 100 would leave one to train on."""
    assert [[len(part) for part in hold_out_ends(np.zeros(size), 0.2, gap=80)] for size in (100, 160, 161)] == [
        [100, 0],
        [160, 0],
        [49, 32],
    ]


def test_ends_of_the_recordings_of_clients_by_hand() -> None:
    """Client 0 has five windows of a and four of b, client 1 two of c, which are too few where each overlaps."""
    recordings = Recordings(np.array(list("aaaaabbbbcc")), overlap=1)
    rest, ends = recordings.cut_ends(Partition(np.arange(11), np.array([0, 9, 11])), 0.4)
    assert [part.tolist() for part in (ends.of(0), ends.of(1))] == [[3, 4, 7, 8], []]
    assert [part.tolist() for part in (rest.of(0), rest.of(1))] == [[0, 1, 5], [9, 10]]


@settings(deadline=None, max_examples=50)
@given(
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=10),
    share=st.floats(0.01, 0.9),
    gap=st.integers(0, 5),
    seed=st.integers(0, 2**32),
)
def test_training_ends_a_gap_before_the_test_begins(sizes: list[int], share: float, gap: int, seed: int) -> None:
    groups = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    trained, tested = hold_out_ends(groups, share, gap)
    for group, size in enumerate(sizes):
        ranks = np.flatnonzero(groups == group)
        train, test = np.flatnonzero(np.isin(ranks, trained)), np.flatnonzero(np.isin(ranks, tested))
        assert len(train) >= 1 and train.tolist() == list(range(len(train)))
        if size >= max(2, 2 * gap + 1):
            assert len(test) >= 1 and test.tolist() == list(range(size - len(test), size))
            assert test[0] - train[-1] == gap + 1
        else:
            assert len(train) == size
