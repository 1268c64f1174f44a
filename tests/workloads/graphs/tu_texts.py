"""The text files of made-up TUDatasets."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

# Set S: three graphs. Graph 1: path 1-2-3 with node 3 twice connected and a loop at 1; graph 2: a single node (4);
# graph 3: nodes 5 and 6 joined, 7 isolated. Edges stand in both directions, in no order, 2-3 even three times.
SMALL = {
    "A": "6, 5\n1, 1\n2, 1\n1, 2\n3, 2\n2, 3\n3, 2\n5, 6\n",
    "graph_indicator": "1\n1\n1\n2\n3\n3\n3\n",
    "graph_labels": "5\n-1\n5\n",
    "node_labels": "3\n5\n3\n8\n8\n3\n5\n",
    "node_attributes": "0.5, 1\n1.5, -1\n2, 0\n0, 0\n1, 1\n3e-1, 2\n9, 9\n",
}


def zipped(folder: Path, name: str, texts: Mapping[str, str]) -> Path:
    """NAME.zip in TUDataset's layout."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, text in texts.items():
            archive.writestr(f"{name}/{name}_{part}.txt", text)
    return path


def texts(labels: list[int]) -> dict[str, str]:
    """The texts of a set with these graph labels: graph g is a path of 2 + g mod 3 nodes, without node features."""
    pairs: list[tuple[int, int]] = []
    indicator: list[int] = []
    for number in range(len(labels)):
        first = len(indicator) + 1
        indicator += [number + 1] * (2 + number % 3)
        for node in range(first, len(indicator)):
            pairs += [(node, node + 1), (node + 1, node)]
    return {
        "A": "".join(f"{one}, {two}\n" for one, two in pairs),
        "graph_indicator": "".join(f"{number}\n" for number in indicator),
        "graph_labels": "".join(f"{label}\n" for label in labels),
    }
