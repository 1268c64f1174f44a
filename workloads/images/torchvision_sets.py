"""CIFAR-10, CIFAR-100, MNIST and Fashion-MNIST: from .npz files, torchvision's folders or torchvision's download."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np

from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import Stream
from raysim.workloads.files.cache_files import CACHE
from raysim.workloads.images.augmentation import AUGMENT, Augment
from raysim.workloads.images.image_set import Array, ImageSet, image_set, read_npz
from raysim.workloads.images.image_workload import ImageOptions
from raysim.workloads.images.npz import images_folder
from raysim.workloads.option_types import ALLOW_DOWNLOAD, Help


@dataclass(frozen=True)
class TorchvisionOptions(ImageOptions):
    """A data set that torchvision knows, from the first place that has it.

    These are NAME.npz in the folder images of $RAYSIM_DATA (MedMNIST's keys; it may be a subset), files that
    torchvision has in ``path``, and, with ``download`` only, torchvision's download, whose checksums are verified.
    Nothing is fetched without that option.
    """

    class_names: ClassVar[tuple[str, ...]]
    folder: ClassVar[str]
    """Folder of torchvision's files, below ``path``."""
    superclasses: ClassVar[tuple[int, ...]] = ()
    """Superclass of each class, where there are any."""
    fetched: ClassVar[bool] = True
    """Whether ``python -m raysim.data fetch`` knows it (raysim/workloads/data_sets/catalog.py)."""
    torchvision_name: ClassVar[str]
    """Its class in ``torchvision.datasets``."""

    path: Annotated[str, Help(f"folder with torchvision's files of this set; empty: {CACHE}")] = ""
    download: Annotated[bool, Help("allow torchvision to download missing files into path, with checksums")] = False

    def images(self, stream: Stream) -> ImageSet:
        stored = self._stored(pixels=True)
        if stored is not None:
            return stored
        from raysim.workloads._torchvision import datasets

        kind, root = getattr(datasets, self.torchvision_name), self._root()
        arrays = {}
        try:
            for part in ("train", "test"):
                dataset = kind(str(root), train=part == "train", download=self.download)
                arrays[f"{part}_images"] = np.asarray(dataset.data)
                arrays[f"{part}_labels"] = np.asarray(dataset.targets, dtype=np.int64)
        except Exception as error:  # torchvision's readers raise many types, UnpicklingError for a hostile file
            said = f"{error or type(error).__name__} (torchvision refuses files with a wrong checksum)"
            raise WorkloadError(self._unavailable(root, said)) from error
        return self._checked(arrays, f"torchvision's files in {root}")

    def blank_images(self, stream: Stream) -> ImageSet | None:
        stored, root = self._stored(pixels=False), self._root()
        if stored is None and not self.download and not (root / self.folder).is_dir():
            lacking = f"folder {self.folder} in it" if root.is_dir() else "such folder"
            raise WorkloadError(self._unavailable(root, f"there is no {lacking}"))
        return stored

    def _stored(self, pixels: bool) -> ImageSet | None:
        folder = None if self.path else images_folder()
        file = None if folder is None else folder / f"{self.name}.npz"
        if file is None or not file.is_file():
            return None
        return self._checked(read_npz(file, pixels), str(file))

    def _checked(self, arrays: dict[str, Array], origin: str) -> ImageSet:
        above = {"superclasses": np.array(self.superclasses)} if self.superclasses else {}
        return image_set(self.name, arrays | above, origin, class_names=self.class_names)

    def _root(self) -> Path:
        return Path(self.path or CACHE).expanduser()

    def _unavailable(self, root: Path, error: str) -> str:
        what = "cannot be downloaded into" if self.download else "is not to be had from"
        reason = " ".join(error.split())
        where = images_folder() or "$RAYSIM_DATA/images (RAYSIM_DATA is not set)"
        fetch = f", as python -m raysim.data fetch {self.name} does" if self.fetched else ""
        return (
            f"{self.name} {what} {root}: {reason}. Three ways: put {self.name}.npz into {where}{fetch}; --path FOLDER "
            f"with torchvision's files, all of them whole; {ALLOW_DOWNLOAD}"
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
class Cifar10Full(Cifar10):
    """CIFAR-10 as ``cifar10``, from cifar10-full.npz: where cifar10.npz is a part, both may lie in one folder."""

    name: ClassVar[str] = "cifar10-full"
    fetched: ClassVar[bool] = False


CIFAR100 = {
    "aquatic mammals": "beaver dolphin otter seal whale",
    "fish": "aquarium_fish flatfish ray shark trout",
    "flowers": "orchid poppy rose sunflower tulip",
    "food containers": "bottle bowl can cup plate",
    "fruit and vegetables": "apple mushroom orange pear sweet_pepper",
    "household electrical devices": "clock keyboard lamp telephone television",
    "household furniture": "bed chair couch table wardrobe",
    "insects": "bee beetle butterfly caterpillar cockroach",
    "large carnivores": "bear leopard lion tiger wolf",
    "large man-made outdoor things": "bridge castle house road skyscraper",
    "large natural outdoor scenes": "cloud forest mountain plain sea",
    "large omnivores and herbivores": "camel cattle chimpanzee elephant kangaroo",
    "medium-sized mammals": "fox porcupine possum raccoon skunk",
    "non-insect invertebrates": "crab lobster snail spider worm",
    "people": "baby boy girl man woman",
    "reptiles": "crocodile dinosaur lizard snake turtle",
    "small mammals": "hamster mouse rabbit shrew squirrel",
    "trees": "maple_tree oak_tree palm_tree pine_tree willow_tree",
    "vehicles 1": "bicycle bus motorcycle pickup_truck train",
    "vehicles 2": "lawn_mower rocket streetcar tank tractor",
}
"""Each superclass, in the order of its number, to its five classes."""
_SUPERCLASS = {name: number for number, names in enumerate(CIFAR100.values()) for name in names.split()}


@dataclass(frozen=True)
class Cifar100(TorchvisionOptions):
    """CIFAR-100 (Krizhevsky 2009): 3x32x32, 50,000 training and 10,000 test images of 100 classes in 20 superclasses.

    Reddi et al. 2021 split it over 500 clients by ``--partition pachinko --alpha 0.1``.
    """

    name: ClassVar[str] = "cifar100"
    folder: ClassVar[str] = "cifar-100-python"
    torchvision_name: ClassVar[str] = "CIFAR100"
    class_names: ClassVar[tuple[str, ...]] = tuple(sorted(_SUPERCLASS))
    superclasses: ClassVar[tuple[int, ...]] = tuple(number for _, number in sorted(_SUPERCLASS.items()))

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
