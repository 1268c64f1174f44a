"""Where the text files of a TUDataset are, and their download."""

from __future__ import annotations

import shutil
import urllib.request
import zipfile
from http.client import HTTPException
from pathlib import Path

from workloads.cache_files import whole_file
from workloads.errors import WorkloadError
from workloads.graphs.set_files import SetFiles

PAGE = "https://chrsmrrs.github.io/datasets"
SECONDS = 60  # a server that is silent for so long will not answer


def files_in(place: Path, name: str) -> SetFiles:
    """The files NAME_PART.txt of one set, in a folder or a zip archive."""
    return SetFiles(name, place, f"{name}_{{}}.txt")


def find(name: str, folders: list[Path]) -> SetFiles | None:
    """Find the files of a set in the first folder that has them.

    They are NAME/raw/NAME_A.txt (PyG's layout), NAME/NAME_A.txt, or NAME.zip with NAME/NAME_A.txt or NAME_A.txt in it.
    """
    for folder in folders:
        for place in (folder / name / "raw", folder / name):
            if (place / f"{name}_A.txt").exists():
                return files_in(place, name)
        if (folder / f"{name}.zip").exists():
            return files_in(folder / f"{name}.zip", name)
    return None


def download(name: str, folder: Path) -> SetFiles:
    """NAME.zip from where PyG's TUDataset takes it, into ``folder``.

    The file gets its name when it is whole, so any number of processes may do this at once. PyG's own download unpacks
    whatever paths are in the archive, and into the place where others read; here nothing is unpacked at all.
    """
    from workloads._torch_geometric import TUDataset

    source = f"{TUDataset.url}/{name}.zip"
    try:
        with whole_file(folder / f"{name}.zip") as partial:
            with urllib.request.urlopen(source, timeout=SECONDS) as answer, partial.open("wb") as file:
                shutil.copyfileobj(answer, file)
            if not zipfile.is_zipfile(partial):
                raise WorkloadError(
                    f"{name}: what {source} sends is no whole zip archive ({partial.stat().st_size} bytes); try again "
                    f"later, or put {name}.zip from {PAGE} into {folder}"
                )
    except (OSError, HTTPException) as error:  # URLError is an OSError
        raise WorkloadError(
            f"{name}: {source} cannot be downloaded into {folder} ({error}); check the name ({PAGE} lists all), "
            f"the network and the folder, or put {name}.zip there by hand"
        ) from error
    return files_in(folder / f"{name}.zip", name)
