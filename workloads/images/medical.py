"""Two medical image sets that are small enough for one file: RetinaMNIST and chest X-rays from four sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import Stream
from raysim.workloads.images.augmentation import AUGMENT, Augment
from raysim.workloads.images.decode import resize
from raysim.workloads.images.image_set import ImageSet, blank, image_set, read_npz
from raysim.workloads.images.npz import Npz, find_npz
from raysim.workloads.option_types import Ge, Help, Le, PositiveInt
from raysim.workloads.splits.split_options import PARTITION_HELP, PartitionName

# What FedLD trains with, on a network for small images; its learning rates are for ImageNet weights.
DEFAULTS: Mapping[str, object] = {
    "evaluation.auc": True,
    "model.name": "resnet18",
    "training.momentum": 0.5,
    "training.weight_decay": 5e-4,
    "training.batch_size": 50,
    "training.learning_rate": 0.01,
    "schedule.local_epochs": 1,
}


@dataclass(frozen=True)
class MedicalNpz(Npz):
    """A named .npz file, resized once when it is read."""

    origin: ClassVar[str]
    class_names: ClassVar[tuple[str, ...]]

    augment: Annotated[Augment, AUGMENT] = "crop_flip"
    size: Annotated[int, Ge(0), Le(2048), Help("height and width to resize images to; 0: as stored")] = 0

    def images(self, stream: Stream, pixels: bool = True) -> ImageSet:
        try:
            path = find_npz(self.path)
        except WorkloadError as error:
            raise WorkloadError(f"{error}. {self.origin}") from error
        stored = image_set(
            self.name, read_npz(path, pixels), str(path), class_names=self.class_names, use_val=self.use_val
        )
        if not self.size:
            return stored
        images, test_images = (
            resize(found, self.size) if pixels else blank((len(found), self.size, self.size, found.shape[3]))
            for found in (stored.images, stored.test_images)
        )
        return replace(stored, images=images, test_images=test_images)


@dataclass(frozen=True)
class RetinaMnist(MedicalNpz):
    """RetinaMNIST: fundus photographs 3x28x28 in five grades of diabetic retinopathy, split over 5 clients.

    Source: MedMNIST v2, Yang et al. 2023. 1080 training, 120 validation (see ``use_val``) and 400 test images.
    """

    name: ClassVar[str] = "retinamnist"
    origin: ClassVar[str] = (
        "Put MedMNIST's retinamnist.npz (https://medmnist.com) into the folder images of $RAYSIM_DATA, or set path"
    )
    class_names: ClassVar[tuple[str, ...]] = tuple(f"grade {grade}" for grade in range(5))
    defaults: ClassVar[Mapping[str, object]] = DEFAULTS

    path: Annotated[str, Help("the file: a path, or a name in the folder images of $RAYSIM_DATA")] = "retinamnist"
    clients: Annotated[PositiveInt, Help("number of clients", "FedLD, section 3.1")] = 5


@dataclass(frozen=True)
class CovidXray(MedicalNpz):
    """Chest X-rays 1x128x128 of four collections, which are the four clients.

    The collections are cohen, figure1, actualmed and kaggle: 353 training images (figure1 has 7) and 89 test images,
    each of a known source.
    """

    name: ClassVar[str] = "covid-xray"
    origin: ClassVar[str] = (
        "Put covid-xray.npz, MedMNIST's keys with train_sites and test_sites, into the folder images of $RAYSIM_DATA, "
        "or set path"
    )
    class_names: ClassVar[tuple[str, ...]] = ("covid", "normal", "pneumonia")
    defaults: ClassVar[Mapping[str, object]] = DEFAULTS

    path: Annotated[str, Help("the file: a path, or a name in the folder images of $RAYSIM_DATA")] = "covid-xray"
    partition: Annotated[PartitionName, Help(f"sites are the images' real sources. {PARTITION_HELP}")] = "sites"
