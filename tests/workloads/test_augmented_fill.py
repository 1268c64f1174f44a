from __future__ import annotations

import numpy as np
import pytest
import torch

from workloads.augment import crop_and_flip_with
from workloads.augmented_fill import CHUNK, Fill, draw_fill
from workloads.errors import WorkloadError
from workloads.partition import Partition


def two_clients() -> Partition:
    return Partition(np.array([1, 3, 4, 7]), np.array([0, 1, 4]))


def test_everybody_gets_the_same_size_from_all_training_samples() -> None:
    train = two_clients()
    fill = draw_fill(train, 50, 1, np.random.default_rng(0))
    assert [fill.size(client) + train.size(client) for client in range(2)] == [50, 50]
    for client in range(2):  # from all clients' training samples, and from nothing else
        assert set(fill.sources_of(client)) == {1, 3, 4, 7}
    assert set(fill.tops) == set(fill.lefts) == {0, 1, 2}
    assert 0.3 < fill.flips.mean() < 0.7


def test_copies_are_the_crop_and_flip_of_training() -> None:
    images = np.random.default_rng(1).integers(1, 256, size=(8, 6, 5, 3), dtype=np.uint8)
    images.setflags(write=False)
    fill = draw_fill(two_clients(), 40, 2, np.random.default_rng(0))
    expected = crop_and_flip_with(
        torch.tensor(images[fill.sources_of(1)]).permute(0, 3, 1, 2),
        torch.tensor(fill.tops[fill.offsets[1] :].astype(np.int64)),
        torch.tensor(fill.lefts[fill.offsets[1] :].astype(np.int64)),
        torch.tensor(fill.flips[fill.offsets[1] :]),
        2,
    )
    assert np.array_equal(fill.copies(images, 1), expected.permute(0, 2, 3, 1).numpy())
    assert np.array_equal(fill.copies(images, 1), fill.copies(images, 1))


def test_one_copy_by_hand() -> None:
    image = np.array([[1, 2], [3, 4]], dtype=np.uint8).reshape(1, 2, 2, 1)

    def copy(top: int, left: int, flip: bool) -> list[list[int]]:
        fill = Fill(np.array([0]), np.array([0, 1]), np.array([top], "i2"), np.array([left], "i2"), np.array([flip]), 1)
        rows: list[list[int]] = fill.copies(image, 0)[0, :, :, 0].tolist()
        return rows

    assert copy(1, 1, False) == [[1, 2], [3, 4]]
    assert copy(1, 1, True) == [[2, 1], [4, 3]]
    assert copy(0, 1, False) == [[0, 0], [1, 2]]
    assert copy(1, 2, False) == [[2, 0], [4, 0]]
    assert copy(2, 2, True) == [[0, 4], [0, 0]]


def test_chunks_do_not_show() -> None:
    images = np.random.default_rng(1).integers(256, size=(8, 3, 3, 1), dtype=np.uint8)
    fill = draw_fill(two_clients(), CHUNK + 100, 1, np.random.default_rng(0))
    copies = fill.copies(images, 0)
    last = Fill(fill.sources[CHUNK:], np.array([0, 50]), fill.tops[CHUNK:], fill.lefts[CHUNK:], fill.flips[CHUNK:], 1)
    assert np.array_equal(copies[CHUNK : CHUNK + 50], last.copies(images, 0))


def test_real_samples_are_not_thrown_away() -> None:
    with pytest.raises(WorkloadError, match=r"samples_per_client = 2, but client 1 has 3 training samples.*at least 3"):
        draw_fill(two_clients(), 2, 1, np.random.default_rng(0))
    assert draw_fill(two_clients(), 3, 1, np.random.default_rng(0)).size(1) == 0


def test_pooling() -> None:
    fill = draw_fill(two_clients(), 5, 1, np.random.default_rng(0))
    assert fill.pooled().size(0) == 6
    assert np.array_equal(fill.pooled().sources_of(0), fill.sources)
