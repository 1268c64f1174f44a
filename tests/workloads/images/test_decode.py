from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from raysim.workloads.errors import WorkloadError
from raysim.workloads.images.decode import decode, resize


def test_resize_averages_what_it_shrinks_and_keeps_what_fits() -> None:
    board = (np.indices((2, 16, 16, 3))[1:3].sum(axis=0) % 2 * 255).astype(np.uint8)
    assert resize(board, 16) is board
    small = resize(board, 4)
    assert small.shape == (2, 4, 4, 3)
    assert np.abs(small.astype(int) - 127).max() <= 8  # without a low-pass filter it would be black or white
    four = np.random.default_rng(0).integers(256, size=(1, 8, 6, 4), dtype=np.uint8)
    alone = resize(four[..., 3:], 4)
    assert np.array_equal(resize(four, 4)[..., 3:], alone)  # no channel is taken for transparency


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "P"])
def test_files_become_rgb(tmp_path: Path, mode: str) -> None:
    pixels = np.zeros((6, 6, 3), dtype=np.uint8)
    pixels[..., 0], pixels[3:, :, 1] = 200, 100
    image = Image.fromarray(pixels).convert(mode)
    image.save(tmp_path / "a.png")
    found = decode(tmp_path / "a.png", 6, truncated=False)
    assert found.dtype == np.uint8
    assert np.array_equal(found, np.asarray(image.convert("RGB")))
    assert decode(tmp_path / "a.png", 3, truncated=False).shape == (3, 3, 3)


def test_sixteen_bits_are_scaled(tmp_path: Path) -> None:
    Image.fromarray(np.array([[0, 256 * 90], [65535, 300]], dtype=np.uint16)).save(tmp_path / "a.png")
    assert decode(tmp_path / "a.png", 2, truncated=False)[..., 0].tolist() == [[0, 90], [255, 1]]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.full((2, 2), 7, dtype=np.uint8), 7),
        (np.full((2, 2, 1), 7, dtype=np.uint8), 7),
        (np.full((2, 2, 4), 6.6, dtype=np.float32), 7),
        (np.full((2, 2, 3), 0.2), 51),
    ],
)
def test_arrays_become_rgb(tmp_path: Path, array: np.ndarray, expected: int) -> None:
    np.save(tmp_path / "a.npy", array)
    assert decode(tmp_path / "a.npy", 2, truncated=False).tolist() == np.full((2, 2, 3), expected).tolist()


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 2, 2), dtype=np.uint8), r"shape is \(2, 2, 2\)"),
        (np.zeros((2, 2), dtype=np.int32), "int32, not uint8 or floats"),
        (np.full((2, 2), -2.0), r"from -2 to -2, not in 0\.\.255"),
        (np.full((2, 2), np.nan), "from nan to nan"),
        (np.array([{}], dtype=object), "holds Python objects"),
    ],
)
def test_arrays_that_are_no_images(tmp_path: Path, array: np.ndarray, message: str) -> None:
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    with pytest.raises(WorkloadError, match=rf"a\.npy cannot be read as an image \(.*{message}"):
        decode(tmp_path / "a.npy", 2, truncated=False)


def test_damaged_and_truncated_files(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(256, size=(32, 32, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "a.jpg")
    content = (tmp_path / "a.jpg").read_bytes()
    (tmp_path / "a.jpg").write_bytes(content[: len(content) * 2 // 3])
    with pytest.raises(WorkloadError, match=r"a\.jpg cannot be read as an image .*truncated=true accepts"):
        decode(tmp_path / "a.jpg", 32, truncated=False)
    assert decode(tmp_path / "a.jpg", 32, truncated=True)[0].any()
    (tmp_path / "b.png").write_bytes(b"no image")
    with pytest.raises(WorkloadError, match=r"b\.png cannot be read as an image"):
        decode(tmp_path / "b.png", 32, truncated=True)
    with pytest.raises(WorkloadError, match=r"no image file .*c\.png"):
        decode(tmp_path / "c.png", 32, truncated=False)
