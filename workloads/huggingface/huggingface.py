"""Data sets of Hugging Face's library ``datasets`` as a workload: images with labels, or tables."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

from raysim.workloads.arrays.array_federation import ArrayFederation
from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import Stream
from raysim.workloads.files.table_files import listed, need_columns
from raysim.workloads.huggingface.encoded_images import decoded, image_bytes, image_shape
from raysim.workloads.huggingface.hub import fetch_dataset
from raysim.workloads.huggingface.saved_rows import SavedRows, frame_of, read_saved
from raysim.workloads.images.augmentation import AUGMENT, Augment, augmentation
from raysim.workloads.images.federation import ImageFederation, channel_statistics
from raysim.workloads.images.image_set import blank
from raysim.workloads.images.image_workload import brightness
from raysim.workloads.option_types import ALLOW_DOWNLOAD, Ge, Help, Le
from raysim.workloads.tables.table import OwnTable, Rows

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class HuggingFace(OwnTable):
    """A data set of Hugging Face: a folder that ``save_to_disk`` wrote, or Parquet files as the Hub has them.

    With a column of images, models learn the target from these; else from all other columns, as the workload table
    does. The library ``datasets`` is not needed. Which columns there are is shown when the run begins.
    """

    name: ClassVar[str] = "huggingface"

    path: Annotated[
        str, Help("a folder that save_to_disk wrote, a folder of Parquet or Arrow files, or one such file")
    ] = ""
    target: Annotated[
        str, Help("column to predict; empty: the only one with named classes, else label, else the last")
    ] = ""
    train_split: Annotated[str, Help("split to train on")] = "train"
    test_split: Annotated[
        str, Help("split of the global test; empty: test, else validation, else global_test_share is drawn")
    ] = ""
    size: Annotated[
        int, Ge(0), Le(2048), Help("height and width of images in pixels; 0: as they are, if all have one size")
    ] = 0
    gray: Annotated[bool, Help("images have one channel in place of three")] = False
    augment: Annotated[Augment, AUGMENT] = "none"
    repository: Annotated[
        str, Help("OWNER/NAME on the Hub, of which download=true puts the Parquet files into path, if it is not there")
    ] = ""
    configuration: Annotated[str, Help("configuration of the repository; empty: the only one")] = ""
    download: Annotated[bool, Help("allow the download of a repository whose path is not there")] = False

    def load(self, stream: Stream) -> ArrayFederation:
        return self._load(stream, pixels=True)

    def sketch(self, stream: Stream) -> ArrayFederation:
        """The same, but with blank images."""
        return self._load(stream, pixels=False)

    def rows(self) -> Rows:
        return self._table_rows(self._read())

    def _load(self, stream: Stream, pixels: bool) -> ArrayFederation:
        read = self._read()
        images = [name for name in read.columns.images if name not in self.ignore]
        if not images:
            return self.encoded(self._table_rows(read), stream)
        if len(images) > 1:
            raise WorkloadError(f"{read.path} has the image columns {listed(images)}; leave all but one out by ignore")
        return self._images(read, images[0], stream, pixels)

    def _images(self, read: SavedRows, column: str, stream: Stream, pixels: bool) -> ImageFederation:
        origin = f"{read.path}: column {column!r}"
        target = read.target(self.target, self.client_column)
        wanted = [name for name in (target, self.client_column) if name in read.columns.table.column_names]
        rows = self._rows_with(wanted, target, read)
        contents = image_bytes(read.columns.table.column(column), origin)
        shape = image_shape(contents, self.size, self.gray, origin)
        images = decoded(contents, shape, origin) if pixels else blank(shape)
        cut = self.cut(rows, stream, lambda trained: brightness(images[trained] if pixels else images[: len(trained)]))
        note = (
            f"{cut.notes[0]}; images: {column} ({shape[1]} x {shape[2]} pixels, "
            f"{'gray' if self.gray else 'three channels'}); {len(cut.inputs)} rows to train and validate with, "
            f"{cut.global_test_size} in the global test"
        )
        train = images[cut.inputs] if pixels else images[: len(cut.inputs)]
        unknown = np.zeros(shape[3], np.float32)
        mean, deviation = channel_statistics(train) if pixels else (unknown, unknown)
        filled = replace(
            cut,
            inputs=train,
            test_inputs=images[cut.test_inputs] if pixels else images[: cut.global_test_size],
            notes=(note,),
        )
        augment = augmentation(self.augment, shape[1])
        given = {field.name: getattr(filled, field.name) for field in fields(filled) if field.init}
        return ImageFederation(**given, fill=None, mean=mean, deviation=deviation, augment=augment)

    def _table_rows(self, read: SavedRows) -> Rows:
        kept = [name for name in read.columns.table.column_names if name not in self.ignore]
        target = read.target(self.target, self.client_column)
        return self._rows_with(kept, target, read)

    def _rows_with(self, names: list[str], target: str, read: SavedRows) -> Rows:
        frame = frame_of(read.path, read.columns, names)
        if target in frame.columns:
            read.check_labels(frame[target], chosen=True)
        return self.rows_of(frame, read.path, read.tested, target)

    def _read(self) -> SavedRows:
        if not self.path:
            raise WorkloadError(
                "workload huggingface needs the option path: a folder that save_to_disk wrote, or of Parquet files"
            )
        path = Path(self.path).expanduser()
        if self.repository and not path.exists():
            if not self.download:
                raise WorkloadError(f"no folder {path}; {ALLOW_DOWNLOAD} puts {self.repository} there")
            fetch_dataset(self.repository, self.configuration, path)
        read = read_saved(path, self.train_split, self.test_split)
        need_columns(path, read.columns.table.schema.empty_table().to_pandas(), (*self.categorical, *self.ignore))
        return read
