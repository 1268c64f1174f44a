"""Files that are damaged, each in one way: what a user may have, by workload."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image

from tests.workloads.huggingface.saved import CLASSES, IMAGE, arrow_table, png, save_parquet, save_to_disk

Kind = tuple[str, Callable[[Path], Path], tuple[str, ...], str]
"""Workload, what makes the file or folder in an empty folder, further options, and a part of the error's words."""


def image(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(path)


def images(*names: str) -> Callable[[Path], Path]:
    def make(at: Path) -> Path:
        (at / "images").mkdir()
        for name in names:
            image(at / "images" / name)
        return at / "images"

    return make


def manifest(*lines: str) -> Callable[[Path], Path]:
    def make(at: Path) -> Path:
        image(at / "a.png")
        (at / "list.csv").write_text("\n".join(lines))
        return at / "list.csv"

    return make


def text(name: str, content: str | bytes) -> Callable[[Path], Path]:
    def make(at: Path) -> Path:
        (at / name).parent.mkdir(exist_ok=True)
        (at / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return at / name.split("/")[0]

    return make


def rows(header: str, line: str, count: int = 40) -> str:
    return "\n".join([header, *(line.format(number, number % 2) for number in range(count))])


def arrays_in(name: str, arrays: dict[str, Any]) -> Callable[[Path], Path]:
    """An .npz file; an array that is None is left out."""

    def make(at: Path) -> Path:
        np.savez(at / name, **{key: held for key, held in arrays.items() if held is not None})
        return at / name

    return make


def archive(**changes: Any) -> Callable[[Path], Path]:
    """An .npz file of images."""
    generator = np.random.default_rng(0)
    arrays: dict[str, Any] = {
        "train_images": generator.integers(0, 255, (60, 4, 4), dtype=np.uint8),
        "train_labels": np.arange(60) % 2,
        "test_images": generator.integers(0, 255, (20, 4, 4), dtype=np.uint8),
        "test_labels": np.arange(20) % 2,
    }
    return arrays_in("data.npz", arrays | changes)


def cut_off(make: Callable[[Path], Path], file: str = "", bytes_kept: int = 300) -> Callable[[Path], Path]:
    """The same, with a file (of a folder) that ends early."""

    def cut(at: Path) -> Path:
        made = make(at)
        path = made / file if file else made
        path.write_bytes(path.read_bytes()[:bytes_kept])
        return made

    return cut


def saved(**columns: Any) -> Callable[[Path], Path]:
    return lambda at: save_to_disk(arrow_table(columns, {"label": CLASSES}), at / "saved")


def in_parquet(at: Path) -> Path:
    return save_parquet({"train": arrow_table({"a": list(range(40)), "label": [0, 1] * 20})}, at / "parquet")


TWO_ROWS = saved(a=[1, 2], label=[0, 1])


def changed(name: str, content: str) -> Callable[[Path], Path]:
    """Two rows as they are saved, with a file that has other content."""

    def make(at: Path) -> Path:
        (TWO_ROWS(at) / name).write_text(content)
        return at / "saved"

    return make


def pixels(*shapes: tuple[int, int]) -> pa.Array:
    return pa.array([png(np.zeros(shape, np.uint8)) for shape in shapes], IMAGE)


def graphs(**changes: str | None) -> Callable[[Path], Path]:
    """SET.zip of a TUDataset of 20 graphs with two nodes; a part that is None is left out. Gives the zip's folder."""
    count = 20
    parts: dict[str, str | None] = {
        "A": "\n".join(f"{2 * number + 1}, {2 * number + 2}" for number in range(count)),
        "graph_indicator": "\n".join(str(node // 2 + 1) for node in range(2 * count)),
        "graph_labels": "\n".join(str(number % 2) for number in range(count)),
    }

    def make(at: Path) -> Path:
        (at / "sets").mkdir()
        with zipfile.ZipFile(at / "sets" / "SET.zip", "w") as file:
            for part, content in (parts | changes).items():
                if content is not None:
                    file.writestr(f"SET/SET_{part}.txt", content)
        return at / "sets"

    return make


def nodes(**changes: Any) -> Callable[[Path], Path]:
    """A graph of 30 nodes in Amazon's layout for heterophilous graphs."""
    arrays: dict[str, Any] = {
        "node_features": np.ones((30, 2), np.float32),
        "node_labels": np.arange(30) % 2,
        "edges": np.stack([np.arange(29), np.arange(1, 30)], axis=1),
        **{f"{part}_masks": np.arange(30)[None] % 3 == number for number, part in enumerate(("train", "val", "test"))},
    }
    return arrays_in("nodes.npz", arrays | changes)


def leaf(content: Any) -> Callable[[Path], Path]:
    def make(at: Path) -> Path:
        for part in ("train", "test"):
            (at / "leaf" / part).mkdir(parents=True)
            (at / "leaf" / part / "all.json").write_text(content if isinstance(content, str) else json.dumps(content))
        return at / "leaf"

    return make


def leaf_of(x: list[Any], y: list[Any]) -> Callable[[Path], Path]:
    """LEAF's files with these samples of one user."""
    return leaf({"users": ["a"], "user_data": {"a": {"x": x, "y": y}}})


def absent(at: Path) -> Path:
    return at / "gone"
