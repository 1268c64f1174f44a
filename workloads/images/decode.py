"""Image files and arrays to uint8 pixels of one size."""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError
from raysim.workloads.files.array_files import check_header

if TYPE_CHECKING:
    from PIL.Image import Image

SUFFIXES = frozenset({".npy", ".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp"})
"""The endings, in lower case, of what counts as an image when a folder is listed."""


FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP")
"""Pillow's names of the formats that are read, by their content: it has readers of 40, some of which start programs
(Ghostscript, for EPS)."""


def open_image(file: IO[bytes]) -> Image:
    """An image file in one of ``FORMATS``, opened and not yet read.

    Raises:
        ValueError: it is none of these; other errors of Pillow's where it is damaged.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        return Image.open(file, formats=FORMATS)
    except UnidentifiedImageError as error:
        raise ValueError(f"it is no image in one of the formats {', '.join(FORMATS)}") from error


def resize(images: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """[N, H, W, C] to [N, size, size, C]: Pillow's bicubic filter, which averages over what it shrinks.

    Sides of different length are brought to ``size`` each on its own, so the image is stretched, not cut.
    """
    from PIL import Image

    count, height, width, channels = images.shape
    if (height, width) == (size, size):
        return images
    result = np.empty((count, size, size, channels), dtype=np.uint8)
    for number in range(count):
        for channel in range(channels):  # one at a time: any number of channels, and none is taken for transparency
            plane = Image.fromarray(np.ascontiguousarray(images[number, :, :, channel]))
            result[number, :, :, channel] = np.asarray(plane.resize((size, size), Image.Resampling.BICUBIC))
    return result


def decode(path: Path, size: int, *, truncated: bool) -> NDArray[np.uint8]:
    """One image file as uint8 [size, size, 3], RGB.

    A .npy file holds (H, W) or (H, W, C), C ≥ 3 of which the first three count, as uint8 or as floats in 0..255 (in
    0..1 if none is larger). Everything else goes through Pillow: gray becomes three equal channels, transparency is
    dropped, of 16 bits the upper 8 count. ``truncated`` accepts files that end early, with gray for what is missing.
    WorkloadError, with the path, for a file that is missing or cannot be read as an image.
    """
    from PIL import Image, ImageFile

    if not path.is_file():
        raise WorkloadError(f"no image file {path}, though a .csv file or an earlier look at its folder named it")
    before = ImageFile.LOAD_TRUNCATED_IMAGES
    try:
        if path.suffix.lower() == ".npy":
            with path.open("rb") as file:
                check_header(file, path.stat().st_size)
            stored = _array_pixels(np.load(path, allow_pickle=False))
            return resize(stored[None], size).reshape(size, size, 3)
        ImageFile.LOAD_TRUNCATED_IMAGES = truncated
        with path.open("rb") as content, open_image(content) as image:
            converted = rgb(image)
        if converted.size != (size, size):
            converted = converted.resize((size, size), Image.Resampling.BICUBIC)
        return np.array(converted)
    except Exception as error:  # Pillow's readers raise many types for damaged files, and document no closed set
        reason = " ".join(str(error).split()) or type(error).__name__
        early = "; truncated=true accepts files that end early" if "truncated" in reason and not truncated else ""
        raise WorkloadError(
            f"{path} cannot be read as an image ({reason}); copy or download it again, or take its name out of the "
            f".csv files{early}"
        ) from error
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = before


def rgb(image: Image) -> Image:
    """An image in three channels of 8 bits. Pillow's own conversion clips 16 bits to white instead of scaling them."""
    from PIL import Image

    if image.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
    if image.mode in ("I", "F"):
        raise ValueError(f"its pixels have 32 bits (mode {image.mode}), whose range is not known")
    return image.convert("RGB")


def _array_pixels(array: NDArray[np.generic]) -> NDArray[np.uint8]:
    """The content of a .npy file as uint8 [H, W, 3]; ValueError if it is no image."""
    if array.ndim == 2 or (array.ndim == 3 and array.shape[2] == 1):
        array = np.repeat(array.reshape(*array.shape[:2], 1), 3, axis=2)
    if array.ndim != 3 or array.shape[2] < 3 or array.size == 0:
        raise ValueError(f"its shape is {array.shape}, not (height, width) or (height, width, at least 3 channels)")
    array = array[:, :, :3]
    if array.dtype == np.uint8:
        return array.astype(np.uint8)
    if array.dtype.kind != "f":
        raise ValueError(f"its values are {array.dtype}, not uint8 or floats")
    values = array.astype(np.float64)
    if not np.isfinite(values).all() or values.min() < 0 or values.max() > 255:
        raise ValueError(f"its values are from {values.min():g} to {values.max():g}, not in 0..255")
    return np.rint(values * 255 if values.max() <= 1 else values).astype(np.uint8)
