from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raysim.workloads.images import decode, decoded_cache
from raysim.workloads.images.ssl_fl import Retina
from tests.workloads.images.published_trees import write_tree


@pytest.fixture
def arrays() -> dict[str, Any]:
    """40 training and 12 test images 8x6x3 of 4 classes, from 3 sites."""
    generator = np.random.default_rng(0)
    return {
        "train_images": generator.integers(256, size=(40, 8, 6, 3), dtype=np.uint8),
        "train_labels": np.arange(40, dtype=np.uint8) % 4,
        "train_sites": np.repeat(["north", "south", "east"], [20, 15, 5]),
        "test_images": generator.integers(256, size=(12, 8, 6, 3), dtype=np.uint8),
        "test_labels": np.arange(12, dtype=np.uint8) % 4,
        "test_sites": np.repeat(["south", "north", "west"], [6, 4, 2]),
    }


@pytest.fixture
def save(tmp_path: Path) -> Callable[[dict[str, Any]], Path]:
    def write(content: dict[str, Any]) -> Path:
        path = tmp_path / "tiny.npz"
        np.savez_compressed(path, **content)
        return path

    return write


@pytest.fixture
def put_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Puts NAME.npz into the folder images of a $RAYSIM_DATA; the first training images are the test set as well."""
    folder = tmp_path / "data" / "images"
    folder.mkdir(parents=True)
    monkeypatch.setenv("RAYSIM_DATA", str(tmp_path / "data"))

    def put(name: str, images: np.ndarray, labels: np.ndarray, tests: int) -> Path:
        parts: dict[str, Any] = {"train_images": images, "train_labels": labels}
        parts |= {"test_images": images[:tests], "test_labels": labels[:tests]}
        np.savez(folder / f"{name}.npz", **parts)
        return folder / f"{name}.npz"

    return put


@pytest.fixture
def retina(tmp_path: Path) -> Retina:
    write_tree(tmp_path / "data", "5_clients/split_2", [f"client_{number}" for number in range(1, 6)])
    return Retina(
        path=str(tmp_path / "data"), split=2, size=4, augment="none", cache_dir=str(tmp_path / "cache"), test_share=0.2
    )


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of images as they are decoded."""
    names: list[str] = []

    def counting(path: Path, size: int, *, truncated: bool) -> object:
        names.append(path.name)
        return decode.decode(path, size, truncated=truncated)

    monkeypatch.setattr(decoded_cache, "decode", counting)
    return names
