"""The common part of all image workloads: how their images become a federation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import Stream
from raysim.workloads.images.augmentation import AUGMENT, Augment, augmentation
from raysim.workloads.images.augmented_fill import draw_fill
from raysim.workloads.images.federation import ImageFederation, channel_statistics
from raysim.workloads.option_types import Help, NonNegativeInt
from raysim.workloads.splits.partition import Partition
from raysim.workloads.splits.split_options import Labeled, SplitOptions

if TYPE_CHECKING:
    from raysim.workloads.images.image_set import ImageSet


@dataclass(frozen=True)
class ImageOptions(SplitOptions, ABC):
    """The split of an image set over clients.

    ``load`` draws from the streams partition, local_test, validation and fill.
    """

    name: ClassVar[str]
    inputs: ClassVar[Literal["array", "graph"]] = "array"

    samples_per_client: Annotated[
        NonNegativeInt,
        Help(
            "fill every client's training part up to this many samples with augmented copies of training "
            "samples of all clients, who must then all take part; 0: do not",
            "FedRAD, section 4.2.2",
        ),
    ] = 0
    augment: Annotated[Augment, AUGMENT] = "none"
    limit: Annotated[NonNegativeInt, Help("use only the first N training images, for quick looks; 0: all")] = 0

    @abstractmethod
    def images(self, stream: Stream) -> ImageSet:
        """The images before the split."""

    def blank_images(self, stream: Stream) -> ImageSet | None:
        """The same set with blank images, labels and sites as they are; None where these cannot be read much faster.

        WorkloadError if the images cannot be had.
        """
        return None

    def load(self, stream: Stream) -> ImageFederation:
        """Reads the images and splits them. WorkloadError if they cannot be had or cannot be split as asked."""
        images = self._limited(self.images(stream))
        return self._federation(images, stream, *channel_statistics(images.images))

    def sketch(self, stream: Stream) -> ImageFederation | None:
        """``load``'s federation with blank images, or None if only loading tells. WorkloadError as in ``load``."""
        images = self.blank_images(stream)
        if images is None:
            return None
        unknown = np.zeros(images.images.shape[3], np.float32)
        return self._federation(self._limited(images), stream, unknown, unknown)

    def _limited(self, images: ImageSet) -> ImageSet:
        return images.first(self.limit) if self.limit else images

    def _federation(
        self, images: ImageSet, stream: Stream, mean: NDArray[np.float32], deviation: NDArray[np.float32]
    ) -> ImageFederation:
        if self.partition == "views" and self.samples_per_client:
            raise WorkloadError(
                f"{images.name}: samples_per_client = {self.samples_per_client} fills up the clients of a split, and "
                "views are none; set view_samples instead, and samples_per_client to 0"
            )
        labeled = Labeled(
            images.labels,
            len(images.test_labels),
            images.sites,
            images.test_sites,
            images.superclasses,
            lambda: brightness(images.images),
            "the site of every training image (the array train_sites of an npz file, with use_val also val_sites)",
        )
        try:
            split = self.split(labeled, stream)
        except WorkloadError as error:
            limited = f" (limit = {self.limit} keeps {len(images.labels)} training images)" if self.limit else ""
            raise WorkloadError(f"{images.name}: {error}{limited}") from error
        height = images.images.shape[1]
        fill = None
        if isinstance(split.train, Partition) and self.samples_per_client:
            padding = augmentation("crop_flip", height).padding
            fill = draw_fill(split.train, self.samples_per_client, padding, stream("fill"))
        return ImageFederation(
            name=images.name,
            synthetic=images.synthetic,
            class_names=images.class_names,
            inputs=images.images,
            labels=images.labels,
            test_inputs=images.test_images,
            test_labels=images.test_labels,
            **vars(split),
            notes=images.notes,
            fill=fill,
            mean=mean,
            deviation=deviation,
            augment=augmentation(self.augment, height),
        )


def brightness(images: NDArray[np.uint8]) -> NDArray[np.float64]:
    """The mean of each image's pixels, the feature by which ``partition=quantile`` sorts images [N, H, W, C]."""
    if images.strides[0] == 0:  # blank ones: there is nothing to sum
        return np.zeros(len(images))
    means: NDArray[np.float64] = images.mean(axis=(1, 2, 3), dtype=np.float64)
    return means
