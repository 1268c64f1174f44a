"""Training augmentation of a whole batch of images at once, every image by its own draw."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from raysim.workloads.images.augmentation import Augmentation

TRIES = 10
"""Number of draws of a box; the first that fits into the image is taken, the whole image if none does."""
ASPECT = math.log(4 / 3)
"""Largest logarithm of the ratio of a box's sides, either way."""


def augmented(images: Tensor, generator: torch.Generator, how: Augmentation) -> Tensor:
    """Images [B, C, H, W] as they are trained on; a new tensor of the same dtype, device and memory format."""
    if how.warps:
        return crop_and_rotate(images, generator, how.least_area, how.degrees)
    return crop_and_flip(images, generator, how.padding)


def crop_and_rotate(images: Tensor, generator: torch.Generator, least_area: float, degrees: float) -> Tensor:
    """Random resized crop, random rotation and a flip with probability 1/2.

    A box with a share of the image's area in [least_area, 1] and an aspect ratio in [3/4, 4/3] (logarithmically
    uniform), at a random place, is enlarged to the image's size (Szegedy et al. 2015, section 6), turned by an angle
    in [-degrees, degrees] about its center, and flipped. Draws are made on the generator's device, in float64.
    """
    batch, height, width = len(images), *images.shape[2:]

    def uniform(*shape: int) -> Tensor:
        return torch.rand(*shape, dtype=torch.float64, generator=generator, device=generator.device)

    area = height * width * (least_area + (1 - least_area) * uniform(batch, TRIES))
    ratio = torch.exp(ASPECT * (2 * uniform(batch, TRIES) - 1))
    heights, widths = (area / ratio).sqrt().round().clamp(min=1), (area * ratio).sqrt().round().clamp(min=1)
    fits = (heights <= height) & (widths <= width)
    first = fits.int().argmax(dim=1, keepdim=True)
    any_fits = fits.any(dim=1)
    tall = torch.where(any_fits, heights.gather(1, first)[:, 0], float(height))
    wide = torch.where(any_fits, widths.gather(1, first)[:, 0], float(width))
    top, left = (uniform(batch) * (height - tall + 1)).floor(), (uniform(batch) * (width - wide + 1)).floor()
    angles, flips = degrees * (2 * uniform(batch) - 1), uniform(batch) < 0.5
    return crop_and_rotate_with(images, torch.stack([top, left, tall, wide], dim=1), angles, flips)


def crop_and_rotate_with(images: Tensor, boxes: Tensor, angles: Tensor, flips: Tensor) -> Tensor:
    """The boxes, angles and flips that are asked for; ``crop_and_rotate`` says what is done, by one interpolation.

    ``boxes``, float64 [B, 4], are top, left, height and width in pixels; ``angles``, float64 [B], are degrees, positive
    counter-clockwise; ``flips`` is bool [B]. Interpolation is bilinear. What a rotation brings in from outside of the
    box is the image's own, and black (0) outside of the image.
    """
    if images.numel() == 0:
        return images.clone()
    height, width = images.shape[2:]
    top, left, tall, wide = boxes.unbind(dim=1)
    radians = torch.deg2rad(angles)
    cosine, sine, mirror = radians.cos(), radians.sin(), 1.0 - 2.0 * flips.double()
    # From places in the result to places in the image, both in [-1, 1] along each axis: mirrored, turned (in pixels,
    # so that angles stay angles in images that are not square), then scaled and shifted into the box.
    x = torch.stack([cosine * mirror, -sine * (height / width), (2 * left + wide) / wide - width / wide], dim=1)
    y = torch.stack([sine * mirror * (width / height), cosine, (2 * top + tall) / tall - height / tall], dim=1)
    maps = torch.stack([x * (wide / width)[:, None], y * (tall / height)[:, None]], dim=1)
    grid = torch.nn.functional.affine_grid(maps.float().to(images.device), list(images.shape), align_corners=False)
    result = torch.nn.functional.grid_sample(images.float(), grid, mode="bilinear", align_corners=False)
    if not images.is_floating_point():
        result = result.round_().clamp_(0, 255)
    channels_last = images.is_contiguous(memory_format=torch.channels_last) and not images.is_contiguous()
    layout = torch.channels_last if channels_last else torch.contiguous_format
    return result.to(images.dtype).contiguous(memory_format=layout)


