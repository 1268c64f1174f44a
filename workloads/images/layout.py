"""The folder layout in which Yan et al. 2023 published their federated medical image sets.

    ROOT/labels.csv                            file name, class number: all images
    ROOT/train/, ROOT/test/                    the images
    ROOT/N_clients/SPLIT/CLIENT.csv            file names of one client's training images
    ROOT/train.csv, ROOT/test.csv              optional: the file names of all training and all test images

No file has a header. Class numbers may be written as floats (1.0), and in files other than labels.csv everything
after a line's first comma is left out of account, as in the code of that paper (github.com/rui-yan/SSL-FL).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError
from raysim.workloads.files.regular_files import read_regular
from raysim.workloads.files.table_files import listed
from raysim.workloads.images.decode import SUFFIXES
from raysim.workloads.splits.partition import Integers, Partition


@dataclass(frozen=True, eq=False)
class Part:
    """The images of train/ or test/: names relative to the folder, / between parts, sorted; and each one's label."""

    folder: Path
    names: NDArray[np.str_]
    labels: Integers

    def rows(self, names: list[str], source: Path) -> Integers:
        """The positions of these names; WorkloadError for one that is not in the folder."""
        wanted = np.array(names, dtype=np.str_)
        places = np.minimum(np.searchsorted(self.names, wanted), len(self.names) - 1)
        absent = wanted[self.names[places] != wanted]
        if len(absent):
            raise WorkloadError(
                f"{source} names {len(absent)} of {len(wanted)} images that are not in {self.folder}: "
                f"{listed(absent.tolist(), 3)}; unpack the data set again, or take them out of the .csv file"
            )
        return places.astype(np.int64)


def missing_pieces(root: Path, split: str) -> list[str]:
    """Paths that the layout lacks below ``root``, empty if all is there. ``split`` is N_clients/SPLIT, or empty."""
    if not root.is_dir():
        return [f"{root}/"]
    folders = ["train", "test", *([split] if split else [])]
    missing = [f"{root / name}/" for name in folders if not (root / name).is_dir()]
    return missing if (root / "labels.csv").is_file() else [*missing, str(root / "labels.csv")]


def read_labels(path: Path, classes: int) -> dict[str, int]:
    """File name → class of labels.csv; WorkloadError with the line that is wrong."""
    labels: dict[str, int] = {}
    for number, line in _lines(path):
        fields = [field.strip() for field in line.split(",")]
        where = f"{path}, line {number}"
        if len(fields) < 2 or not fields[0]:
            raise WorkloadError(f"{where}: {line!r} is not a file name, a comma and a class number")
        try:
            value = float(fields[1])
        except ValueError as error:
            raise WorkloadError(
                f"{where}: {fields[1]!r} is not a class number; each line is a file name, a comma and a class number, "
                "without a header"
            ) from error
        if value not in range(classes):
            raise WorkloadError(f"{where}: class {fields[1]} of {fields[0]} is not one of 0..{classes - 1}")
        if labels.setdefault(fields[0], int(value)) != value:
            raise WorkloadError(f"{where}: {fields[0]} has class {fields[1]}, but {labels[fields[0]]} further up")
    return labels


def read_part(root: Path, part: str, labels: Mapping[str, int]) -> Part:
    """All images of train/ or test/; one in the folder without a label is a WorkloadError."""
    folder = root / part
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if _is_image(path))
    if not names:
        raise WorkloadError(f"{folder} holds no images (files that end in {', '.join(sorted(SUFFIXES))})")
    unknown = [name for name in names if name not in labels]
    if unknown:
        raise WorkloadError(
            f"{root / 'labels.csv'} has no line for {len(unknown)} of {len(names)} images in {folder}: "
            f"{listed(unknown, 3)}; names in it are relative to that folder, with their endings"
        )
    return Part(folder, np.array(names), np.array([labels[name] for name in names], dtype=np.int64))


def restricted(root: Path, part: Part) -> Part:
    """The images that train.csv or test.csv names; without that file, all."""
    listing = root / f"{part.folder.name}.csv"
    if not listing.is_file():
        return part
    rows = np.unique(part.rows(read_names(listing), listing))
    return Part(part.folder, part.names[rows], part.labels[rows])


def read_split(folder: Path, part: Part) -> tuple[Partition, NDArray[np.str_]]:
    """(each client's rows of ``part``, its name) from the .csv files of a split, client_2 before client_10.

    The name of the folder above, N_clients, says how many there must be. A name that a file repeats counts once, as
    in the published code.
    """
    files = sorted(folder.glob("*.csv"), key=lambda path: _natural(path.stem))
    expected = int(folder.parent.name.removesuffix("_clients"))
    if len(files) != expected:
        raise WorkloadError(
            f"{folder} holds {len(files)} .csv files ({listed([file.name for file in files], 3) or 'none'}), but must "
            f"hold one for each of {expected} clients; unpack the data set again"
        )
    rows = [np.unique(part.rows(read_names(file), file)) for file in files]
    offsets = np.cumsum([0, *map(len, rows)])
    return Partition(np.concatenate(rows), offsets.astype(np.int64)), np.array([file.stem for file in files])


def read_names(path: Path) -> list[str]:
    """The file names in a .csv file; WorkloadError if there are none."""
    names = [(number, line.split(",")[0].strip()) for number, line in _lines(path)]
    for number, name in names:
        if not name or PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise WorkloadError(f"{path}, line {number}: {name!r} is not the name of an image file")
    if not names:
        raise WorkloadError(f"{path} names no images; unpack the data set again")
    return [name for _, name in names]


def _lines(path: Path) -> list[tuple[int, str]]:
    """(number from 1, text) of the lines that are not blank."""
    try:
        text = read_regular(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise WorkloadError(f"{path} cannot be read as text ({error}); unpack the data set again") from error
    return [(number, line.strip()) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.findall(r"[0-9]+|[^0-9]+", name)]


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
