"""What all image workloads have in common: how their images become a federation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from workloads import partition
from workloads.augmentation import AUGMENT, Augment, augmentation
from workloads.augmented_fill import draw_fill
from workloads.errors import WorkloadError
from workloads.federated_data import Stream
from workloads.images.federation import ImageFederation, channel_statistics
from workloads.option_types import Ge, Help, Le, NonNegativeInt, OpenShare, Positive, PositiveInt, ShareBelowOne
from workloads.partition import Common, Partition
from workloads.virtual_clients import Views, set_aside, views

if TYPE_CHECKING:
    from workloads.images.image_set import ImageSet


@dataclass(frozen=True)
class ImageOptions(ABC):
    """The split of an image set over clients.

    `load` draws from the streams partition, local_test, validation and fill.
    """

    name: ClassVar[str]
    inputs: ClassVar[Literal["array", "graph"]] = "array"

    clients: Annotated[PositiveInt, Help("number of clients (partition=sites: ignored, one a site)")] = 10
    partition: Annotated[
        Literal["iid", "dirichlet", "shards", "quantity", "lognormal", "sites", "views"],
        Help(
            "split of the training images: iid; dirichlet (label skew); shards (a fixed number of classes a "
            "client); quantity and lognormal (skewed sizes); sites (the real sites of an npz file); views (label skew, "
            "samples drawn for each client by itself, so that any number of clients may exist; clients overlap)"
        ),
    ] = "dirichlet"
    alpha: Annotated[
        Positive,
        Help(
            "concentration of the Dirichlet distribution, for dirichlet, quantity and views; smaller is more skewed",
            "Hsu et al. 2019, arXiv 1909.06335",
        ),
    ] = 0.5
    sigma: Annotated[
        float,
        Ge(0),
        Le(5),
        Help(
            "standard deviation of the logarithm of the clients' sizes, for lognormal",
            "FedProx's synthetic data have 2",
        ),
    ] = 1.0
    classes_per_client: Annotated[PositiveInt, Help("classes of each client, for shards", "McMahan et al. 2017")] = 2
    min_samples: Annotated[
        PositiveInt, Help("least samples of a client, before its local test set is cut off (not for sites and views)")
    ] = 10
    view_samples: Annotated[PositiveInt, Help("samples of a client, its local test set among them, for views")] = 50
    local_test: Annotated[
        Literal["cut", "global"],
        Help(
            "a client's local test set: cut (test_share of its own samples, which it then does not train on; "
            "where an npz file has test_sites, the test samples of its own site) or global (the common test set, the "
            "same for every client, as in the code of FedLD; nothing is cut off)"
        ),
    ] = "cut"
    test_share: Annotated[
        OpenShare, Help("share of a client's samples that is its local test set, for local_test=cut")
    ] = 0.2
    validation_share: Annotated[
        ShareBelowOne,
        Help(
            "share of a client's training samples that is its validation set, which it does not train on; the "
            "rounds table then has validation_accuracy, the mean over clients. 0: none"
        ),
    ] = 0.0
    samples_per_client: Annotated[
        NonNegativeInt,
        Help(
            "fill every client's training part up to this many samples with augmented copies of training "
            "samples of all clients; 0: do not",
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
        """What `load` gives with blank images, or None if only loading tells. WorkloadError as in `load`."""
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
        try:
            train, local_test, client_names = self._parts(images, stream)
            validation = None
            if self.validation_share:
                train, validation = self._validated(train, stream)
        except WorkloadError as error:
            limited = f" (limit = {self.limit} keeps {len(images.labels)} training images)" if self.limit else ""
            raise WorkloadError(f"{images.name}: {error}{limited}") from error
        height = images.images.shape[1]
        fill = None
        if isinstance(train, Partition) and self.samples_per_client:
            padding = augmentation("crop_flip", height).padding
            fill = draw_fill(train, self.samples_per_client, padding, stream("fill"))
        return ImageFederation(
            name=images.name,
            synthetic=images.synthetic,
            class_names=images.class_names,
            client_names=client_names,
            inputs=images.images,
            labels=images.labels,
            test_inputs=images.test_images,
            test_labels=images.test_labels,
            train=train,
            local_test=local_test,
            local_test_is_global=self._shares_test(images),
            validation=validation,
            fill=fill,
            mean=mean,
            deviation=deviation,
            augment=augmentation(self.augment, height),
        )

    def _shares_test(self, images: ImageSet) -> bool:
        """Whether clients are tested on the global test set or parts of it."""
        return self.local_test == "global" or (self.partition == "sites" and images.test_sites is not None)

    def _parts(
        self, images: ImageSet, stream: Stream
    ) -> tuple[Partition | Views, Partition | Views | Common, NDArray[np.str_]]:
        """(training parts, local tests, name of each client or an empty array)."""
        common, everything = self.local_test == "global", np.arange(len(images.test_labels))
        if self.partition == "views":
            if self.samples_per_client:
                raise WorkloadError(
                    f"samples_per_client = {self.samples_per_client} fills up the clients of a split, and views are "
                    "none; set view_samples instead, and samples_per_client to 0"
                )
            options = (self.clients, self.alpha, self.view_samples, 0.0 if common else self.test_share)
            train, test = views(images.labels, *options, stream("partition"))
            return train, Common(everything, self.clients) if common else test, np.zeros(0, dtype=np.str_)
        whole, client_names = self._split(images, stream("partition"))
        if common:
            return whole, Common(everything, whole.clients), client_names
        if self._shares_test(images):
            return whole, _tests_of_sites(images, client_names), client_names
        return *partition.cut(whole, self.test_share, stream("local_test")), client_names

    def _validated(self, train: Partition | Views, stream: Stream) -> tuple[Partition | Views, Partition | Views]:
        """(training, validation) of the training parts."""
        if isinstance(train, Views):
            return set_aside(train, self.validation_share)
        return partition.cut(train, self.validation_share, stream("validation"))

    def _split(self, images: ImageSet, generator: np.random.Generator) -> tuple[Partition, NDArray[np.str_]]:
        """(partition of the training images, name of each client or an empty array)."""
        unnamed = np.zeros(0, dtype=np.str_)
        samples, clients, least = len(images.labels), self.clients, self.min_samples
        if self.partition == "iid":
            return partition.iid(samples, clients, least, generator), unnamed
        if self.partition == "quantity":
            return partition.quantity(samples, clients, self.alpha, least, generator), unnamed
        if self.partition == "lognormal":
            return partition.lognormal(samples, clients, self.sigma, least, generator), unnamed
        if self.partition == "shards":
            return partition.shards(images.labels, clients, self.classes_per_client, least, generator), unnamed
        if self.partition == "dirichlet":
            return partition.dirichlet(images.labels, clients, self.alpha, least, generator), unnamed
        if images.sites is None:
            raise WorkloadError(
                "partition=sites needs the site of every training image (the array train_sites of an npz file, with "
                "use_val also val_sites), and there is none; choose iid, dirichlet, shards, quantity or lognormal"
            )
        return partition.sites(images.sites)


def _tests_of_sites(images: ImageSet, client_names: NDArray[np.str_]) -> Partition:
    """Indices into the test images of each site; images of a site without training data are in the global test only."""
    owners = np.full(len(images.test_labels), -1, dtype=np.int64)
    for client, site in enumerate(client_names):
        owners[images.test_sites == site] = client
    return partition.from_owners(owners, len(client_names))
