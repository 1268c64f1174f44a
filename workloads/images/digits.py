"""scikit-learn's handwritten digits: 1797 real 8x8 images, bundled with it, so that a first run needs no download."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.federated_data import Stream
from raysim.workloads.images.image_set import ImageSet
from raysim.workloads.images.image_workload import ImageOptions

TEST_SHARE = 0.2


@dataclass(frozen=True)
class Digits(ImageOptions):
    """Handwritten digits, 1x8x8, ten classes, bundled with scikit-learn; real and small, for a first run.

    A fifth of each class, drawn from the stream test, is the global test set.
    """

    name: ClassVar[str] = "digits"
    # 1437 training images over ten clients are a handful of steps a round.
    defaults: ClassVar[Mapping[str, object]] = {"training.learning_rate": 0.1}

    def blank_images(self, stream: Stream) -> ImageSet:
        return self.images(stream)  # one small file

    def images(self, stream: Stream) -> ImageSet:
        values = bundled()
        labels = values[:, -1].astype(np.int64)
        pixels = np.rint(values[:, :-1].reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)[..., None]
        generator = stream("test")
        tested = np.zeros(len(labels), dtype=np.bool_)
        for label in range(10):
            members = generator.permutation(np.flatnonzero(labels == label))
            tested[members[: round(TEST_SHARE * len(members))]] = True
        return ImageSet(
            name=self.name,
            images=pixels[~tested],
            labels=labels[~tested],
            test_images=pixels[tested],
            test_labels=labels[tested],
            class_names=tuple("0123456789"),
        )


@cache
def bundled() -> NDArray[np.float64]:
    """The file inside scikit-learn [1797, 65], a digit in the last column, read once in a process.

    Read as it is, because importing ``sklearn.datasets`` takes longer than all else that a first run does on its data.
    """
    package = find_spec("sklearn")
    for folder in (package.submodule_search_locations or ()) if package is not None else ():
        file = Path(folder) / "datasets" / "data" / "digits.csv.gz"
        if file.is_file():
            return np.loadtxt(file, delimiter=",")
    from sklearn.datasets import load_digits  # a release that keeps it elsewhere knows where

    found = load_digits()
    return np.column_stack([found.data, found.target])
