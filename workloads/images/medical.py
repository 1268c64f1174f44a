"""Two medical image sets that are small enough for one file: RetinaMNIST and chest X-rays from four sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import Stream
from raysim.workloads.images.augmentation import AUGMENT, Augment
from raysim.workloads.images.decode import resize
from raysim.workloads.images.image_set import ImageSet, blank, image_set, read_npz
from raysim.workloads.images.npz import Npz, find_npz
from raysim.workloads.option_types import Ge, Help, Le, PositiveInt
from raysim.workloads.splits.partition import cut, from_owners
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
    draw_test: Annotated[
        bool,
        Help(
            "draw training and test images anew with the run's seed, from all: of every class of every site the share "
            "that the file tests with, rounded; false: those of the file"
        ),
    ] = False

    def images(self, stream: Stream, pixels: bool = True) -> ImageSet:
        try:
            path = find_npz(self.path)
        except WorkloadError as error:
            raise WorkloadError(f"{error}. {self.origin}") from error
        found = image_set(
            self.name, read_npz(path, pixels), str(path), class_names=self.class_names, use_val=self.use_val
        )
        if self.size:
            images, test_images = (
                resize(given, self.size) if pixels else blank((len(given), self.size, self.size, given.shape[3]))
                for given in (found.images, found.test_images)
            )
            found = replace(found, images=images, test_images=test_images)
        return drawn_anew(found, stream("test")) if self.draw_test else found


def drawn_anew(found: ImageSet, generator: np.random.Generator) -> ImageSet:
    """The set with training and test images drawn from all of them, stratified by class and, where known, by site."""
    labels = np.concatenate([found.labels, found.test_labels])
    groups, sites = labels, None
    if found.sites is not None and found.test_sites is not None:
        sites = np.concatenate([found.sites, found.test_sites])
        groups = np.unique(np.stack([np.unique(sites, return_inverse=True)[1], labels]), axis=1, return_inverse=True)[1]
    owners = groups.reshape(-1).astype(np.int64)
    parts = cut(from_owners(owners, int(owners.max()) + 1), len(found.test_labels) / len(labels), generator)
    train, test = (np.sort(part.indices) for part in parts)
    images = np.concatenate([found.images, found.test_images])
    return replace(
        found,
        images=images[train],
        labels=labels[train],
        test_images=images[test],
        test_labels=labels[test],
        sites=None if sites is None else sites[train],
        test_sites=None if sites is None else sites[test],
    )


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
    binary_grades: Annotated[
        bool, Help("two classes, healthy (grade 0) and diseased (grades 1 to 4); false: the five grades")
    ] = False

    def images(self, stream: Stream, pixels: bool = True) -> ImageSet:
        found = super().images(stream, pixels)
        if not self.binary_grades:
            return found
        labels, test_labels = ((grades > 0).astype(np.int64) for grades in (found.labels, found.test_labels))
        return replace(found, labels=labels, test_labels=test_labels, class_names=("healthy", "diseased"))


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
