"""FEMNIST of LEAF: handwritten digits and letters, whose writers are the clients."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import Stream
from raysim.workloads.files.cache_files import HOW_TO_GET_IT, published_place
from raysim.workloads.files.leaf_files import is_leaf, read_leaf
from raysim.workloads.images.image_set import ImageSet, image_set, read_npz
from raysim.workloads.images.image_workload import ImageOptions
from raysim.workloads.option_types import Help
from raysim.workloads.splits.split_options import PARTITION_HELP, PartitionName

SIDE = 28


@dataclass(frozen=True)
class Femnist(ImageOptions):
    """FEMNIST (Caldas et al. 2018): 1x28x28, 62 classes; the writers of NIST's forms are the clients.

    It is read from femnist.npz, or, slowly, from the .json files that LEAF's preprocess.sh writes.
    """

    name: ClassVar[str] = "femnist"
    class_names: ClassVar[tuple[str, ...]] = tuple(string.digits + string.ascii_uppercase + string.ascii_lowercase)
    defaults: ClassVar[Mapping[str, object]] = {"model.name": "cnn", "model.units": 2048}

    path: Annotated[
        str,
        Help(
            "femnist.npz, or a folder in LEAF's layout; empty: images/femnist.npz or the folder femnist of $RAYSIM_DATA"
        ),
    ] = ""
    partition: Annotated[PartitionName, Help(PARTITION_HELP)] = "sites"

    def blank_images(self, stream: Stream) -> ImageSet | None:
        return None if self._place().is_dir() else self.images(stream, pixels=False)

    def images(self, stream: Stream, pixels: bool = True) -> ImageSet:
        place = self._place()
        arrays = leaf_images(place) if place.is_dir() else read_npz(place, pixels)
        return image_set(self.name, arrays, str(place), class_names=self.class_names)

    def _place(self) -> Path:
        below, how = ("images/femnist.npz", "femnist"), f" with train/*.json{HOW_TO_GET_IT}"
        return published_place(self.name, self.path, below, how, lambda place: place.is_file() or is_leaf(place))


LARGEST_CLASS = 10_000


def leaf_images(folder: Path) -> dict[str, NDArray[Any]]:
    """The users of LEAF's image files as arrays with MedMNIST's keys, the users as sites.

    LEAF's pixels are numbers from 0 to 1, 784 of each image. WorkloadError for a file that holds something else.
    """
    arrays: dict[str, NDArray[Any]] = {}
    for part in ("train", "test"):
        images, labels, sites = [], [], []
        for user, x, y in read_leaf(folder, part):
            try:
                pixels, own = np.array(x, dtype=np.float32).reshape(len(x), SIDE, SIDE), np.array(y, dtype=np.int64)
                if len(own) and not 0 <= own.min() <= own.max() < LARGEST_CLASS:
                    raise ValueError(f"a label is not from 0 to {LARGEST_CLASS - 1}")
                if own.shape != (len(x),) or not (pixels >= 0).all() or not (pixels <= 1).all():
                    raise ValueError("a pixel is outside 0 to 1, or a label is no number")
            except (ValueError, TypeError, OverflowError) as error:
                raise WorkloadError(
                    f"{folder / part}: the samples of user {user} are no images of {SIDE}x{SIDE} pixels with a class "
                    f"({error}); make the files again"
                ) from error
            images.append(np.rint(pixels * 255).astype(np.uint8))
            labels.append(own)
            sites.append(np.full(len(x), user))
        if not sum(map(len, labels)):
            raise WorkloadError(f"{folder / part} holds no samples; make the files again")
        arrays |= {
            f"{part}_images": np.concatenate(images),
            f"{part}_labels": np.concatenate(labels),
            f"{part}_sites": np.concatenate(sites),
        }
    return arrays
