"""Labeled files in folders of classes, or listed by a manifest: images, and texts."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError
from raysim.workloads.files.table_files import listed, need_columns, read_table
from raysim.workloads.splits.partition import Integers

TRAINING = ("train", "training")
TESTING = ("test", "testing", "val", "valid", "validation")
"""Folders of test files; of several the first in this order counts."""
AROUND = re.compile(r"[-_ ]|set$")
"""Signs that make no other name of a part: training_set is training, and Test-Set test."""
MANIFEST = "manifest.csv"


@dataclass(frozen=True, eq=False)
class Listing:
    """Files that are named but not read: paths below ``folder``, class names, and which are for the global test."""

    folder: Path
    names: NDArray[np.str_]
    classes: NDArray[np.str_]
    tested: NDArray[np.bool_]
    sites: NDArray[np.str_] | None


def labels_of(listing: Listing, name: str, what: str) -> tuple[tuple[str, ...], Integers]:
    """The names of the classes, sorted, and the class of each file."""
    class_names = np.unique(listing.classes[~listing.tested])
    if not len(class_names):
        raise WorkloadError(f"{name}: there are no training {what}, all are for the test")
    unknown = np.setdiff1d(listing.classes, class_names)
    if len(unknown):
        raise WorkloadError(
            f"{name}: no training {what[:-1]} has the class {listed(unknown.tolist())}, which test {what} have; "
            f"training {what} have {listed(class_names.tolist())}"
        )
    return tuple(class_names.tolist()), np.searchsorted(class_names, listing.classes).astype(np.int64)


def list_files(root: Path, suffixes: Collection[str], what: str) -> Listing:
    """The files of a manifest, or of a folder that holds one or has the layout SPLIT/CLASS, DOMAIN/CLASS or CLASS.

    Args:
        root: the folder or the manifest.
        suffixes: what names of files end in, in lower case; a manifest may name others.
        what: the noun for the files, in the plural ("images").

    Raises:
        WorkloadError: there are none, some lie at another depth than the others, or folders are no layout of these.
    """
    if root.is_file():
        return _manifest(root, what)
    if not root.is_dir():
        raise WorkloadError(f"no folder {root}; give the path of a folder of {what} or of a manifest (CSV)")
    if (root / MANIFEST).is_file():
        return _manifest(root / MANIFEST, what)
    paths = sorted(path.relative_to(root) for path in root.rglob("*") if path.suffix.lower() in suffixes)
    paths = [path for path in paths if not any(part.startswith(".") for part in path.parts)]
    if not paths:
        raise WorkloadError(f"{root} holds no {what} (files that end in {', '.join(sorted(suffixes))})")
    depths = {len(path.parts): path for path in reversed(paths)}
    if min(depths) < 2:
        raise WorkloadError(
            f"{root / depths[min(depths)]} lies in no folder of a class; {what} must lie in CLASS/, SPLIT/CLASS/ or "
            "DOMAIN/CLASS/"
        )
    if len(depths) > 1:
        one, other = (depths[depth] for depth in sorted(depths)[:2])
        raise WorkloadError(
            f"{root}: {one} and {other} lie at different depths; {what} must all lie in CLASS/, all in SPLIT/CLASS/ "
            "or all in DOMAIN/CLASS/"
        )
    if len(parts := paths[0].parts) > 3:
        part = _plain(parts[-3]) in (*TRAINING, *TESTING)
        way_out = f"Set path to {root.joinpath(*parts[:-3])}, or list" if part else "List"
        raise WorkloadError(
            f"{root / paths[0]} lies too deep; {what} must lie in CLASS/, SPLIT/CLASS/ or DOMAIN/CLASS/ below path. "
            f"{way_out} the files with their labels in a manifest (CSV)"
        )
    return _by_folders(root, paths, what)


def _by_folders(root: Path, paths: list[Path], what: str) -> Listing:
    names, first, none = np.array([path.as_posix() for path in paths]), _parts(paths, 0), np.zeros(len(paths), np.bool_)
    there = {name: _plain(name) for name in np.unique(first).tolist()}
    training, testing = (
        [name for part in parts for name, key in there.items() if key == part] for parts in (TRAINING, TESTING)
    )
    unknown = [name for name in there if name not in (*training, *testing)]
    if len(paths[0].parts) == 2:
        if not unknown:
            raise WorkloadError(
                f"{root} has {what} in {listed(there)}, which are parts of a data set and no classes; {what} must lie "
                "in SPLIT/CLASS/, train/cat/ say, or give their labels in a manifest (CSV)"
            )
        return Listing(root, names, first, none, None)
    classes = _parts(paths, 1)
    if not training and not testing:
        return Listing(root, names, classes, none, first)
    if unknown or len(training) != 1 or len({*map(_plain, testing)}) < len(testing):
        raise WorkloadError(
            f"{root} has the folders {listed(there)}: either all are parts of the data set, one of them train and the "
            "others test or val, or all are domains; rename or remove what is neither"
        )
    tested = first == testing[0] if testing else none
    kept = tested | (first == training[0])
    return Listing(root, names[kept], classes[kept], tested[kept], None)


def _plain(name: str) -> str:
    """A folder's name without signs that make no other part of it."""
    return AROUND.sub("", name.lower())


def _parts(paths: list[Path], number: int) -> NDArray[np.str_]:
    return np.array([path.parts[number] for path in paths])


def _manifest(path: Path, what: str) -> Listing:
    table = read_table(path, as_text=True)
    need_columns(path, table, ("path", "label"))
    names = table["path"].to_numpy(dtype=np.str_)
    for column in ("path", "label", *(["client"] if "client" in table.columns else [])):
        empty = np.flatnonzero(table[column].to_numpy(dtype=np.str_) == "")
        if len(empty):
            raise WorkloadError(
                f"{path}, row {empty[0] + 1}: the column {column} is empty; every {what[:-1]} needs one"
            )
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
