"""A folder of image files of one's own, or a manifest that lists them, decoded when they are first used."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from workloads.augmentation import AUGMENT, Augment, augmentation
from workloads.cache_files import CACHE
from workloads.errors import WorkloadError
from workloads.federated_data import Stream
from workloads.images.decode import SUFFIXES
from workloads.images.decoded_cache import open_cache
from workloads.images.file_federation import FileFederation
from workloads.option_types import Ge, Help, Le
from workloads.partition import Integers
from workloads.split_options import PARTITION_HELP, Labeled, PartitionName, SplitOptions
from workloads.table_files import listed, need_columns, read_table

# Of ImageNet's training images in [0, 1]: what is usual, and known before a single image has been decoded.
MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)
TRAINING = ("train", "training")
TESTING = ("test", "testing", "val", "valid", "validation")
"""Folders of test images; of several the first in this order counts."""
MANIFEST = "manifest.csv"


@dataclass(frozen=True, eq=False)
class Listing:
    """Images that are named but not read: paths below ``folder``, class names, and which are for the global test."""

    folder: Path
    names: NDArray[np.str_]
    classes: NDArray[np.str_]
    tested: NDArray[np.bool_]
    sites: NDArray[np.str_] | None


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
        str, Help(f"folder for decoded images (size² · 3 bytes each); empty: {CACHE}", placement=True)
    ] = ""

    def load(self, stream: Stream) -> FileFederation:
        """Reads names and labels; images stay where they are. WorkloadError if they are not there or do not fit."""
        if not self.path:
            raise WorkloadError("workload folder needs the option path: a folder of images or a manifest (CSV)")
        listing = list_images(Path(self.path).expanduser().resolve())
        name = Path(self.path).stem
        class_names, labels = _labels(listing, name)
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


def _labels(listing: Listing, name: str) -> tuple[tuple[str, ...], Integers]:
    """The names of the classes, sorted, and the class of each image."""
    class_names = np.unique(listing.classes[~listing.tested])
    if not len(class_names):
        raise WorkloadError(f"{name}: there are no training images, all are for the test")
    unknown = np.setdiff1d(listing.classes, class_names)
    if len(unknown):
        raise WorkloadError(
            f"{name}: no training image has the class {listed(unknown.tolist())}, which test images have; training "
            f"images have {listed(class_names.tolist())}"
        )
    return tuple(class_names.tolist()), np.searchsorted(class_names, listing.classes).astype(np.int64)


def list_images(root: Path) -> Listing:
    """The images of a manifest, or of a folder that holds one or has the layout SPLIT/CLASS, DOMAIN/CLASS or CLASS.

    WorkloadError if there are none, or if some lie at another depth than the others.
    """
    if root.is_file():
        return _manifest(root)
    if not root.is_dir():
        raise WorkloadError(f"no folder {root}; give the path of a folder of images or of a manifest (CSV)")
    if (root / MANIFEST).is_file():
        return _manifest(root / MANIFEST)
    paths = sorted(path.relative_to(root) for path in root.rglob("*") if path.suffix.lower() in SUFFIXES)
    paths = [path for path in paths if not any(part.startswith(".") for part in path.parts)]
    if not paths:
        raise WorkloadError(f"{root} holds no images (files that end in {', '.join(sorted(SUFFIXES))})")
    depths = {len(path.parts): path for path in reversed(paths)}
    if min(depths) < 2:
        raise WorkloadError(
            f"{root / depths[min(depths)]} lies in no folder of a class; images must lie in CLASS/, SPLIT/CLASS/ or "
            "DOMAIN/CLASS/"
        )
    if len(depths) > 1:
        one, other = (depths[depth] for depth in sorted(depths)[:2])
        raise WorkloadError(
            f"{root}: {one} and {other} lie at different depths; images must all lie in CLASS/, all in SPLIT/CLASS/ or "
            "all in DOMAIN/CLASS/"
        )
    return _by_folders(root, paths)


def _by_folders(root: Path, paths: list[Path]) -> Listing:
    names = np.array([path.as_posix() for path in paths])
    if len(paths[0].parts) == 2:
        return Listing(root, names, _parts(paths, 0), np.zeros(len(names), np.bool_), None)
    first, classes = _parts(paths, 0), _parts(paths, 1)
    there = {name.lower(): name for name in np.unique(first).tolist()}
    training = [there[name] for name in TRAINING if name in there]
    if not training:
        return Listing(root, names, classes, np.zeros(len(names), np.bool_), first)
    testing = [there[name] for name in TESTING if name in there]
    unknown = [name for key, name in there.items() if key not in (*TRAINING, *TESTING)]
    if unknown:
        raise WorkloadError(
            f"{root} has the folder {training[0]} beside {listed(unknown)}: either all folders are parts of the data "
            "set (train, test, val), or all are domains"
        )
    tested = first == testing[0] if testing else np.zeros(len(names), np.bool_)
    kept = tested | (first == training[0])
    return Listing(root, names[kept], classes[kept], tested[kept], None)


def _parts(paths: list[Path], number: int) -> NDArray[np.str_]:
    return np.array([path.parts[number] for path in paths])


def _manifest(path: Path) -> Listing:
    table = read_table(path, as_text=True)
    need_columns(path, table, ("path", "label"))
    names = table["path"].to_numpy(dtype=np.str_)
    for column in ("path", "label", *(["client"] if "client" in table.columns else [])):
        empty = np.flatnonzero(table[column].to_numpy(dtype=np.str_) == "")
        if len(empty):
            raise WorkloadError(f"{path}, row {empty[0] + 1}: the column {column} is empty; every image needs one")
    absent = next((number for number, name in enumerate(names) if not (path.parent / name).is_file()), None)
    if absent is not None:
        raise WorkloadError(
            f"{path}, row {absent + 1}: there is no file {path.parent / names[absent]}; paths are relative to the "
            "folder of the manifest"
        )
    tested = np.zeros(len(names), np.bool_)
    if "split" in table.columns:
        splits = np.array([value.lower() for value in table["split"]])
        wrong = next((number for number, value in enumerate(splits) if value not in ("train", "test")), None)
        if wrong is not None:
            raise WorkloadError(
                f"{path}, row {wrong + 1}: the split {table['split'].iloc[wrong]!r} is not train or test; leave other "
                "rows out"
            )
        tested = splits == "test"
    sites = table["client"].to_numpy(dtype=np.str_) if "client" in table.columns else None
    return Listing(path.parent, names, table["label"].to_numpy(dtype=np.str_), tested, sites)