def crop_and_flip(images: Tensor, generator: torch.Generator, padding: int = 4) -> Tensor:
    """Crop every image at random out of its zero-padded self, and flip it left to right with probability 1/2.

    Source: He et al. 2016, section 4.2.

    ``images`` is [B, C, H, W] of any dtype, the result a new tensor of the same shape, dtype, device and memory format
    (channels_last stays so). Each image has its own draw. The draws are made on the generator's device, so a CPU
    generator gives the same augmentation wherever the images are.
    """
    batch = (images.shape[0],)
    device = generator.device
    offsets_y = torch.randint(0, 2 * padding + 1, batch, generator=generator, device=device)
    offsets_x = torch.randint(0, 2 * padding + 1, batch, generator=generator, device=device)
    flips = torch.randint(0, 2, batch, generator=generator, device=device).bool()
    return crop_and_flip_with(images, offsets_y, offsets_x, flips, padding)


def crop_and_flip_with(images: Tensor, offsets_y: Tensor, offsets_x: Tensor, flips: Tensor, padding: int) -> Tensor:
    """The crop and flip that are asked for; ``crop_and_flip`` gives shapes and properties.

    ``offsets_y`` and ``offsets_x``, int64 [B], are the corner of the crop in the padded image, each in [0, 2·padding]
    (not checked: on a GPU that would wait for it); ``padding`` leaves an image where it is. ``flips``, bool [B], says
    which images are flipped after the crop.
    """
    if images.numel() == 0:
        return images.clone()
    batch, channels, height, width = images.shape
    channels_last = images.is_contiguous(memory_format=torch.channels_last) and not images.is_contiguous()
    planes, depth = (1, channels) if channels_last else (channels, 1)
    tall, wide = height + 2 * padding, width + 2 * padding
    device = images.device
    flips, offsets_y, offsets_x = flips.to(device), offsets_y.to(device), offsets_x.to(device)

    # Padded images, then their mirror images, in the memory order of `images`: [2, B, planes, tall, wide, depth].
    padded = images.new_zeros(2, batch, planes, tall, wide, depth)
    inside = padded[:, :, :, padding : padding + height, padding : padding + width]
    ordered = (images.permute(0, 2, 3, 1) if channels_last else images).reshape(batch, planes, height, width, depth)
    inside[0] = ordered
    inside[1] = ordered.flip(3)

    # A row of the result is a run of consecutive values in memory, so an overlapping view of all runs turns crop and
    # flip into one selection. Measured on one CPU core at 50x3x32x32 and 128x3x32x32, in both memory formats, against
    # gathering pixels, advanced indexing, unfold and grouping by offset: the fastest for uint8, which the workloads
    # feed it (0.09 and 0.17 ms, 6 to 9 times as fast as a loop over images). For float32 it is 3 to 4 times as fast
    # as the loop, and gathering pixels is up to a quarter faster still at 128.
    run = width * depth
    runs = padded.as_strided((padded.numel() - run + 1, run), (1, 1))
    image = flips.long() * batch + torch.arange(batch, device=device)
    column = torch.where(flips, 2 * padding - offsets_x, offsets_x)
    corner = ((image * planes * tall + offsets_y) * wide + column) * depth
    plane = torch.arange(planes, device=device) * (tall * wide * depth)
    row = torch.arange(height, device=device) * (wide * depth)
    starts = corner[:, None, None] + plane[:, None] + row
    result = runs.index_select(0, starts.flatten())
    if channels_last:
        return result.view(batch, height, width, channels).permute(0, 3, 1, 2)
    return result.view(batch, channels, height, width)
