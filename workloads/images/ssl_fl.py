"""Retina and COVID-FL, the federated medical image sets of Yan et al. 2023, from the folders that they published."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np

from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import Stream
from raysim.workloads.files.cache_files import CACHE
from raysim.workloads.images import layout
from raysim.workloads.images.augmentation import AUGMENT, Augment, augmentation
from raysim.workloads.images.decoded_cache import ImageCache, open_cache
from raysim.workloads.images.file_federation import FileFederation
from raysim.workloads.option_types import Ge, Help, Le, OpenShare, Positive, PositiveInt
from raysim.workloads.splits import partition
from raysim.workloads.splits.partition import Common, Integers, Partition
from raysim.workloads.splits.split_options import NO_NAMES, ValidationShare, held_out

PAPER = (
    "Yan et al. 2023 (Label-Efficient Self-Supervised Federated Learning for Tackling Data Heterogeneity in Medical "
    "Imaging, IEEE TMI)"
)
REPOSITORY = "https://github.com/rui-yan/SSL-FL"


@dataclass(frozen=True)
class PublishedOptions(ABC):
    """Images in the layout of ``raysim.workloads.images.layout``, decoded when they are first used.

    The global test set is ROOT/test. Images are stretched to ``size`` x ``size`` and normalized with the published
    channel statistics. The authors augment by resized crops, rotation and flips: ``augment`` resized_crop_rotation.
    ``load`` draws from the streams partition, local_test and validation.
    """

    name: ClassVar[str]
    inputs: ClassVar[Literal["array", "graph"]] = "array"
    title: ClassVar[str]
    class_names: ClassVar[tuple[str, ...]]
    mean: ClassVar[tuple[float, float, float]]
    deviation: ClassVar[tuple[float, float, float]]

    path: Annotated[str, Help("folder with train, test and labels.csv; empty: the folder $RAYSIM_DATA/WORKLOAD")] = ""
    partition: Annotated[
        Literal["published", "dirichlet", "iid"],
        Help("split of the training images: published (one .csv file a client), dirichlet (label skew) or iid"),
    ] = "published"
    clients: Annotated[PositiveInt, Help("number of clients; published splits are there for 5 (retina) and 12")] = 5
    alpha: Annotated[
        Positive,
        Help(
            "concentration of the Dirichlet distribution, for dirichlet; smaller is more skewed",
            "Hsu et al. 2019, arXiv 1909.06335",
        ),
    ] = 1.0
    min_samples: Annotated[
        PositiveInt, Help("least samples of a client, before its local test set is cut off (not for published)")
    ] = 10
    local_test: Annotated[
        Literal["cut", "global"],
        Help(
            "a client's local test set: cut (test_share of its own images, which it then does not train on) "
            "or global (all of test/, as in the code of FedLD; nothing is cut off)"
        ),
    ] = "cut"
    test_share: Annotated[
        OpenShare, Help("share of a client's samples that is its local test set, for local_test=cut")
    ] = 0.1
    validation_share: ValidationShare = 0.0
    size: Annotated[int, Ge(4), Le(2048), Help("height and width of an image in pixels")] = 224
    augment: Annotated[Augment, AUGMENT] = "crop_flip"
    truncated: Annotated[
        bool, Help("accept image files that end early, as the authors' code does: what is missing is gray")
    ] = False
    cache_dir: Annotated[
        str,
        Help(f"folder for decoded images (size² · 3 bytes each), not the data: path; empty: {CACHE}", placement=True),
    ] = ""

    @abstractmethod
    def split_folder(self) -> str:
        """The published split below the root: N_clients/SPLIT."""

    def load(self, stream: Stream) -> FileFederation:
        """Reads names and labels; images stay where they are. WorkloadError names every piece that is missing."""
        root = self._root()
        labels = layout.read_labels(root / "labels.csv", len(self.class_names))
        training, tests = (layout.read_part(root, name, labels) for name in ("train", "test"))
        tests, client_names = layout.restricted(root, tests), NO_NAMES
        if self.partition == "published":
            whole, client_names = layout.read_split(root / self.split_folder(), training)
        else:
            training = layout.restricted(root, training)
            whole = self._drawn(training.labels, stream("partition"))
        common = Common(np.arange(len(tests.labels)), whole.clients) if self.local_test == "global" else None
        return FileFederation(
            name=self.name,
            class_names=self.class_names,
            images=self._cache(training),
            labels=training.labels,
            test_images=self._cache(tests),
            test_labels=tests.labels,
            **vars(held_out(whole, common, self.test_share, self.validation_share, stream, client_names)),
            mean=np.array(self.mean, dtype=np.float32),
            deviation=np.array(self.deviation, dtype=np.float32),
            augment=augmentation(self.augment, self.size),
        )

    def sketch(self, stream: Stream) -> None:
        """Only looks whether the folder holds what ``load`` reads."""
        self._root()

    def _root(self) -> Path:
        base = os.environ.get("RAYSIM_DATA")
        if not self.path and not base:
            raise WorkloadError(self._first_run("option path is empty and RAYSIM_DATA is not set"))
        root = Path(self.path or f"{base}/{self.name}").expanduser().resolve()
        published = self.partition == "published"
        missing = layout.missing_pieces(root, self.split_folder() if published else "")
        if missing:
            raise WorkloadError(self._first_run(f"missing: {', '.join(missing)}"))
        return root

    def _first_run(self, problem: str) -> str:
        split = f", {self.split_folder()}/*.csv" if self.partition == "published" else ""
        return (
            f"{self.name}: {problem}. Download the {self.title} data set of {PAPER}: the links are in data/README.md "
            f"of {REPOSITORY}. Unpack it into $RAYSIM_DATA/{self.name}, or set path to its folder, so that this folder "
            f"holds train/, test/, labels.csv{split}. Nothing is fetched by itself"
        )

    def _drawn(self, labels: Integers, generator: np.random.Generator) -> Partition:
        try:
            if self.partition == "iid":
                return partition.iid(len(labels), self.clients, self.min_samples, generator)
            return partition.dirichlet(labels, self.clients, self.alpha, self.min_samples, generator)
        except WorkloadError as error:
            raise WorkloadError(f"{self.name}: {error}") from error

    def _cache(self, part: layout.Part) -> ImageCache:
        return open_cache(part.folder, part.names, self.size, truncated=self.truncated, cache_dir=self.cache_dir)


# Yan et al. 2023 and FedLD train so; 50 test images at a time keep ResNet-50's activations at 224 pixels near 1 GB.
PAPER_DEFAULTS: Mapping[str, object] = {
    "evaluation.auc": True,
    "model.name": "resnet50",
    "training.momentum": 0.5,
    "training.weight_decay": 5e-4,
    "training.batch_size": 50,
    "schedule.rounds": 200,
    "schedule.local_epochs": 1,
    "evaluation.batch_size": 50,
}


@dataclass(frozen=True)
class Retina(PublishedOptions):
    """Retina of Yan et al. 2023: fundus photographs of the Kaggle diabetic retinopathy set in 2 classes.

    They are .npy files, with three published splits over 5 clients (Dirichlet 100, 1.0 and 0.5).
    """

    name: ClassVar[str] = "retina"
    title: ClassVar[str] = "Retina"
    class_names: ClassVar[tuple[str, ...]] = ("0", "1")
    mean: ClassVar[tuple[float, float, float]] = (0.5007, 0.5010, 0.5019)
    deviation: ClassVar[tuple[float, float, float]] = (0.0342, 0.0535, 0.0484)
    defaults: ClassVar[Mapping[str, object]] = {**PAPER_DEFAULTS, "training.learning_rate": 0.01}

    split: Annotated[
        int,
        Ge(1),
        Le(3),
        Help("published split, of Dirichlet concentration 100, 1.0, 0.5: 1, 2, 3 (published only)", "Yan et al. 2023"),
    ] = 1

    def split_folder(self) -> str:
        return f"{self.clients}_clients/split_{self.split}"


@dataclass(frozen=True)
class CovidFl(PublishedOptions):
    """COVID-FL of Yan et al. 2023: chest X-rays of 3 classes from 12 real sites, which are the clients."""

    name: ClassVar[str] = "covid-fl"
    title: ClassVar[str] = "COVID-FL"
    class_names: ClassVar[tuple[str, ...]] = ("0", "1", "2")
    mean: ClassVar[tuple[float, float, float]] = (0.485, 0.456, 0.406)
    deviation: ClassVar[tuple[float, float, float]] = (0.229, 0.224, 0.225)
    defaults: ClassVar[Mapping[str, object]] = {**PAPER_DEFAULTS, "training.learning_rate": 0.005}

    clients: Annotated[PositiveInt, Help("number of clients; the published split has 12, the sites")] = 12

    def split_folder(self) -> str:
        return f"{self.clients}_clients/split_real"
