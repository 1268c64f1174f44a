"""Where the text files of a TUDataset are, and their download."""

from __future__ import annotations

import shutil
import urllib.request
import zipfile
import zlib
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from workloads.cache_files import whole_file
from workloads.errors import WorkloadError

PAGE = "https://chrsmrrs.github.io/datasets"
MAX_FILE_BYTES = 10**9
"""Of one text file, unpacked; the largest of the collection in use here takes some 30 MB."""
SECONDS = 60  # a server that is silent for so long will not answer


@dataclass(frozen=True)
class TuFiles:
    """The files NAME_PART.txt of one set: in a folder or, read without unpacking, in a zip archive."""

    name: str
    place: Path

    def read(self, part: str) -> bytes | None:
        """The bytes of NAME_PART.txt; None if the set has no such file. WorkloadError if it cannot be read."""
        file = f"{self.name}_{part}.txt"
        try:
            if self.place.is_dir():
                path = self.place / file
                if path.exists() and path.stat().st_size > MAX_FILE_BYTES:
                    raise OSError(f"it takes more than {MAX_FILE_BYTES / 1e9:g} GB")
                return path.read_bytes() if path.exists() else None
            with zipfile.ZipFile(self.place) as archive:
                members = {f"{self.name}/{file}", file} & set(archive.namelist())
                if members and archive.getinfo(max(members)).file_size > MAX_FILE_BYTES:
                    raise zipfile.BadZipFile(f"unpacked it takes more than {MAX_FILE_BYTES / 1e9:g} GB")
                return archive.read(max(members)) if members else None
        except (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
            raise WorkloadError(
                f"{self.name}: {file} in {self.place} cannot be read ({error}); the file may be damaged, copy or "
                "download it again"
            ) from error


def find(name: str, folders: list[Path]) -> TuFiles | None:
    """Find the files of a set in the first folder that has them.

    They are NAME/raw/NAME_A.txt (PyG's layout), NAME/NAME_A.txt, or NAME.zip with NAME/NAME_A.txt or NAME_A.txt in it.
    """
    for folder in folders:
        for place in (folder / name / "raw", folder / name):
            if (place / f"{name}_A.txt").exists():
                return TuFiles(name, place)
        if (folder / f"{name}.zip").exists():
            return TuFiles(name, folder / f"{name}.zip")
    return None


def download(name: str, folder: Path) -> TuFiles:
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
    return TuFiles(name, folder / f"{name}.zip")
