"""The raw files of a graph property set of the Open Graph Benchmark (Hu et al. 2020, arXiv 2005.00687) as flat arrays.

Read here, as the package ``ogb`` downloads what is not there and unpickles what it has processed. All files are tables
without a header, ``raw/NAME.csv.gz``, with the rows of one graph behind those of another.
"""

from __future__ import annotations

import gzip
import io
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workloads.errors import WorkloadError
from workloads.graphs.graph_set import Floats, Graphs, Integers, offsets, undirected
from workloads.graphs.tu_files import MAX_FILE_BYTES
from workloads.graphs.tu_reader import LARGEST_FEATURES

Table = NDArray[Any]
TRAIN, VALIDATION, TEST = range(3)
SPLIT_FILES = ("train", "valid", "test")


@dataclass(frozen=True)
class OgbFiles:
    """The folder of one set, ``ogbg_molhiv`` for instance."""

    name: str
    folder: Path

    def table(self, part: str, kind: type[np.generic] = np.float64, columns: int = 0) -> Table:
        """All numbers of PART.csv.gz [lines, columns]; 0: any number of columns; an empty cell is NaN."""
        import pandas

        path = self.folder / f"{part}.csv.gz"
        try:
            with gzip.open(path) as file:
                content = file.read(MAX_FILE_BYTES + 1)
            if len(content) > MAX_FILE_BYTES:
                raise OSError(f"unpacked it takes more than {MAX_FILE_BYTES / 1e9:g} GB")
            if not content.strip():
                return np.zeros((0, columns or 1), kind)
            table = pandas.read_csv(io.BytesIO(content), header=None, dtype=kind, skip_blank_lines=False).to_numpy()
        except FileNotFoundError as error:
            raise WorkloadError(
                f"{self.name}: there is no {part}.csv.gz in {self.folder}. Copy the set again, as the package ogb "
                "unpacks it"
            ) from error
        except (OSError, EOFError, zlib.error, ValueError, OverflowError) as error:  # pandas' own are ValueErrors
            raise self.damaged(f"{part}.csv.gz cannot be read ({' '.join(str(error).split())})") from error
        if columns and table.shape[1] != columns:
            raise self.damaged(f"{part}.csv.gz has {table.shape[1]} columns where {columns} are expected")
        return table

    def has(self, part: str) -> bool:
        return (self.folder / f"{part}.csv.gz").exists()

    def damaged(self, what: str) -> WorkloadError:
        return WorkloadError(f"{self.name}: {what} (in {self.folder}). Copy or download the set again")


def read_labels(files: OgbFiles, target: int) -> tuple[Integers, tuple[str, ...]]:
    """(class of every graph [G], −1 where it has no label; names of the classes) by one column of graph-label.

    Raises:
        WorkloadError: there is no such column, or it does not hold classes.
    """
    table = files.table("raw/graph-label")
    if target >= table.shape[1]:
        raise WorkloadError(
            f"{files.name}: target = {target}, but graph-label has columns 0 to {table.shape[1] - 1}; set target to one"
        )
    labeled = np.flatnonzero(~np.isnan(table[:, target]))
    values = table[labeled, target]
    if not len(values) or not np.isfinite(values).all() or (values != np.floor(values)).any():
        raise WorkloadError(
            f"{files.name}: column {target} of graph-label does not hold classes; sets for regression are not read, "
            "take another set or another target"
        )
    names, labels = np.unique(values, return_inverse=True)
    classes = np.full(len(table), -1)
    classes[labeled] = labels.reshape(-1)
    return classes, tuple(f"{name:.0f}" for name in names)


def read_split(files: OgbFiles, graphs: int) -> Integers:
    """What each graph is for by the published split [graphs]: TRAIN, VALIDATION or TEST."""
    found = sorted(path.name for path in (files.folder / "split").glob("*") if path.is_dir())
    if len(found) != 1:
        raise WorkloadError(
            f"{files.name}: {files.folder / 'split'} has {', '.join(found) or 'no folder'}, and one published split is "
            "expected there, as split/scaffold. Copy the set again, or set split to drawn"
        )
    roles = np.full(graphs, -1)
    for role, part in enumerate(SPLIT_FILES):
        numbers = files.table(f"split/{found[0]}/{part}", np.int64, 1)[:, 0]
        if len(numbers) and (numbers.min() < 0 or numbers.max() >= graphs):
            raise files.damaged(f"split/{found[0]}/{part} names graphs {numbers.min()} to {numbers.max()} of {graphs}")
        if (roles[numbers] >= 0).any() or len(np.unique(numbers)) != len(numbers):
            raise files.damaged(f"split/{found[0]}: {part} has a graph that is there twice or in another part")
        roles[numbers] = role
    if (roles < 0).any():
        raise files.damaged(f"split/{found[0]} lacks graph {int(np.argmin(roles))}")
    return roles


