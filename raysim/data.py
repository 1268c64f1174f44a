"""Published data sets: what there is, and how it gets to where workloads read it.

``python -m raysim.data list`` shows all with size, license and source; ``fetch NAME`` downloads one, checks its
checksums and converts it; ``convert NAME FOLDER`` does that with files that are here already; ``verify NAME`` checks
what is there and reads it. The data folder is $RAYSIM_DATA, or ``--to FOLDER``. Nothing else uses the network.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from raysim import seeds
from raysim.config import registry
from raysim.config.answering import Answer, answered
from raysim.config.nearest import did_you_mean
from raysim.errors import FAILED, ConfigError, RaysimError
from raysim.workloads.data_sets.catalog import BY_NAME, DATA_SETS, DataSet
from raysim.workloads.data_sets.converters import convert
from raysim.workloads.data_sets.fetching import check_digest, fetch
from raysim.workloads.errors import WorkloadError


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; 0, 1 if a download or a check failed, 2 for what cannot be done as asked."""
    parser = argparse.ArgumentParser(prog="python -m raysim.data", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("action", choices=("list", "fetch", "convert", "verify"))
    parser.add_argument("name", nargs="?", help="the data set; list shows all")
    parser.add_argument("source", nargs="?", type=Path, help="folder or file of the published files, for convert")
    parser.add_argument("--to", type=Path, help="the data folder; without it $RAYSIM_DATA")
    parser.add_argument("--json", action="store_true", help="print one JSON object; of list: name → what is known")
    return answered(parser, argv, _answer, "interrupted; nothing was written")


def _answer(asked: argparse.Namespace) -> Answer:
    if asked.action == "list":
        if asked.name is not None:
            raise ConfigError(f"list {asked.name}: it shows all data sets; leave {asked.name} out")
        folder = _folder(asked.to)
        return Answer(listing(folder), catalog(folder))
    data, folder = _data_set(asked.name), _folder(asked.to)
    if asked.action != "convert" and asked.source is not None:
        raise ConfigError(
            f"{asked.action} {data.name} {asked.source}: convert alone reads a folder; the data folder is named by "
            f"--to {asked.source}"
        )
    if folder is None:
        raise ConfigError("RAYSIM_DATA is not set, so it is not known where data lies; set it, or give --to FOLDER")
    if asked.action == "fetch" and not data.files:
        raise ConfigError(f"{data.name}: its publisher has no file to download; {data.how}")
    if asked.action == "convert" and asked.source is None:
        raise ConfigError(f"convert {data.name} needs the folder of its published files ({data.source})")
    if asked.action == "convert" and not asked.source.expanduser().exists():
        raise ConfigError(f"{data.name}: there is no {asked.source}; give the folder of the published files")
    told: dict[str, Any] = {"name": data.name}
    try:
        if asked.action == "verify":
            found = verified(data, folder)
            return Answer(found, told | {"place": str(folder / data.place), "found": found})
        place = fetch(data, folder) if asked.action == "fetch" else convert(data, asked.source.expanduser(), folder)
    except (RaysimError, OSError) as error:
        return Answer(error=str(error), code=FAILED)
    words = data.name if data.name in registry.known("workload") else f"npz --path {data.name}"
    command = f"python -m raysim.launch --method fedavg --workload {words}"
    return Answer(f"{data.name}: {place}\n{command}", told | {"place": str(place), "command": command})


def catalog(folder: Path | None) -> dict[str, dict[str, object]]:
    """Name → title, source, license, size and place of every data set, and whether it is there, for programs."""
    return {
        data.name: dataclasses.asdict(data) | {"there": folder is not None and (folder / data.place).exists()}
        for data in DATA_SETS
    }


def listing(folder: Path | None) -> str:
    """Every data set: whether it is there, what it is, its terms and its size, and how to get it."""
    lines = []
    for data in DATA_SETS:
        there = "there" if folder is not None and (folder / data.place).exists() else "not there"
        size = f", {data.megabytes:g} MB to download" if data.files else ""
        how = f"python -m raysim.data fetch {data.name}" if data.files else data.how
        lines += [f"{data.name} ({there}): {data.title}", f"  {data.source}, {data.license}{size}", f"  {how}"]
    where = "RAYSIM_DATA is not set" if folder is None else f"in {folder}"
    return "\n".join([*lines, f"{len(DATA_SETS)} data sets, {where}"])


def verified(data: DataSet, folder: Path) -> str:
    """Verify a workload's data: checksums of published files, and what the workload reads.

    Raises:
        WorkloadError: it is not there, has another checksum, or cannot be read.
    """
    place = folder / data.place
    if not place.exists():
        raise WorkloadError(f"{data.name}: there is no {place}; python -m raysim.data list says how to get it")
    files = data.files if data.layout == "files" else ()  # which lie there as they were downloaded
    for file in files:
        check_digest(file, place / file.name)
    sums = (
        f"{len(files)} published files with their checksums" if files else "made of published files, without a checksum"
    )
    return f"{data.name}: {place}, {sums}; {_read(data, folder)}"


def _read(data: DataSet, folder: Path) -> str:
    """The data, read by its workload."""
    known = data.name in registry.known("workload")
    kind = registry.resolve("workload", data.name if known else "npz")
    options = {"clients": 1, "min_samples": 1} | ({} if known else {"path": str(folder / data.place)})
    allowed = {field.name for field in dataclasses.fields(kind)}
    os.environ["RAYSIM_DATA"] = str(folder)  # where workloads look, also if another folder was named
    workload = kind(**{name: value for name, value in options.items() if name in allowed})
    federation = workload.load(lambda purpose: seeds.numpy_generator(0, purpose)).pooled()
    return (
        f"{federation.samples(0)} samples to train, {federation.test_samples(0)} in local tests, "
        f"{federation.global_test_size} in the global test, {len(federation.class_names)} classes"
    )


def _data_set(name: str | None) -> DataSet:
    if name not in BY_NAME:
        guess = "" if name is None else did_you_mean(name, BY_NAME)
        shown = "no data set is named." if name is None else f"there is no data set {name!r}.{guess}"
        raise ConfigError(f"{shown} Allowed: {', '.join(BY_NAME)}.")
    return BY_NAME[name]


def _folder(to: Path | None) -> Path | None:
    base = to or (Path(os.environ["RAYSIM_DATA"]) if os.environ.get("RAYSIM_DATA") else None)
    return None if base is None else base.expanduser()


if __name__ == "__main__":
    sys.exit(main())
