"""Image sets as arrays, and .npz files with MedMNIST's keys."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError
from raysim.workloads.files.array_files import array_members, blank_member, read_member
from raysim.workloads.naming import check_names

Array = NDArray[Any]
MAX_CLASSES = 65_536
"""A model has an output for each; the largest image sets in use have some 22,000."""
FOREIGN = {
    b"PAR1": "a Parquet table",
    b"\x93NUMPY": "a single array (.npy)",
    b"\x89HDF": "an HDF5 file",
    b"\x1f\x8b": "a gzip archive",
    b"\x80": "a Python pickle, which is never read,",
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
}
"""Kinds of files given in place of an .npz file, by their first bytes."""


@dataclass(frozen=True, eq=False)
class ImageSet:
    """A checked data set before it is split over clients.

    Images are uint8 [N, H, W, C], labels int64 [N] in 0..classes-1; optionally each sample has a real site, a string,
    and each class a superclass, int64 [classes]. ``notes`` are told when a run begins.
    """

    name: str
    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    test_images: NDArray[np.uint8]
    test_labels: NDArray[np.int64]
    class_names: tuple[str, ...]
    sites: NDArray[np.str_] | None = None
    test_sites: NDArray[np.str_] | None = None
    synthetic: bool = False
    superclasses: NDArray[np.int64] | None = None
    notes: tuple[str, ...] = ()

    def first(self, limit: int) -> ImageSet:
        """The set with its first ``limit`` training images only; the test images stay."""
        sites = None if self.sites is None else self.sites[:limit]
        return replace(self, images=self.images[:limit], labels=self.labels[:limit], sites=sites)


def blank(shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Images that are all zero and take no memory."""
    return np.broadcast_to(np.uint8(0), shape)


def read_npz(path: Path, pixels: bool = True) -> dict[str, Array]:
    """All arrays of an .npz file; nothing in it is unpickled. WorkloadError if it is empty, damaged or something else.

    Without ``pixels``, of the arrays whose names end in ``_images`` only type and shape are read: they are blank.
    """
    if path.stat().st_size == 0:
        raise WorkloadError(f"{path} is empty (0 bytes); copy or download it again")
    if kind := _foreign_kind(path):
        raise WorkloadError(
            f"{path} is {kind}, no .npz file. Read it in Python and save the images and labels with "
            "numpy.savez(FILE, train_images=…, train_labels=…, test_images=…, test_labels=…)"
        )
    if not zipfile.is_zipfile(path):
        raise WorkloadError(f"{path} is not a complete .npz file, it may be truncated; copy or download it again")
    key = "its list of arrays"
    try:
        with zipfile.ZipFile(path) as archive:
            arrays = {}
            for key, member in array_members(archive).items():
                without = not pixels and key.endswith("_images")
                arrays[key] = blank_member(archive, member) if without else read_member(archive, member)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error, KeyError) as error:
        raise WorkloadError(
            f"{path}: {key} cannot be read ({error}); the file is damaged or holds Python objects, which are refused. "
            "Copy or download it again"
        ) from error
    return arrays


def _foreign_kind(path: Path) -> str:
    """Kind of the file; empty for a zip archive, as .npz files are, and for what is not known."""
    with path.open("rb") as file:
        start = file.read(4096)
    for magic, kind in FOREIGN.items():
        if start.startswith(magic):
            return kind
    if b"\0" in start or start.startswith(b"PK"):
        return ""
    try:
        first = start.decode("utf-8").partition("\n")[0]
    except UnicodeDecodeError:
        return ""
    return "a table as text (CSV)" if any(mark in first for mark in ",;\t") else "a text file"


