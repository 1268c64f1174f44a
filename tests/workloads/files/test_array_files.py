from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raysim.workloads.errors import WorkloadError
from raysim.workloads.files import array_files
from raysim.workloads.files.array_files import check_header
from raysim.workloads.images.image_set import image_set, read_npz


def npy(header: bytes, data: bytes = b"", version: int = 1) -> bytes:
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + data


def archive(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return path


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (npy(b"{'descr': '|u1', 'fortran_order': False, 'shape': (8000000000,)}", b"1"), "claims uint8"),
        (npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (2097152, 16777216)}"), "claims float64"),
        (npy(b"(" * 3000), "header cannot be read"),
        (npy(b"[" * 200_000, version=2), "more than the 4096"),
        (npy(b"{'descr': '|u1', 'fortran_order': False, 'shape': (-1,)}", b"1"), "claims"),
        (npy(b"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", b"12345678"), "Python objects"),
        (npy(b"{'descr': 'nonsense', 'fortran_order': False, 'shape': (1,)}", b"1"), "header cannot be read"),
        (npy(b"{'shape': (1,)}", b"1"), "header cannot be read"),
        (npy(b"{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,)}"), "values that take no bytes"),
        (npy(b"{'descr': [], 'fortran_order': False, 'shape': (1000000000000,)}"), "values that take no bytes"),
        (npy(b"{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}", b"more"), "1 bytes, and 4 are there"),
    ],
)
def test_a_header_that_claims_too_much_is_refused_before_anything_is_allocated(
    tmp_path: Path, content: bytes, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        check_header(io.BytesIO(content), len(content))
    with pytest.raises(WorkloadError, match=rf"a\.npz: .*{said}"):
        read_npz(archive(tmp_path / "a.npz", train_images=content))


def test_a_small_file_that_unpacks_to_more_than_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez_compressed(tmp_path / "zeros.npz", train_images=np.zeros(2**20, np.uint8))
    monkeypatch.setattr(array_files, "MAX_ARRAY_BYTES", 2**19)
    with pytest.raises(WorkloadError, match=r"zeros\.npz.*the limit for one file"):
        read_npz(tmp_path / "zeros.npz")


def test_arrays_come_back_as_they_were_saved(tmp_path: Path) -> None:
    saved: dict[str, Any] = {
        "a": np.arange(6, dtype=np.uint8).reshape(2, 3),
        "b": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "sites": np.array(["one", "zwei"]),
        "nothing": np.zeros((0, 4), np.float32),
        "one": np.array(7),
    }
    np.savez_compressed(tmp_path / "a.npz", **saved)
    found = read_npz(tmp_path / "a.npz")
    assert list(found) == list(saved)
    for name, array in saved.items():
        assert found[name].dtype == array.dtype and np.array_equal(found[name], array)


@pytest.mark.parametrize("label", [5_000_000, 2**62])
def test_a_label_that_would_make_millions_of_classes(label: int) -> None:
    images = np.zeros((2, 4, 4), np.uint8)
    arrays = {"train_images": images, "test_images": images}
    labels = {"train_labels": np.array([0, label]), "test_labels": np.array([0, 0])}
    with pytest.raises(WorkloadError, match=f"x: the largest label would make {label + 1} classes"):
        image_set("x", arrays | labels, "x")
