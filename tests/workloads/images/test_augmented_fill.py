from __future__ import annotations

import numpy as np
import pytest

from raysim.workloads.errors import WorkloadError
from raysim.workloads.images.augmented_fill import CHUNK, Fill, draw_fill
from raysim.workloads.splits.partition import Partition


def two_clients() -> Partition:
    return Partition(np.array([1, 3, 4, 7]), np.array([0, 1, 4]))


def test_everybody_gets_the_same_size_from_all_training_samples() -> None:
    train = two_clients()
    fill = draw_fill(train, 50, 1, np.random.default_rng(0))
    assert [fill.sources.size(client) + train.size(client) for client in range(2)] == [50, 50]
    for client in range(2):  # from all clients' training samples, and from nothing else
        assert set(fill.sources.of(client)) == {1, 3, 4, 7}
    assert set(fill.tops) == set(fill.lefts) == {0, 1, 2}
    assert 0.3 < fill.flips.mean() < 0.7


def test_copies_are_the_crop_and_flip_of_training() -> None:
    images = np.random.default_rng(1).integers(1, 256, size=(8, 6, 5, 3), dtype=np.uint8)
    images.setflags(write=False)
    fill = draw_fill(two_clients(), 40, 2, np.random.default_rng(0))
    own = slice(39, None)
    for source, top, left, flip, copy in zip(
        fill.sources.of(1), fill.tops[own], fill.lefts[own], fill.flips[own], fill.copies(images, 1), strict=True
    ):
        crop = np.pad(images[source], ((2, 2), (2, 2), (0, 0)))[top : top + 6, left : left + 5]
        assert np.array_equal(copy, crop[:, ::-1] if flip else crop)


def test_chunks_do_not_show() -> None:
    images = np.random.default_rng(1).integers(256, size=(8, 3, 3, 1), dtype=np.uint8)
    fill = draw_fill(two_clients(), CHUNK + 100, 1, np.random.default_rng(0))
    copies = fill.copies(images, 0)
    sources = Partition(fill.sources.indices[CHUNK:], np.array([0, 50]))
    last = Fill(sources, fill.tops[CHUNK:], fill.lefts[CHUNK:], fill.flips[CHUNK:], 1)
    assert np.array_equal(copies[CHUNK : CHUNK + 50], last.copies(images, 0))


def test_real_samples_are_not_thrown_away() -> None:
    with pytest.raises(WorkloadError, match=r"samples_per_client = 2, but client 1 has 3 training samples.*at least 3"):
        draw_fill(two_clients(), 2, 1, np.random.default_rng(0))
    assert draw_fill(two_clients(), 3, 1, np.random.default_rng(0)).sources.size(1) == 0
