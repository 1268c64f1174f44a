"""Files as ``datasets`` (5.2) writes them, by pyarrow alone."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from PIL import Image
from pyarrow import parquet

IMAGE = pa.struct({"bytes": pa.binary(), "path": pa.string()})
CLASSES: dict[str, Any] = {"names": ["cat", "dog"], "_type": "ClassLabel"}


def png(pixels: NDArray[np.uint8]) -> dict[str, Any]:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return {"bytes": file.getvalue(), "path": None}


def arrow_table(columns: Mapping[str, Sequence[Any] | pa.Array], features: Mapping[str, Any] | None = None) -> pa.Table:
    table = pa.table(dict(columns))
    if features is None:
        return table
    return table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})


def save_to_disk(table: pa.Table, folder: Path, files: int = 1) -> Path:
    folder.mkdir(parents=True)
    names = [f"data-{number:05}-of-{files:05}.arrow" for number in range(files)]
    rows = -(-len(table) // files)
    for number, name in enumerate(names):
        part = table.slice(number * rows, rows)
        with pa.OSFile(str(folder / name), "wb") as sink, pa.ipc.new_stream(sink, part.schema) as writer:
            writer.write_table(part)
    state = {"_data_files": [{"filename": name} for name in names], "_fingerprint": "0", "_split": None}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text("{}")
    return folder


def save_splits(splits: Mapping[str, pa.Table], folder: Path) -> Path:
    for name, table in splits.items():
        save_to_disk(table, folder / name)
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": [*splits]}))
    return folder


def save_parquet(splits: Mapping[str, pa.Table], folder: Path) -> Path:
    (folder / "data").mkdir(parents=True)
    for name, table in splits.items():
        parquet.write_table(table, folder / "data" / f"{name}-00000-of-00001.parquet")
    return folder


def pets(count: int, seed: int, size: int = 6) -> tuple[pa.Table, NDArray[np.uint8]]:
    """Images of cats (dark) and dogs (bright) in turns, and their pixels."""
    generator = np.random.default_rng(seed)
    pixels = generator.integers(0, 100, (count, size, size, 3), dtype=np.uint8)
    pixels[1::2] += 150
    columns = {"image": pa.array([png(one) for one in pixels], IMAGE), "label": [row % 2 for row in range(count)]}
    return arrow_table(columns, {"image": {"_type": "Image"}, "label": CLASSES}), pixels