def read_graphs(files: OgbFiles, labels: Integers, one_hot: bool) -> Graphs:
    """All graphs of a set, with these labels [G].

    An edge that is there in one direction, in both, or more than once is one undirected edge; its attributes are those
    of the first line of its direction. Nodes without features have a single 1.

    Args:
        files: the set.
        labels: [G].
        one_hot: turn columns of whole numbers (kinds of atoms, say) into one-hot blocks; else they stay numbers.

    Raises:
        WorkloadError: a file that is missing, damaged, or does not agree with another; a graph without nodes.
    """
    ends = files.table("raw/edge", np.int64, 2)
    sizes = _counts(files, "raw/num-node-list", len(labels))
    counts = _counts(files, "raw/num-edge-list", len(labels))
    if sizes.min() < 1:
        raise files.damaged(f"graph {int(sizes.argmin())} has no node")
    if counts.sum() != len(ends):
        raise files.damaged(f"edge has {len(ends)} lines, num-edge-list adds up to {counts.sum()}")
    nodes = int(sizes.sum())
    if 4 * nodes > LARGEST_FEATURES:
        raise files.damaged(f"num-node-list adds up to {nodes} nodes, more than fit into memory")
    owners = np.repeat(np.arange(len(labels)), counts)
    wrong = np.flatnonzero(((ends < 0) | (ends >= sizes[owners][:, None])).any(axis=1))
    if len(wrong):
        graph = int(owners[wrong[0]])
        raise files.damaged(f"graph {graph} has an edge {ends[wrong[0]].tolist()}, and nodes 0 to {sizes[graph] - 1}")
    node_offsets = offsets(sizes)
    features = _features(files, "raw/node-feat", nodes, one_hot)
    pairs = (ends + node_offsets[owners][:, None]).T
    kept, attributes = undirected(pairs, nodes, _features(files, "raw/edge-feat", len(ends), one_hot))
    of = np.searchsorted(node_offsets, kept[0], side="right") - 1
    return Graphs(
        np.ones((nodes, 1), np.float32) if features is None else features,
        node_offsets,
        kept - node_offsets[of],
        offsets(np.bincount(of, minlength=len(labels))),
        labels,
        attributes=attributes,
    )


def _counts(files: OgbFiles, part: str, graphs: int) -> Integers:
    counts: Integers = files.table(part, np.int64, 1)[:, 0]
    if len(counts) != graphs:
        raise files.damaged(f"{part} has {len(counts)} lines, graph-label {graphs}")
    if not graphs or counts.min() < 0 or counts.max() > MAX_FILE_BYTES:
        raise files.damaged(f"{part} does not hold counts from 0 to {MAX_FILE_BYTES}")
    return counts


def _features(files: OgbFiles, part: str, lines: int, one_hot: bool) -> Floats | None:
    """Features of nodes or edges [lines, width]; None: the set has none."""
    if not lines or not files.has(part):
        return None
    table = files.table(part)
    if len(table) != lines:
        raise files.damaged(f"{part} has {len(table)} lines where {lines} are expected")
    if not np.isfinite(table).all():
        raise files.damaged(f"{part} has values that are no finite numbers")
    kinds = (table == np.floor(table)).all(axis=0) & (table.min(axis=0) >= 0) & one_hot
    widths = np.where(kinds, table.max(axis=0) + 1, 1)
    if 4 * lines * widths.sum() > LARGEST_FEATURES:
        raise WorkloadError(
            f"{files.name}: {part} would be {lines} lines x {widths.sum():.0f} columns, "
            f"{4 * lines * widths.sum() / 1e9:.0f} GB; set features to numbers, or leave this set out"
        )
    starts = offsets(widths.astype(np.int64))
    found = np.zeros((lines, int(starts[-1])), np.float32)
    for column, start, kind in zip(table.T, starts[:-1].tolist(), kinds.tolist(), strict=True):
        if kind:
            found[np.arange(lines), start + column.astype(np.int64)] = 1.0
        else:
            found[:, start] = column
    return found