def image_set(
    name: str,
    arrays: Mapping[str, Array],
    origin: str,
    class_names: tuple[str, ...] = (),
    classes: int = 0,
    use_val: bool = False,
) -> ImageSet:
    """Checks arrays with MedMNIST's keys and brings them to ImageSet's shapes.

    Images are uint8 (N, H, W) or (N, H, W, C), labels whole numbers (N,) or (N, 1), sites (N,). The number of classes
    is that of ``class_names``, else ``classes``, else the largest training label plus one. ``val_*`` is left out, or
    added to the training samples with ``use_val``. ``origin`` says in errors where the arrays came from.
    """
    parts = ["train", "val"] if use_val else ["train"]
    images, labels, sites = zip(*(_part(arrays, part, origin) for part in parts), strict=True)
    test_images, test_labels, test_sites = _part(arrays, "test", origin)
    for part, found in [*zip(parts[1:], images[1:], strict=True), ("test", test_images)]:
        if found.shape[1:] != images[0].shape[1:]:
            raise WorkloadError(
                f"{origin}: {part}_images are {found.shape[1:]} (height, width, channels), "
                f"but train_images are {images[0].shape[1:]}; they must agree"
            )
    classes = len(class_names) or classes or max(int(part_labels.max()) for part_labels in labels) + 1
    if classes > MAX_CLASSES:
        raise WorkloadError(
            f"{origin}: the largest label would make {classes} classes, and at most {MAX_CLASSES} are allowed; number "
            "the classes from 0"
        )
    for part, found in [*zip(parts, labels, strict=True), ("test", test_labels)]:
        if found.min() < 0 or found.max() >= classes:
            wrong = int(found.min()) if found.min() < 0 else int(found.max())
            raise WorkloadError(
                f"{origin}: {part}_labels holds {wrong}, outside 0..{classes - 1} for {classes} classes; "
                "correct the labels or the number of classes"
            )
    return ImageSet(
        name=name,
        images=images[0] if len(images) == 1 else np.concatenate(images),
        labels=np.concatenate(labels),
        test_images=test_images,
        test_labels=test_labels,
        class_names=class_names or tuple(str(label) for label in range(classes)),
        sites=None if any(part_sites is None for part_sites in sites) else np.concatenate(sites),
        test_sites=test_sites,
        superclasses=_superclasses(arrays, classes, origin),
    )


def _superclasses(arrays: Mapping[str, Array], classes: int, origin: str) -> NDArray[np.int64] | None:
    found = arrays.get("superclasses")
    if found is None:
        return None
    if found.dtype.kind not in "iu" or found.shape != (classes,):
        raise WorkloadError(
            f"{origin}: superclasses is {found.dtype} {found.shape}; expected one whole number for each of the "
            f"{classes} classes"
        )
    return found.astype(np.int64)


def _part(
    arrays: Mapping[str, Array], part: str, origin: str
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.str_] | None]:
    """(images, labels, sites or None) of one part, checked."""
    for key in (f"{part}_images", f"{part}_labels"):
        if key not in arrays:
            raise WorkloadError(f"{origin}: no array {key}; found: {', '.join(sorted(arrays)) or 'nothing'}")
    images, labels = arrays[f"{part}_images"], arrays[f"{part}_labels"]
    shape, count = images.shape, len(images) if images.ndim else 0
    if images.dtype != np.uint8 or len(shape) not in (3, 4) or (len(shape) == 4 and not 1 <= shape[3] <= 4):
        raise WorkloadError(
            f"{origin}: {part}_images is {images.dtype} {shape}; "
            "expected uint8 (N, height, width) or (N, height, width, 1 to 4 channels)"
        )
    if images.size == 0:
        raise WorkloadError(f"{origin}: {part}_images has shape {shape}: there are no samples or no pixels in it")
    if labels.dtype.kind not in "iu" or labels.shape not in ((count,), (count, 1)):
        raise WorkloadError(
            f"{origin}: {part}_labels is {labels.dtype} {labels.shape}; "
            f"expected one whole number for each of the {count} images: ({count},) or ({count}, 1)"
        )
    sites = arrays.get(f"{part}_sites")
    if sites is not None and (sites.dtype.kind not in "USiu" or sites.shape != (count,)):
        raise WorkloadError(
            f"{origin}: {part}_sites is {sites.dtype} {sites.shape}; expected strings of shape ({count},)"
        )
    return (
        images.reshape(*shape[:3], -1),
        labels.reshape(count).astype(np.int64),
        _names(sites, f"{origin}: {part}_sites"),
    )


def _names(sites: Array | None, where: str) -> NDArray[np.str_] | None:
    """The client of every image as text; WorkloadError for one that cannot stand in tables."""
    if sites is None:
        return None
    if sites.dtype.kind == "S":
        try:
            sites = np.char.decode(sites, "utf-8")
        except UnicodeDecodeError as error:
            raise WorkloadError(f"{where}: a name is not UTF-8 text (byte {error.start}); rename it") from error
    found = sites.astype(np.str_)
    check_names(np.unique(found).tolist(), where)
    return found
