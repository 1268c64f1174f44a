"""Made-up images of any size with structure that a model can learn, for measuring speed and for tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.federated_data import Stream
from raysim.workloads.images.image_set import ImageSet, blank
from raysim.workloads.images.image_workload import ImageOptions
from raysim.workloads.option_types import Ge, Help, Le, NonNegative, PositiveInt

COARSE = 5  # points of a template's coarse grid per side: smooth enough to survive a shift
CHUNK = 4096  # images made at a time


@dataclass(frozen=True)
class Synthetic(ImageOptions):
    """Made-up images: one smooth random template per class, shifted and with noise.

    A sample is its class's template at a random shift (up to 1/8 of the side, wrapped around) and contrast (0.5 to
    1.5), with Gaussian noise. Not real data: every output of a run says synthetic.
    """

    name: ClassVar[str] = "synthetic"

    train_size: Annotated[PositiveInt, Help("training images")] = 10_000
    test_size: Annotated[PositiveInt, Help("global test images")] = 2_000
    classes: Annotated[int, Ge(2), Help("number of classes")] = 10
    channels: Annotated[int, Ge(1), Le(4), Help("channels of an image")] = 3
    height: Annotated[int, Ge(2), Help("height of an image in pixels")] = 32
    width: Annotated[int, Ge(2), Help("width of an image in pixels")] = 32
    noise: Annotated[NonNegative, Help("standard deviation of the noise, in those of a template")] = 1.0

    def blank_images(self, stream: Stream) -> ImageSet:
        return self.images(stream, pixels=False)

    def images(self, stream: Stream, pixels: bool = True) -> ImageSet:
        generator = stream("synthetic")
        templates = self._templates(generator)
        images, labels = self._samples(templates, self.train_size, generator, pixels)
        test_images, test_labels = self._samples(templates, self.test_size, generator, pixels)
        return ImageSet(
            name=self.name,
            images=images,
            labels=labels,
            test_images=test_images,
            test_labels=test_labels,
            class_names=tuple(f"class {label}" for label in range(self.classes)),
            synthetic=True,
        )

    def _templates(self, generator: np.random.Generator) -> NDArray[np.float32]:
        """[classes, H, W, C], each with mean 0 and deviation 1: a coarse random grid, linearly enlarged."""
        coarse = generator.standard_normal((self.classes, COARSE, COARSE, self.channels))
        fine = np.einsum("hi,wj,kijc->khwc", _enlarge(self.height), _enlarge(self.width), coarse)
        fine -= fine.mean(axis=(1, 2, 3), keepdims=True)
        deviation = fine.std(axis=(1, 2, 3), keepdims=True)
        scaled: NDArray[np.float32] = (fine / deviation).astype(np.float32)
        return scaled

    def _samples(
        self, templates: NDArray[np.float32], count: int, generator: np.random.Generator, pixels: bool
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        labels: NDArray[np.int64] = generator.permutation(np.arange(count) % self.classes)
        shape = (count, self.height, self.width, self.channels)
        if not pixels:
            return blank(shape), labels
        images = np.empty(shape, dtype=np.uint8)
        for start in range(0, count, CHUNK):
            part = labels[start : start + CHUNK]
            size = len(part)
            downs = generator.integers(-(self.height // 8), self.height // 8 + 1, size=size)
            rights = generator.integers(-(self.width // 8), self.width // 8 + 1, size=size)
            rows = (np.arange(self.height) + downs[:, None]) % self.height
            columns = (np.arange(self.width) + rights[:, None]) % self.width
            values = templates[part[:, None, None], rows[:, :, None], columns[:, None, :]]
            values *= generator.uniform(0.5, 1.5, size=(size, 1, 1, 1)).astype(np.float32)
            if self.noise:
                values += np.float32(self.noise) * generator.standard_normal(values.shape, dtype=np.float32)
            values *= 40  # three deviations of contrast and noise together stay mostly within 0..255
            values += 128
            images[start : start + size] = np.clip(values, 0, 255).astype(np.uint8)
        return images, labels


def _enlarge(size: int) -> NDArray[np.float64]:
    """[size, COARSE]: the weights of linear interpolation from the coarse grid to ``size`` points."""
    points = np.linspace(0, COARSE - 1, size)
    return np.maximum(0.0, 1.0 - np.abs(points[:, None] - np.arange(COARSE)))
