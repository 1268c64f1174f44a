"""Which training augmentation a set of images has; light to import, workloads/images/augment.py does it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from raysim.workloads.option_types import Help

Augment = Literal["none", "crop_flip", "resized_crop", "rotation", "resized_crop_rotation"]
AUGMENT = Help(
    "training augmentation, drawn anew in each epoch: crop_flip (random crop with a padding of 1/8 height, and "
    "flip); resized_crop (a box of 60 % to 100 % of the area enlarged to the image, and flip); rotation (by up to 10 "
    "degrees, and flip); resized_crop_rotation (both, and flip, as in the code of FedLD); none"
)
LEAST_AREA = 0.6
DEGREES = 10.0


@dataclass(frozen=True)
class Augmentation:
    """Random changes of every training image of a mini-batch, besides a flip."""

    padding: int = 0
    """Black pixels around the image before a random crop out of it; 0: no crop."""
    least_area: float = 1.0
    """Least share of the image's area in a random box that is enlarged to the image; 1: the whole image."""
    degrees: float = 0.0
    """Largest angle of a rotation, to either side."""

    @property
    def warps(self) -> bool:
        """Whether pixels are interpolated."""
        return self.least_area < 1 or self.degrees > 0

    def __bool__(self) -> bool:
        return self.warps or self.padding > 0


NO_AUGMENTATION = Augmentation()


def augmentation(name: Augment, height: int) -> Augmentation:
    """The augmentation of an option's name for images of this height."""
    return {
        "none": NO_AUGMENTATION,
        "crop_flip": Augmentation(padding=max(1, height // 8)),
        "resized_crop": Augmentation(least_area=LEAST_AREA),
        "rotation": Augmentation(degrees=DEGREES),
        "resized_crop_rotation": Augmentation(least_area=LEAST_AREA, degrees=DEGREES),
    }[name]
