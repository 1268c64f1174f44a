"""Handwritten digits of several data sets, each of which is a domain: one task, differing images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import Stream
from raysim.workloads.images.decode import resize
from raysim.workloads.images.digits import Digits
from raysim.workloads.images.image_set import ImageSet, image_set, read_npz
from raysim.workloads.images.image_workload import ImageOptions
from raysim.workloads.images.npz import find_npz
from raysim.workloads.option_types import Ge, Help, Le, NonNegativeInt, PositiveInt
from raysim.workloads.splits.split_options import PARTITION_HELP, PartitionName

BUNDLED = "optdigits"
"""The domain that comes with scikit-learn."""


@dataclass(frozen=True)
class DigitDomains(ImageOptions):
    """Digits of MNIST, USPS and UCI's optdigits in gray, brought to one size; each set is a client, or several.

    A domain NAME is the file NAME.npz with MedMNIST's keys in the folder images of $RAYSIM_DATA; optdigits come with
    scikit-learn. The global test set is that of all domains, and a client's local test that of its domain. Li et al.
    2021 (FedBN, arXiv 2102.07623) take 743 images of each domain: ``--domain_limit 743``.
    """

    name: ClassVar[str] = "digit-domains"
    defaults: ClassVar[Mapping[str, object]] = {"model.name": "cnn"}

    domains: Annotated[tuple[str, ...], Help("data sets of digits, each a domain")] = ("mnist", "usps", BUNDLED)
    domain_clients: Annotated[PositiveInt, Help("clients of each domain, which share its images at random")] = 1
    domain_limit: Annotated[NonNegativeInt, Help("training images of each domain, the first; 0: all")] = 0
    size: Annotated[int, Ge(4), Le(256), Help("height and width of an image in pixels")] = 28
    partition: Annotated[PartitionName, Help(PARTITION_HELP)] = "sites"

    def blank_images(self, stream: Stream) -> None:
        """Only looks whether the files are there."""
        for name in self._names():
            if name != BUNDLED:
                find_npz(name)

    def images(self, stream: Stream) -> ImageSet:
        sets = {name: self._domain(name, stream) for name in self._names()}
        generator = stream("domains")
        sites, test_sites = [], []
        for name, found in sets.items():
            names = [f"{name} {number}" for number in range(1, self.domain_clients + 1)]
            owners = np.array(names if self.domain_clients > 1 else [name])
            sites.append(owners[generator.permutation(len(found.labels)) % len(owners)])
            test_sites.append(owners[generator.permutation(len(found.test_labels)) % len(owners)])
        return ImageSet(
            name=self.name,
            images=np.concatenate([found.images for found in sets.values()]),
            labels=np.concatenate([found.labels for found in sets.values()]),
            test_images=np.concatenate([found.test_images for found in sets.values()]),
            test_labels=np.concatenate([found.test_labels for found in sets.values()]),
            class_names=tuple("0123456789"),
            sites=np.concatenate(sites),
            test_sites=np.concatenate(test_sites),
        )

    def _names(self) -> tuple[str, ...]:
        if not self.domains or len(set(self.domains)) < len(self.domains):
            raise WorkloadError(
                f"digit-domains: domains must be different names, not {','.join(self.domains) or 'none'}"
            )
        return self.domains

    def _domain(self, name: str, stream: Stream) -> ImageSet:
        """One domain in gray, [N, size, size, 1]."""
        if name == BUNDLED:
            found = Digits().images(stream)
        else:
            path = find_npz(name)
            found = image_set(name, read_npz(path), str(path), class_names=tuple("0123456789"))
        if self.domain_limit:
            found = found.first(self.domain_limit)
        pixels = [
            resize(images if images.shape[3] == 1 else _gray(images), self.size)
            for images in (found.images, found.test_images)
        ]
        return ImageSet(name, pixels[0], found.labels, pixels[1], found.test_labels, found.class_names)


def _gray(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    gray: NDArray[np.uint8] = np.rint(images.mean(axis=3, keepdims=True)).astype(np.uint8)
    return gray
