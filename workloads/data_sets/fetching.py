"""Downloads of published files, each with its checksum, and the check of what is there."""

from __future__ import annotations

import hashlib
import shutil
import urllib.request
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory

from raysim.workloads.data_sets.catalog import DataSet, File
from raysim.workloads.data_sets.converters import convert
from raysim.workloads.errors import WorkloadError
from raysim.workloads.files.cache_files import whole_file

SECONDS = 60
"""Without an answer, a download is given up."""


def fetch(data: DataSet, folder: Path) -> Path:
    """Download a data set that has files and make what its workload reads; returns its place below the data folder.

    Raises:
        WorkloadError: the place is taken, or a file cannot be had or has another checksum. Nothing is left behind then.
    """
    if (folder / data.place).exists():
        raise WorkloadError(f"{data.name}: {folder / data.place} is there already; remove it to fetch it again")
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder, prefix=".download-") as downloads:
        for file in data.files:
            download(file, Path(downloads) / file.name)
        return convert(data, Path(downloads), folder)


def download(file: File, target: Path) -> None:
    """One file, which appears only when it is whole and has its checksum; WorkloadError if it does not."""
    try:
        with whole_file(target) as partial:
            with urllib.request.urlopen(file.url, timeout=SECONDS) as answer, partial.open("wb") as written:
                shutil.copyfileobj(answer, written)
            check_digest(file, partial)
    except (OSError, HTTPException, ValueError) as error:  # URLError is an OSError
        raise WorkloadError(
            f"{file.url} cannot be downloaded into {target.parent} ({error}); check the network and the folder, or "
            "download it by hand and convert it"
        ) from error


def check_digest(file: File, path: Path) -> None:
    """WorkloadError unless the file at this path has the checksum of the published one."""
    kind, _, expected = file.digest.partition(":")
    with path.open("rb") as content:
        found = hashlib.file_digest(content, kind).hexdigest()
    if found != expected:
        raise WorkloadError(
            f"{file.name} from {file.url} has the {kind} {found}, and the published file has {expected}: it is damaged "
            "or has changed, and is not used"
        )
