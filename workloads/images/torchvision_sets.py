"""CIFAR-10, MNIST and Fashion-MNIST: from an .npz file, from torchvision's folders or by torchvision's download."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np

from workloads.augmentation import AUGMENT, Augment
from workloads.cache_files import CACHE
from workloads.errors import WorkloadError
from workloads.federated_data import Stream
from workloads.images.image_set import ImageSet, image_set, read_npz
from workloads.images.image_workload import ImageOptions
from workloads.images.npz import images_folder
from workloads.option_types import Help


@dataclass(frozen=True)
class TorchvisionOptions(ImageOptions):
    """A data set that torchvision knows, from the first place that has it.

    These are NAME.npz in the folder images of $RAYSIM_DATA (MedMNIST's keys; it may be a subset), files that
    torchvision has in `data_dir`, and, with `download` only, torchvision's download, whose checksums are verified.
    Nothing is fetched without that option.
    """

    class_names: ClassVar[tuple[str, ...]]
    folder: ClassVar[str]
    """Of torchvision's files, below `data_dir`."""
    torchvision_name: ClassVar[str]
    """Its class in `torchvision.datasets`."""

    data_dir: Annotated[str, Help(f"folder with torchvision's files of this set; empty: {CACHE}")] = ""
    download: Annotated[bool, Help("allow torchvision to download missing files into data_dir, with checksums")] = False

    def images(self, stream: Stream) -> ImageSet:
        stored = self._stored(pixels=True)
        if stored is not None:
            return stored
        from workloads._torchvision import datasets

        kind, root = getattr(datasets, self.torchvision_name), self._root()
        arrays = {}
        try:
            for part in ("train", "test"):
                dataset = kind(str(root), train=part == "train", download=self.download)
                arrays[f"{part}_images"] = np.asarray(dataset.data)
                arrays[f"{part}_labels"] = np.asarray(dataset.targets, dtype=np.int64)
        except Exception as error:  # torchvision's readers raise many types, UnpicklingError for a hostile file
            raise WorkloadError(self._unavailable(root, str(error) or type(error).__name__)) from error
        return image_set(self.name, arrays, f"torchvision's files in {root}", class_names=self.class_names)

    def blank_images(self, stream: Stream) -> ImageSet | None:
        stored, root = self._stored(pixels=False), self._root()
        if stored is None and not self.download and not (root / self.folder).is_dir():
            raise WorkloadError(self._unavailable(root, f"there is no folder {self.folder} in it"))
        return stored

    def _stored(self, pixels: bool) -> ImageSet | None:
        folder = images_folder()
        file = None if folder is None else folder / f"{self.name}.npz"
        if file is None or not file.exists():
            return None
        return image_set(self.name, read_npz(file, pixels), str(file), class_names=self.class_names)

    def _root(self) -> Path:
        return Path(self.data_dir or CACHE).expanduser()

    def _unavailable(self, root: Path, error: str) -> str:
        what = "cannot be downloaded into" if self.download else "is not to be had from"
        reason = " ".join(error.split())
        where = images_folder() or "$RAYSIM_DATA/images (RAYSIM_DATA is not set)"
        return (
            f"{self.name} {what} {root}: {reason} (torchvision refuses files with a wrong checksum). Three ways: "
            f"put {self.name}.npz into {where}; set data_dir to a folder with torchvision's files, all of them whole; "
            "set download=true with a network connection"
        )


@dataclass(frozen=True)
class Cifar10(TorchvisionOptions):
    """CIFAR-10 (Krizhevsky 2009): 3x32x32, 50,000 training and 10,000 test images."""

    name: ClassVar[str] = "cifar10"
    folder: ClassVar[str] = "cifar-10-batches-py"
    torchvision_name: ClassVar[str] = "CIFAR10"
    class_names: ClassVar[tuple[str, ...]] = (
        "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
    )  # fmt: skip

    augment: Annotated[Augment, AUGMENT] = "crop_flip"


@dataclass(frozen=True)
class Mnist(TorchvisionOptions):
    """MNIST (LeCun et al. 1998): 1x28x28, 60,000 training and 10,000 test images."""

    name: ClassVar[str] = "mnist"
    folder: ClassVar[str] = "MNIST/raw"
    torchvision_name: ClassVar[str] = "MNIST"
    class_names: ClassVar[tuple[str, ...]] = tuple("0123456789")


@dataclass(frozen=True)
class FashionMnist(TorchvisionOptions):
    """Fashion-MNIST (Xiao et al. 2017): 1x28x28, 60,000 training and 10,000 test images."""

    name: ClassVar[str] = "fashion-mnist"
    folder: ClassVar[str] = "FashionMNIST/raw"
    torchvision_name: ClassVar[str] = "FashionMNIST"
    class_names: ClassVar[tuple[str, ...]] = (
        "t-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot",
    )  # fmt: skip
