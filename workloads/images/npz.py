"""Any .npz file with MedMNIST's keys, and where such files are looked for."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar

from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import Stream
from raysim.workloads.files.table_files import listed
from raysim.workloads.images.image_set import ImageSet, image_set, read_npz
from raysim.workloads.images.image_workload import ImageOptions
from raysim.workloads.option_types import Help, NonNegativeInt


@dataclass(frozen=True)
class Npz(ImageOptions):
    """Images of any .npz file with MedMNIST's keys.

    The keys are ``train_images``, ``train_labels``, ``test_images`` and ``test_labels``; images are uint8 (N, H, W) or
    (N, H, W, C), labels (N,) or (N, 1).

    ``val_*`` stays unused unless ``use_val`` adds it to the training images. With partition=sites, every site named in
    ``train_sites`` is a client, in sorted order; if ``test_sites`` exists too, a client's local test set is the test
    images of its own site (possibly none), nothing is cut off its training images, and the global test is the whole
    test set.
    """

    name: ClassVar[str] = "npz"

    path: Annotated[
        str, Help("the file: a path, or the name of a file in the folder images of $RAYSIM_DATA; .npz may be left out")
    ] = ""
    classes: Annotated[NonNegativeInt, Help("number of classes; 0: the largest training label plus one")] = 0
    use_val: Annotated[bool, Help("add the validation images (val_*) to the training images")] = False

    def blank_images(self, stream: Stream) -> ImageSet:
        return self.images(stream, pixels=False)

    def images(self, stream: Stream, pixels: bool = True) -> ImageSet:
        path = find_npz(self.path)
        arrays = read_npz(path, pixels)
        found = image_set(path.stem, arrays, str(path), classes=self.classes, use_val=self.use_val)
        if found.sites is None or self.partition in ("auto", "sites"):
            return found
        note = (
            "its sites are no clients: it names one for every image, and workload.partition sites makes clients of them"
        )
        return replace(found, notes=(f"{found.name}: {note}",))


def images_folder() -> Path | None:
    """The folder images of $RAYSIM_DATA, which may be missing; None if that is not set."""
    root = os.environ.get("RAYSIM_DATA")
    return Path(root).expanduser() / "images" if root else None


def find_npz(path: str) -> Path:
    """The file meant by ``path``: as given, else below $RAYSIM_DATA/images; with or without its ending."""
    if not path:
        raise WorkloadError("workload npz needs the option path: an .npz file with MedMNIST's keys")
    given = Path(path).expanduser()
    folders = [given.parent]
    shared = None if given.is_absolute() else images_folder()
    if shared is not None:
        folders.append(shared / given.parent)
    for folder in folders:
        for name in (given.name, f"{given.name}.npz"):
            if (folder / name).is_file():
                return folder / name
    for folder in folders:
        if (folder / given.name).is_dir():
            raise WorkloadError(
                f"{folder / given.name} is a folder, and workload npz reads one file; {_content(folder / given.name)}"
            )
    looked = "; ".join(f"{folder} ({_content(folder)})" for folder in folders)
    hint = "" if shared is not None or given.is_absolute() else ". $RAYSIM_DATA is not set, it would be searched too"
    raise WorkloadError(f"no .npz file {path}; looked in: {looked}{hint}")


def _content(folder: Path) -> str:
    if not folder.is_dir():
        return "no such folder"
    names = sorted(found.name for found in folder.glob("*.npz"))
    return f".npz files there: {listed(names, 10)}" if names else "no .npz files there"
