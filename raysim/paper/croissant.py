"""The data set of a paper as Croissant (mlcommons.org/croissant), with the properties for responsible use (RAI).

Described are the published files with their digests, the split among clients as a table that is read with the
description, and what is known of the data's fitness. What is not known is said to be so in the property itself.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import logging
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim.config.options import show
from raysim.config.run_config import flatten
from raysim.errors import ConfigError
from raysim.paper.collected import Paper, PaperRun
from raysim.storage.untrusted_files import UnreadableFileError, read_text

if TYPE_CHECKING:
    import mlcroissant

CONFORMS = ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"]
PARTITION = "partition.csv"
PARTITION_BYTES = 2**24
"""Largest one that is described."""
FILES_OF_PUBLISHER = "Files are those of the publisher; the digests say which version was used."
UNLICENSED = "No license is stated: ask the publisher of the data before you use it."
DIGITS = "https://scikit-learn.org/stable/datasets/toy_dataset.html#optical-recognition-of-handwritten-digits-dataset"


def check_installed() -> None:
    """ConfigError unless the package mlcroissant is there."""
    if find_spec("mlcroissant") is None:
        raise ConfigError("the package mlcroissant is not installed. Install it with pip install 'raysim[paper]'.")


def described(paper: Paper, license: str = "") -> str:
    """The description of the data of the first run, JSON-LD that mlcroissant has checked.

    Args:
        license: of the data where raysim knows none.

    Raises:
        ConfigError: mlcroissant finds a mistake in it.
    """
    import mlcroissant

    run = paper.first
    data = run.facts.published
    partition = _partition(run.facts.folder / PARTITION)
    context = mlcroissant.Context(conforms_to=CONFORMS)
    made = " (made up by raysim)" if run.facts.summary.get("synthetic") else ""
    with _quiet():
        try:
            metadata = mlcroissant.Metadata(
                ctx=context,
                conforms_to=CONFORMS,
                name=run.facts.data,
                description=f"{data.title if data else run.facts.data}{made}, split among "
                f"{run.facts.summary.get('clients')} clients for the runs of this folder.",
                license=[data.license if data else license or UNLICENSED],
                url=data.source if data else DIGITS if run.facts.workload == "digits" else None,
                distribution=[*_published(run), *_split(run, partition)],
                record_sets=_clients(partition),
                **_fitness(run),
            )
            return json.dumps(metadata.to_json(), indent=1, ensure_ascii=False, default=str) + "\n"
        except mlcroissant.ValidationError as error:
            raise ConfigError(f"the data of {run.facts.folder} cannot be described as Croissant: {error}") from error


def _partition(path: Path) -> bytes:
    """The table of the clients' samples; empty where there is none, or where it is no such table."""
    try:
        text = read_text(path, PARTITION_BYTES, own=True)
        lines = [*csv.reader(io.StringIO(text, newline=""), strict=True)]
    except (OSError, UnreadableFileError, csv.Error):
        return b""
    names = lines[0] if lines else []
    plain = all(re.fullmatch(r"\w[\w.+ -]{0,99}", name) for name in names) and len(set(names)) == len(names)
    return text.encode() if plain and all(len(line) == len(names) for line in lines) else b""


def check(path: Path) -> int:
    """The number of clients that mlcroissant reads from a description and the table beside it, without a network.

    Raises:
        ConfigError: it does not read it.
    """
    import mlcroissant

    with _quiet():
        try:
            found = mlcroissant.Dataset(jsonld=path)
            return sum(1 for _ in found.records("clients")) if found.metadata.record_sets else 0
        except (mlcroissant.ValidationError, mlcroissant.GenerationError) as error:
            raise ConfigError(f"{path}: mlcroissant does not read it: {error}") from error


class _quiet:
    """No warnings of mlcroissant on properties that are recommended and not known."""

    def __enter__(self) -> None:
        self._before = logging.getLogger("absl").level
        logging.getLogger("absl").setLevel(logging.ERROR)

    def __exit__(self, *error: object) -> None:
        logging.getLogger("absl").setLevel(self._before)


def _published(run: PaperRun) -> list[mlcroissant.FileObject]:
    """The published files, with the digests that raysim checks."""
    import mlcroissant

    found = list[mlcroissant.FileObject]()
    for file in run.facts.published.files if run.facts.published else ():
        kind, _, digest = file.digest.partition(":")
        digests = {"sha256" if kind == "sha256" else "md5": digest}
        found.append(
            mlcroissant.FileObject(
                id=file.name,
                name=file.name,
                content_url=file.url,
                encoding_formats=["application/octet-stream"],
                **digests,
            )
        )
    return found


def _split(run: PaperRun, partition: bytes) -> list[mlcroissant.FileObject]:
    """The table of the clients' samples; none of a run with more than a thousand clients, which has no such table."""
    import mlcroissant

    if not partition:
        return []
    digest = hashlib.sha256(partition).hexdigest()
    place = f"{run.place}/{PARTITION}"
    words = "samples of every client, by class where there are classes"
    formats = ["text/csv"]
    return [
        mlcroissant.FileObject(
            id=PARTITION, name=PARTITION, description=words, content_url=place, encoding_formats=formats, sha256=digest
        )
    ]


def _clients(partition: bytes) -> list[mlcroissant.RecordSet]:
    """The records of that table."""
    import mlcroissant

    rows = [*csv.DictReader(io.StringIO(partition.decode()))]
    if not rows:
        return []
    fields = [
        mlcroissant.Field(
            id=f"clients/{name}",
            name=name,
            description=name.replace("_", " "),
            data_types=[_kind(mlcroissant.DataType, [row[name] for row in rows])],
            source=mlcroissant.Source(file_object=PARTITION, extract=mlcroissant.Extract(column=name)),
        )
        for name in rows[0]
    ]
    return [mlcroissant.RecordSet(id="clients", name="clients", description="one record a client", fields=fields)]


def _kind(types: Any, values: Sequence[str]) -> Any:
    """The type of a column."""
    for kind, read in ((types.INTEGER, int), (types.FLOAT, float)):
        try:
            [read(value) for value in values]
        except ValueError:
            continue
        return kind
    return types.TEXT


def _fitness(run: PaperRun) -> Mapping[str, Any]:
    """The RAI properties: what the run knows, and what only the publisher does."""
    flat, data = flatten(run.facts.config), run.facts.published
    options = [f"{path} {show(value)}" for path, value in flat.items() if path.startswith("workload.")]
    ask = f"Not known to raysim: see {data.source}." if data else "Not known to raysim: ask the publisher of the data."
    shown = ", ".join(options)
    return {
        "data_collection": ask,
        "data_preprocessing_protocol": [f"Split among clients and prepared by raysim with: {shown}."],
        "data_biases": [
            "Clients have different shares of classes and numbers of samples where the split is skewed, as "
            f"{PARTITION} shows; biases of the data itself: {ask[0].lower()}{ask[1:]}"
        ],
        "data_limitations": [
            "The clients are simulated: their split stands for no population unless the data has sites."
        ],
        "data_use_cases": ["Comparing methods of federated learning in simulation."],
        "personal_sensitive_information": [ask],
        "data_social_impact": ask,
        "data_release_maintenance_plan": FILES_OF_PUBLISHER if data and data.files else ask,
    }
