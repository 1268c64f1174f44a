from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import pad
from torchvision.transforms.functional import InterpolationMode, rotate

from raysim.workloads.images.augment import (
    augmented,
    crop_and_flip,
    crop_and_flip_with,
    crop_and_rotate,
    crop_and_rotate_with,
)
from raysim.workloads.images.augmentation import Augmentation, augmentation


def one_by_one(images: Tensor, offsets_y: Tensor, offsets_x: Tensor, flips: Tensor, padding: int) -> Tensor:
    """The plain reference: pad, cut and flip every image on its own."""
    height, width = images.shape[2:]
    results = []
    for image, y, x, flip in zip(images, offsets_y.tolist(), offsets_x.tolist(), flips.tolist(), strict=True):
        crop = pad(image, (padding,) * 4)[:, y : y + height, x : x + width]
        results.append(crop.flip(2) if flip else crop)
    return torch.stack(results)


@settings(deadline=None, max_examples=50)
@given(
    shape=st.tuples(st.integers(1, 6), st.integers(1, 4), st.integers(1, 7), st.integers(1, 7)),
    padding=st.integers(0, 4),
    dtype=st.sampled_from([torch.uint8, torch.float32]),
    memory_format=st.sampled_from([torch.contiguous_format, torch.channels_last]),
    seed=st.integers(0, 1000),
)
def test_equals_a_loop_over_images(
    shape: tuple[int, int, int, int], padding: int, dtype: torch.dtype, memory_format: torch.memory_format, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    images = torch.randint(0, 256, shape, generator=generator).to(dtype).contiguous(memory_format=memory_format)
    offsets = torch.randint(0, 2 * padding + 1, (2, shape[0]), generator=generator)
    flips = torch.randint(0, 2, (shape[0],), generator=generator).bool()
    before = images.clone()
    result = crop_and_flip_with(images, offsets[0], offsets[1], flips, padding)
    assert torch.equal(result, one_by_one(images, offsets[0], offsets[1], flips, padding))
    assert result.dtype == dtype
    assert result.is_contiguous(memory_format=memory_format)
    assert torch.equal(images, before)


def test_every_corner_by_hand() -> None:
    image = torch.tensor([[[[1, 2], [3, 4]]]], dtype=torch.uint8).expand(4, 1, 2, 2)
    result = crop_and_flip_with(
        image, torch.tensor([0, 1, 2, 1]), torch.tensor([0, 1, 1, 0]), torch.tensor([False, True, False, True]), 1
    )
    assert result[:, 0].tolist() == [[[0, 0], [0, 1]], [[2, 1], [4, 3]], [[3, 4], [0, 0]], [[1, 0], [3, 0]]]


def test_the_crop_of_non_contiguous_images() -> None:
    images = torch.arange(2 * 3 * 8 * 8).view(2, 3, 8, 8)[:, :, ::2, 1::2]
    draws = torch.tensor([2, 0]), torch.tensor([1, 2]), torch.tensor([True, False])
    assert torch.equal(crop_and_flip_with(images, *draws, 1), one_by_one(images, *draws, 1))


def test_random_form_draws_for_each_image_and_repeats_from_its_seed() -> None:
    images = torch.arange(1, 37, dtype=torch.float32).view(1, 1, 6, 6).repeat(3000, 1, 1, 1)
    state = torch.get_rng_state()
    result = crop_and_flip(images, torch.Generator().manual_seed(5), padding=2)
    assert torch.equal(torch.get_rng_state(), state), "the global generator was used"
    assert torch.equal(result, crop_and_flip(images, torch.Generator().manual_seed(5), padding=2))
    kinds, counts = np.unique(result.flatten(1).numpy(), axis=0, return_counts=True)
    assert len(kinds) == 5 * 5 * 2, "every offset with and without a flip"
    assert counts.min() > 25 and counts.max() < 110, "60 expected of each"


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_no_images(dtype: torch.dtype) -> None:
    assert crop_and_flip(torch.zeros(0, 3, 8, 8, dtype=dtype), torch.Generator()).shape == (0, 3, 8, 8)


def whole(images: Tensor) -> Tensor:
    height, width = images.shape[2:]
    return torch.tensor([0.0, 0.0, height, width], dtype=torch.float64).repeat(len(images), 1)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
@pytest.mark.parametrize("size", [(9, 9), (8, 14)])
def test_rotation_is_that_of_torchvision_and_flips_come_after_it(size: tuple[int, int], dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (6, 3, *size), generator=generator).to(dtype)
    angles = torch.tensor([0.0, 10.0, -7.0, 45.0, 90.0, -10.0], dtype=torch.float64)
    flips = torch.tensor([False, False, True, False, True, True])
    found = crop_and_rotate_with(images, whole(images), angles, flips)
    for image, angle, flip, result in zip(images, angles.tolist(), flips.tolist(), found, strict=True):
        turned = rotate(image[None], angle, InterpolationMode.BILINEAR)[0]
        expected = turned.flip(2) if flip else turned
        assert (result.float() - expected.float()).abs().max() <= 1.0  # of 255: rounding
    assert found.dtype == dtype
    assert torch.allclose(found[0].float(), images[0].float(), atol=1e-2)


def test_a_box_is_enlarged_by_hand() -> None:
    # The left of two columns, enlarged to two: their centers lie at 1/4 and 3/4 of its width. Between black (center at
    # -1/2) and 100 (at 1/2) the first is 0.75·100, between 100 and 200 (at 3/2) the second is 100 + 0.25·100.
    image = torch.tensor([[[[100.0, 200.0], [100.0, 200.0]]]])
    box = torch.tensor([[0.0, 0.0, 2.0, 1.0]], dtype=torch.float64)
    found = crop_and_rotate_with(image, box, torch.zeros(1, dtype=torch.float64), torch.tensor([False]))
    assert found[0, 0, 0].tolist() == pytest.approx([75.0, 125.0], abs=1e-3)


def test_a_box_inside_is_the_enlarged_crop() -> None:
    images = torch.rand(1, 2, 12, 12, generator=torch.Generator().manual_seed(1))
    box = torch.tensor([[3.0, 2.0, 6.0, 6.0]], dtype=torch.float64)
    found = crop_and_rotate_with(images, box, torch.zeros(1, dtype=torch.float64), torch.tensor([False]))
    crop = images[:, :, 3:9, 2:8]
    expected = torch.nn.functional.interpolate(crop, size=(12, 12), mode="bilinear", align_corners=False)
    # At the border the enlarged crop repeats its last pixels, where this one looks at the neighbors outside.
    assert torch.allclose(found[:, :, 1:-1, 1:-1], expected[:, :, 1:-1, 1:-1], atol=1e-5)


def test_random_boxes_and_angles_repeat_from_their_seed_and_stay_in_their_ranges(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import raysim.workloads.images.augment as module

    seen: list[tuple[Tensor, ...]] = []

    def spy(images: Tensor, boxes: Tensor, angles: Tensor, flips: Tensor) -> Tensor:
        seen.append((boxes, angles, flips))
        return crop_and_rotate_with(images, boxes, angles, flips)

    monkeypatch.setattr(module, "crop_and_rotate_with", spy)
    images = torch.randint(0, 256, (2000, 1, 10, 16), generator=torch.Generator().manual_seed(2)).to(torch.uint8)
    state = torch.get_rng_state()
    first, again = (crop_and_rotate(images, torch.Generator().manual_seed(5), 0.3, 10.0) for _ in range(2))
    assert torch.equal(first, again)
    assert torch.equal(torch.get_rng_state(), state), "the global generator was used"
    assert not torch.equal(first, crop_and_rotate(images, torch.Generator().manual_seed(6), 0.3, 10.0))
    boxes, angles, flips = seen[0]
    top, left, tall, wide = boxes.unbind(dim=1)
    assert (top >= 0).all() and (top + tall <= 10).all() and (left >= 0).all() and (left + wide <= 16).all()
    share = tall * wide / 160
    assert share.min() > 0.2 and share.max() <= 1.0 and 0.35 < share.mean() < 0.75
    assert angles.abs().max() <= 10 and angles.min() < -9 and angles.max() > 9
    assert 850 < flips.sum() < 1150


def test_names_of_augmentations() -> None:
    assert not augmentation("none", 32)
    assert augmentation("crop_flip", 32) == Augmentation(padding=4)
    both = augmentation("resized_crop_rotation", 32)
    assert (both.least_area, both.degrees) == (0.6, 10.0)
    assert augmentation("resized_crop", 32).degrees == 0 and augmentation("rotation", 32).least_area == 1
    images = torch.randint(0, 256, (4, 1, 8, 8), generator=torch.Generator().manual_seed(2)).to(torch.uint8)
    for name in ("crop_flip", "resized_crop", "rotation", "resized_crop_rotation"):
        found = augmented(images, torch.Generator().manual_seed(0), augmentation(name, 8))
        assert found.shape == images.shape and found.dtype == torch.uint8 and not torch.equal(found, images)
