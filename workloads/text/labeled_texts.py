"""Texts with labels: of a table, of folders of text files, of a column of Hugging Face, or of a play's speakers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.arrays.array_federation import ArrayFederation
from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import Stream
from raysim.workloads.files.labeled_files import list_files
from raysim.workloads.files.leaf_files import is_leaf
from raysim.workloads.files.table_files import listed, need_columns, only_of_csv, read_table
from raysim.workloads.huggingface.arrow_files import SUFFIXES as SAVED
from raysim.workloads.huggingface.saved_rows import frame_of, read_saved
from raysim.workloads.option_types import Help, OnlyWith, PositiveInt, ShareBelowOne
from raysim.workloads.splits.split_options import SplitOptions
from raysim.workloads.tables.encoding import has_fractions
from raysim.workloads.tables.names import sites_of
from raysim.workloads.tables.table import Rows, cut_rows, training_rows
from raysim.workloads.text.tokens import TokenOptions, check_texts
from raysim.workloads.text.windows import each_speech, read_text

if TYPE_CHECKING:
    import pandas

TEXT, LABEL = "text", "label"
"""Columns of what is no table; of a table, those that are meant where no others are named."""
_LABELED = OnlyWith("workload.task", "classification")


@dataclass(frozen=True)
class LabeledTexts(SplitOptions, TokenOptions):
    """Options of texts that are to be told apart by their labels."""

    text_column: Annotated[
        str, Help("of task=classification: column of the texts; empty: text, else the only other one"), _LABELED
    ] = ""
    target: Annotated[
        str,
        Help(
            "of task=classification: column of the labels; empty: label, else the last (of Hugging Face's files the "
            "only one with named classes before)"
        ),
        _LABELED,
    ] = ""
    client_column: Annotated[
        str, Help("of task=classification: column that names each text's client; empty: none"), _LABELED
    ] = ""
    columns: Annotated[
        tuple[str, ...], Help("of task=classification: names of all columns, of a CSV file without a header"), _LABELED
    ] = ()
    least_windows: Annotated[
        PositiveInt,
        Help("a speaker or line with fewer windows is left out; of task=classification a speaker with fewer speeches"),
    ] = 10
    global_test_share: Annotated[
        ShareBelowOne,
        Help(
            "share of each client's windows, the last ones, that is for the test; of task=classification share of the "
            "texts that is drawn for it, where none is published; 0: none"
        ),
    ] = 0.2

    def labeled(self, path: Path, title: str, stream: Stream) -> ArrayFederation:
        """Reads the texts, splits them, and makes token ids by those that clients train on.

        Args:
            path: where the texts are.
            title: name of the data.
            stream: gives the random numbers, test and those of the split.

        Raises:
            WorkloadError: they cannot be had or cannot be split as asked.
        """
        rows = replace(self._rows(path), name=title)
        texts: list[Any] = rows.table[TEXT].tolist()
        check_texts(texts, rows.name)
        lengths = np.array([*map(len, texts)], np.float64)
        cut = cut_rows(self, self.global_test_share, rows, stream, lambda trained: lengths[trained])
        tokens = self.as_tokens(texts, cut.inputs[training_rows(cut.train)])
        return replace(
            cut,
            inputs=tokens.ids[cut.inputs],
            test_inputs=tokens.ids[cut.test_inputs],
            vocabulary=tokens.vocabulary,
            padded=True,
            notes=(f"{cut.notes[0]}; {tokens.note}",),
        )

    def _rows(self, path: Path) -> Rows:
        if self.columns and (path.is_dir() or path.suffix in (*SAVED, ".txt")):
            raise only_of_csv(path)
        if path.is_dir():
            saved = (path / "dataset_dict.json").is_file() or any(
                found.suffix in SAVED or found.name == "state.json" for found in path.rglob("*")
            )
            if not saved and is_leaf(path):
                raise WorkloadError(f"{path} has LEAF's layout, whose texts have no labels; set task to next-character")
            return self._of_saved(path) if saved else _of_folder(path)
        if path.suffix in SAVED:
            return self._of_saved(path)
        if path.suffix == ".txt":
            return _of_play(path, self.least_windows)
        return self._of_table(read_table(path, self.columns, as_text=True), path)

    def _of_saved(self, path: Path) -> Rows:
        read = read_saved(path)
        names: list[str] = read.columns.table.column_names
        need_columns(path, read.columns.table.schema.empty_table().to_pandas(), self._named())
        target = read.target(self.target, self.client_column)
        text = self._text_column(names, target, path)
        wanted = list(dict.fromkeys([text, target, *([self.client_column] if self.client_column else [])]))
        frame = frame_of(path, read.columns, wanted)
        read.check_labels(frame[target], chosen=False)
        return replace(self._chosen(frame, path, text, target), tested=read.tested)

    def _of_table(self, table: pandas.DataFrame, path: Path) -> Rows:
        need_columns(path, table, self._named())
        names = [*map(str, table.columns)]
        target = self.target or (LABEL if LABEL in names else names[-1])
        if not self.columns and target in set(table[target]):
            raise WorkloadError(
                f"{path}: the column {target!r} also has the value {target!r}, so that its first line seems to be no "
                f"header; name its {len(names)} columns, columns=text,label say"
            )
        return self._chosen(table, path, self._text_column(names, target, path), target)

    def _named(self) -> list[str]:
        """Columns that were asked for."""
        return [name for name in (self.text_column, self.target, self.client_column) if name]

    def _text_column(self, names: list[str], target: str, path: Path) -> str:
        others = [name for name in names if name not in (target, self.client_column)]
        found = self.text_column or (TEXT if TEXT in others else others[0] if len(others) == 1 else "")
        if found not in others:
            raise WorkloadError(
                f"{path}: it is not clear which column holds the texts (target {target!r}); set text_column to one of: "
                f"{listed(others) or 'none, as there is no other'}"
            )
        return found

    def _chosen(self, table: pandas.DataFrame, path: Path, text: str, target: str) -> Rows:
        """The two columns, and the client of each row."""
        import pandas

        if self.client_column == target:
            raise WorkloadError(f"{path}: the target {target!r} is also the client_column; choose another one")
        sites = sites_of(table.replace("", None), self.client_column, path)
        labels = _labels(table[target], path)
        texts = table[text].astype(object).where(table[text].notna(), "")
        chosen = pandas.DataFrame({TEXT: texts, f"{target} ": labels}).rename(columns={f"{target} ": target})
        return Rows(path.stem, chosen, target, sites=sites)


def _labels(column: pandas.Series[Any], path: Path) -> pandas.Series[Any]:
    """The labels of texts, numbers where all are, empty ones as missing; WorkloadError for numbers with a fraction."""
    import pandas

    known = column.where(column.notna() & (column.astype(str).str.strip() != ""), None)
    numbers = pandas.to_numeric(known, errors="coerce")
    codes = known.dropna().astype(str).str.strip().str.match(r"[+-]?0\d")  # as in 01, which is not 1
    if not (numbers.notna() == known.notna()).all() or codes.any():
        return known
    if has_fractions(numbers):
        first = int(np.flatnonzero((numbers != np.floor(numbers)) & numbers.notna())[0])
        raise WorkloadError(
            f"{path}: the target {column.name!r} holds numbers with a fraction, first {numbers.iloc[first]:g} in row "
            f"{first + 1}, and classification needs classes; choose another target, or put its values into classes"
        )
    return numbers


def _of_folder(path: Path) -> Rows:
    """Text files in folders of classes, as images lie in them."""
    listing = list_files(path.resolve(), (".txt",), "texts")
    texts = [read_text(listing.folder / name) for name in listing.names]
    tested: NDArray[np.bool_] | None = listing.tested if listing.tested.any() else None
    return Rows(path.stem, _frame(texts, listing.classes.tolist()), LABEL, tested, listing.sites)


def _of_play(path: Path, least: int) -> Rows:
    """The speeches of a play, whose labels are their speakers; of speakers with ``least`` speeches."""
    spoken = [(speaker, speech) for speaker, speech in each_speech(read_text(path)) if speech.strip()]
    counts = Counter(speaker for speaker, _ in spoken)
    kept = [(speaker, speech) for speaker, speech in spoken if counts[speaker] >= least]
    if not kept:
        found = f"no speaker with {least} speeches (least_windows)" if spoken else "no speeches after lines NAME:"
        raise WorkloadError(
            f"{path} has {found}; texts with labels are speeches in a .txt file, a CSV or Parquet file, or a folder"
        )
    return Rows(path.stem, _frame([speech for _, speech in kept], [speaker for speaker, _ in kept]), LABEL)


def _frame(texts: list[str], labels: list[str]) -> pandas.DataFrame:
    import pandas

    return pandas.DataFrame({TEXT: texts, LABEL: labels})
