from __future__ import annotations

import numpy as np
import pytest
import torch

from raysim.workloads.arrays import array_samples
from raysim.workloads.images.augment import crop_and_flip
from raysim.workloads.images.augmentation import Augmentation
from raysim.workloads.images.samples import ImageSamples

MEAN = np.array([0.5, 0.25, 0.1], dtype=np.float32)
DEVIATION = np.array([0.2, 0.3, 0.4], dtype=np.float32)


def images(count: int = 21) -> np.ndarray:
    return np.random.default_rng(0).integers(256, size=(count, 8, 6, 3), dtype=np.uint8)


def build(count: int = 21, padding: int = 0, channels_last: bool = True) -> ImageSamples:
    augment = Augmentation(padding)
    return ImageSamples(images(count), np.arange(count), MEAN, DEVIATION, "cpu", augment, channels_last=channels_last)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_in_order_without_a_generator_and_normalized_per_channel() -> None:
    batches = list(build().batches(5))
    assert [len(batch) for batch in batches] == [5, 5, 5, 5, 1]
    assert torch.cat([batch.y for batch in batches]).tolist() == list(range(21))
    expected = (images().transpose(0, 3, 1, 2) / 255.0 - MEAN[:, None, None]) / DEVIATION[:, None, None]
    assert np.allclose(torch.cat([batch.x for batch in batches]).numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("padding", [0, 1])
def test_batches_are_float32_channels_last(padding: int) -> None:
    for generator in (None, seeded()):
        for batch in build(padding=padding).batches(5, generator):
            assert batch.x.dtype == torch.float32
            assert batch.y.dtype == torch.int64
            assert batch.x.shape[1:] == (3, 8, 6)
            assert batch.x.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("whole", [0, array_samples.WHOLE_SET_BYTES])
@pytest.mark.parametrize("padding", [0, 1])
def test_batches_for_models_that_flatten_them_are_contiguous(
    padding: int, whole: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_samples, "WHOLE_SET_BYTES", whole)
    for size in (5, 50):
        flat, usual = (build(padding=padding, channels_last=last).batches(size, seeded()) for last in (False, True))
        for one, other in zip(flat, usual, strict=True):
            assert one.x.is_contiguous() and torch.equal(one.x, other.x) and torch.equal(one.y, other.y)


def test_a_single_batch_is_not_shuffled_and_a_copy() -> None:
    data = build()
    (batch,) = data.batches(21, seeded())
    assert batch.y.tolist() == list(range(21)) and data._whole is not None
    assert (
        torch.equal(batch.x, data._whole.permute(0, 3, 1, 2))
        and batch.x.stride() == data._whole.permute(0, 3, 1, 2).stride()
    )
    assert batch.x.data_ptr() != data._whole.data_ptr()
    assert len({tuple(next(iter(data.batches(15, seeded(seed)))).y.tolist()) for seed in (1, 2)}) == 2


def test_training_order_comes_from_the_generator_alone() -> None:
    data = build()
    orders = [torch.cat([batch.y for batch in data.batches(5, seeded(seed))]).tolist() for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == list(range(21))
    assert [len(batch) for batch in data.batches(5, seeded())] == [5, 5, 5, 6]
    state = torch.random.get_rng_state()
    list(build(padding=1).batches(5, seeded()))
    assert torch.equal(state, torch.random.get_rng_state())


def test_images_stay_with_their_labels() -> None:
    plain = torch.cat([batch.x for batch in build().batches(100)])
    for batch in build().batches(4, seeded()):
        assert torch.equal(batch.x, plain[batch.y])


def test_whole_set_and_per_batch_conversion_have_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    data = build()
    whole = [batch.x for batch in data.batches(4, seeded())]
    assert data._whole is not None
    monkeypatch.setattr(array_samples, "WHOLE_SET_BYTES", 0)
    data = build()
    apart = [batch.x for batch in data.batches(4, seeded())]
    assert data._whole is None
    assert all(torch.equal(one, other) for one, other in zip(whole, apart, strict=True))


def test_augmentation_is_for_training_only_and_repeatable() -> None:
    data = build(padding=2)
    plain = torch.cat([batch.x for batch in build().batches(100)])
    assert torch.equal(torch.cat([batch.x for batch in data.batches(4)]), plain)
    first, again, other = ([batch.x for batch in data.batches(4, seeded(seed))] for seed in (1, 1, 2))
    assert all(torch.equal(one, two) for one, two in zip(first, again, strict=True))
    assert not torch.equal(first[0], other[0])


def test_augmentation_is_crop_and_flip_before_normalization() -> None:
    (batch,) = build(padding=2).batches(100, seeded(3))
    generator = seeded(3)
    order = torch.randperm(21, generator=generator)
    raw = torch.from_numpy(images())[order].permute(0, 3, 1, 2)
    cropped = crop_and_flip(raw, generator, 2)
    scale = [torch.tensor(values)[:, None, None] for values in (MEAN, DEVIATION)]
    assert torch.equal(batch.x, (cropped.float() / 255 - scale[0]) / scale[1])
    black = (0 - MEAN) / DEVIATION  # the padding
    assert (batch.x[:, :, 0] == torch.tensor(black)[:, None]).all(dim=2).any()


@pytest.mark.parametrize("count", [0, 1])
def test_tiny_sets(count: int) -> None:
    assert [len(batch) for batch in build(count, padding=1).batches(5, seeded())] == [1] * count
    assert [len(batch) for batch in build(count).batches(5)] == [1] * count


def test_bytes_are_not_kept_beside_the_floats() -> None:
    data = build()
    first = [batch.x for batch in data.batches(4)]
    assert data._raw.numel() == 0 and len(data) == 21
    assert all(torch.equal(one, other.x) for one, other in zip(first, data.batches(4), strict=True))
