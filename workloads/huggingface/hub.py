"""Parquet files of a data set on Hugging Face's Hub, fetched where a user allowed it."""

from __future__ import annotations

import json
import os
import re
import shutil
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any

from raysim.workloads.errors import WorkloadError
from raysim.workloads.files.cache_files import whole_folder
from raysim.workloads.files.table_files import listed
from raysim.workloads.huggingface.arrow_files import GET_THE_WHOLE, PARTIAL

SECONDS = 60
"""Without an answer, a download is given up."""
LARGEST_ANSWER = 10**7
"""Bytes of a list of files."""


def fetch_dataset(repository: str, configuration: str, folder: Path) -> None:
    """Put the Parquet files of a repository into a new folder, as SPLIT/NUMBER.parquet.

    Every public data set has such files on the Hub, whatever format it was published in; the address of another Hub is
    taken from $HF_ENDPOINT, as Hugging Face's own programs do.

    Args:
        repository: OWNER/NAME.
        configuration: of the repository; empty: the only one.
        folder: appears only when all files are there.

    Raises:
        WorkloadError: there is no such repository or configuration, the Hub has only the first part of it, or a file
            cannot be had. Nothing is left then.
    """
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", repository):
        raise WorkloadError(f"repository: {repository!r} is no name of a data set; give OWNER/NAME")
    hub = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    source = f"{hub}/api/datasets/{repository}/parquet"
    try:
        with urllib.request.urlopen(source, timeout=SECONDS) as answer:
            splits = _chosen(json.loads(answer.read(LARGEST_ANSWER)), configuration, repository)
        with whole_folder(folder) as place:
            for split, addresses in splits.items():
                target = place / split
                target.mkdir(parents=True)
                for number, address in enumerate(addresses):
                    _download(address, target / f"{number:05}.parquet")
    except (OSError, HTTPException, ValueError) as error:  # URLError is an OSError
        raise WorkloadError(
            f"{repository} cannot be downloaded from {source} ({error}); check the name and the network, or put its "
            f"Parquet files into {folder} by hand"
        ) from error


def _download(address: str, target: Path) -> None:
    """Download one Parquet file.

    Raises:
        OSError, HTTPException: the Hub does not answer, or has no such file.
        ValueError: it was cut off, or is no Parquet file.
    """
    import pyarrow
    from pyarrow import parquet

    with urllib.request.urlopen(address, timeout=SECONDS) as answer, target.open("wb") as file:
        shutil.copyfileobj(answer, file)  # which takes an early end for the end
        size, whole = file.tell(), answer.headers.get("Content-Length")
    if whole is not None and size != int(whole):
        raise ValueError(f"{address} was cut off after {size} of {whole} bytes")
    try:
        parquet.read_metadata(target)
    except (OSError, pyarrow.ArrowException) as error:
        raise ValueError(f"{address} is no whole Parquet file: {' '.join(str(error).split())}") from error


def _chosen(answer: Any, configuration: str, repository: str) -> Mapping[str, list[str]]:
    """Split to the addresses of its files, of one configuration."""
    if not isinstance(answer, dict) or not answer:
        raise ValueError("it lists no files")
    if not configuration and len(answer) > 1:
        raise WorkloadError(f"{repository} has the configurations {listed(answer)}; set configuration to one of them")
    splits = answer.get(configuration or next(iter(answer)))
    if splits is None:
        raise WorkloadError(f"{repository} has no configuration {configuration!r}; it has {listed(answer)}")
    sound = isinstance(splits, dict) and all(
        re.fullmatch(r"\w[\w.-]*", split)
        and isinstance(addresses, list)
        and all(isinstance(address, str) and address.startswith(("https://", "http://")) for address in addresses)
        for split, addresses in splits.items()
    )
    if not sound:
        raise ValueError("its list of files is not as the Hub's are")
    found: Mapping[str, list[str]] = splits
    folders = {address.split("/")[-2] for addresses in found.values() for address in addresses}
    if partial := sorted(name for name in folders | set(found) if name.startswith(PARTIAL)):
        raise WorkloadError(
            f"{repository}: the Hub lists only the first part of it ({listed(partial)}), as of sets above 5 GB; "
            f"{GET_THE_WHOLE}"
        )
    return found
