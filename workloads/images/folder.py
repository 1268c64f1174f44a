"""A folder of image files of one's own, or a manifest that lists them, decoded when they are first used."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np

from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import Stream
from raysim.workloads.files.cache_files import CACHE
from raysim.workloads.files.labeled_files import labels_of, list_files
from raysim.workloads.images.augmentation import AUGMENT, Augment, augmentation
from raysim.workloads.images.decode import SUFFIXES
from raysim.workloads.images.decoded_cache import open_cache
from raysim.workloads.images.file_federation import FileFederation
from raysim.workloads.option_types import Ge, Help, Le
from raysim.workloads.splits.split_options import PARTITION_HELP, Labeled, PartitionName, SplitOptions

# Of ImageNet's training images in [0, 1]: what is usual, and known before a single image has been decoded.
MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Folder(SplitOptions):
    """Image files in SPLIT/CLASS/, DOMAIN/CLASS/ or CLASS/, or named by a manifest (CSV).

    SPLIT is train and test (or val, where there is no test); other folders with folders of classes in them are domains,
    which are the clients. A manifest has the columns path and label, and may have client and split (train or test).
    Without test images a run is judged by the clients' local tests alone. Images are stretched to ``size`` x ``size``
    and normalized by ImageNet's channel statistics.
    """

    name: ClassVar[str] = "folder"
    inputs: ClassVar[Literal["array", "graph"]] = "array"

    path: Annotated[str, Help("the folder of images, or a manifest: a CSV file with columns path and label")] = ""
    partition: Annotated[PartitionName, Help(PARTITION_HELP)] = "auto"
    size: Annotated[int, Ge(4), Le(2048), Help("height and width of an image in pixels")] = 64
    augment: Annotated[Augment, AUGMENT] = "none"
    truncated: Annotated[bool, Help("accept image files that end early: what is missing is gray")] = False
    cache_dir: Annotated[
        str,
        Help(f"folder for decoded images (size² · 3 bytes each), not the data: path; empty: {CACHE}", placement=True),
    ] = ""

    def load(self, stream: Stream) -> FileFederation:
        """Reads names and labels; images stay where they are. WorkloadError if they are not there or do not fit."""
        if not self.path:
            raise WorkloadError("workload folder needs the option path: a folder of images or a manifest (CSV)")
        listing = list_files(Path(self.path).expanduser().resolve(), SUFFIXES, "images")
        name = Path(self.path).stem
        class_names, labels = labels_of(listing, name, "images")
        trained, tested = np.flatnonzero(~listing.tested), np.flatnonzero(listing.tested)
        sites = None if listing.sites is None else listing.sites[trained]
        test_sites = None if listing.sites is None or not len(tested) else listing.sites[tested]
        origin = "folders of domains or a column client of the manifest"
        labeled = Labeled(labels[trained], len(tested), sites, test_sites, sites_from=origin)
        try:
            split = self.split(labeled, stream)
        except WorkloadError as error:
            raise WorkloadError(f"{name}: {error}") from error
        images, test_images = (
            open_cache(listing.folder, names, self.size, truncated=self.truncated, cache_dir=self.cache_dir)
            for names in (listing.names[trained], listing.names[tested])
        )
        return FileFederation(
            name=name,
            class_names=class_names,
            images=images,
            labels=labels[trained],
            test_images=test_images,
            test_labels=labels[tested],
            **vars(split),
            mean=np.array(MEAN, dtype=np.float32),
            deviation=np.array(DEVIATION, dtype=np.float32),
            augment=augmentation(self.augment, self.size),
        )

    def sketch(self, stream: Stream) -> FileFederation:
        """The same as ``load``, once every image has been decoded: a damaged one is found before a run."""
        federation = self.load(stream)
        federation.images.fill()
        federation.test_images.fill()
        return federation
