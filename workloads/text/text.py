"""Texts as workloads: the next character of plain text or LEAF's files is to be predicted, or the label of a text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from raysim.workloads.arrays.array_federation import ArrayFederation
from raysim.workloads.arrays.labeled_arrays import federation_of
from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import Stream
from raysim.workloads.files.cache_files import published_place
from raysim.workloads.files.leaf_files import is_leaf
from raysim.workloads.option_types import Help, PositiveInt
from raysim.workloads.splits.split_options import PARTITION_HELP, PartitionName
from raysim.workloads.splits.time_order import Recordings
from raysim.workloads.text.labeled_texts import LabeledTexts
from raysim.workloads.text.windows import characters_of, cut_windows, leaf_windows, overlapping, read_text, speeches

TABLE = re.compile(r"\.(csv|tsv|parquet|pq|arrow)(\.gz|\.bz2|\.xz|\.zip)?$", re.IGNORECASE)
"""Ending of a file whose rows are texts with labels."""


@dataclass(frozen=True)
class Text(LabeledTexts):
    """Text of one's own: windows of characters, each with the character that follows, or whole texts with labels.

    A text file is cut into clients by speakers, whose speeches follow a line NAME:, or by lines; the last windows of
    each client's text are its tests, and all of these the global test. A folder in LEAF's layout (train/*.json and
    test/*.json) has users, who are the clients, windows and test sets of its own. A task has 80 characters, those of
    LEAF's Shakespeare, or as many as occur if there are others.

    With ``task=classification`` a sample is a text and its label: a row of a CSV or Parquet file, a .txt file in a
    folder of its class, a row of what Hugging Face's library saved, or a speech, whose label is the speaker.
    """

    name: ClassVar[str] = "text"
    inputs: ClassVar[Literal["array", "graph"]] = "array"
    defaults: ClassVar[Mapping[str, object]] = {"model.name": "lstm", "training.learning_rate": 0.8}
    defaults_of_task: ClassVar[Mapping[str, Mapping[str, object]]] = {"classification": {"model.name": "embedding-bag"}}
    """Defaults that differ for a value of ``task``."""

    path: Annotated[
        str,
        Help(
            "a text file in UTF-8, or a folder in LEAF's layout; of task=classification also a CSV or Parquet file, a "
            "folder CLASS/*.txt, or one that save_to_disk wrote"
        ),
    ] = ""
    task: Annotated[
        Literal["next-character", "classification"],
        Help("what is to be predicted: the character after a window, or the label of a text"),
    ] = "next-character"
    partition: Annotated[PartitionName, Help(PARTITION_HELP)] = "auto"
    by: Annotated[
        Literal["speaker", "line", "whole"],
        Help("clients of a text file: its speakers, its lines, or none (choose a partition)"),
    ] = "speaker"
    length: Annotated[PositiveInt, Help("characters of a window", "LEAF, Caldas et al. 2018")] = 80
    stride: Annotated[PositiveInt, Help("characters between the starts of two windows; LEAF has 1")] = 20

    def load(self, stream: Stream) -> ArrayFederation:
        """Reads the text and cuts it. WorkloadError if it cannot be had or cannot be split as asked."""
        path = self.place()
        name = self.name if self.name != "text" else path.stem
        if self.task == "classification":
            return self.labeled(path, name, stream)
        if TABLE.search(path.name):
            raise WorkloadError(
                f"{path} is a table, and task next-character reads plain text; set task to classification for texts "
                "with labels, or call a file of plain text NAME.txt"
            )
        if path.is_dir():
            if not is_leaf(path):
                raise WorkloadError(
                    f"{path} is a folder without train/*.json; name a text file or a folder of LEAF's, or set task to "
                    "classification for texts with labels"
                )
            train, test, characters = leaf_windows(path)
            overlap = train.inputs.shape[1]  # LEAF's windows begin at every character
            note = f"{path.name}: users of LEAF"
        else:
            text = read_text(path)
            texts = self._texts(text, str(path))
            characters = characters_of([text])
            train, test, left_out = cut_windows(
                texts, characters, self.length, self.stride, self.global_test_share, self.least_windows, str(path)
            )
            overlap = overlapping(self.length, self.stride)
            note = f"{path.name}: {len(texts) - left_out} of {len(texts)} clients have {self.least_windows} windows"
        note += f"; {len(characters)} characters; {len(train.labels)} training and {len(test.labels)} test windows"
        names = tuple(repr(character)[1:-1] for character in characters)
        assert train.sites is not None
        recordings = Recordings(train.sites, overlap)
        return federation_of(self, stream, name, train, test, names, len(characters), (note,), recordings=recordings)

    def sketch(self, stream: Stream) -> ArrayFederation:
        """The same as ``load``."""
        return self.load(stream)

    def place(self) -> Path:
        """The file or folder to read."""
        if not self.path:
            raise WorkloadError("workload text needs the option path: a text file, a table, or a folder (docs/data.md)")
        return Path(self.path).expanduser()

    def _texts(self, text: str, origin: str) -> dict[str, str]:
        if self.by == "speaker":
            return speeches(text, origin)
        if self.by == "line":
            lines = [line for line in text.splitlines() if line.strip()]
            digits = len(str(len(lines)))
            return {f"line {number:0{digits}}": line for number, line in enumerate(lines, start=1)}
        return {"whole": text}


@dataclass(frozen=True)
class PublishedText(Text):
    """A text with a place of its own in $RAYSIM_DATA."""

    below: ClassVar[str]
    """Its place there."""

    path: Annotated[str, Help("its file or folder; empty: its place in $RAYSIM_DATA (docs/data.md)")] = ""

    def place(self) -> Path:
        return published_place(self.name, self.path, [self.below])


@dataclass(frozen=True)
class TinyShakespeare(PublishedText):
    """A million characters of Shakespeare's plays (Karpathy 2015); their speakers are the clients."""

    name: ClassVar[str] = "tinyshakespeare"
    below: ClassVar[str] = "text/tinyshakespeare/input.txt"


@dataclass(frozen=True)
class Shakespeare(PublishedText):
    """LEAF's Shakespeare (Caldas et al. 2018): roles of all plays are the clients."""

    name: ClassVar[str] = "shakespeare"
    below: ClassVar[str] = "text/shakespeare"
