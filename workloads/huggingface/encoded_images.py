"""A column of encoded images, as ``datasets`` has them, as pixels of one size."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError
from raysim.workloads.files.array_files import MAX_ARRAY_BYTES
from raysim.workloads.images.decode import open_image, rgb


def image_bytes(column: Any, origin: str) -> list[bytes]:
    """The content of every image's file, of a ``pyarrow.ChunkedArray``. WorkloadError if one is not there."""
    import pyarrow
    from pyarrow import compute

    files = compute.struct_field(column, "bytes") if pyarrow.types.is_struct(column.type) else column
    if not (pyarrow.types.is_binary(files.type) or pyarrow.types.is_large_binary(files.type)):
        raise WorkloadError(f"{origin} holds {column.type}, not the bytes of image files; save the data set again")
    contents: list[bytes] = files.to_pylist()
    absent = next((number for number, content in enumerate(contents, start=1) if not content), None)
    if absent is not None:
        raise WorkloadError(
            f"{origin}, row {absent}: there is no image, or only a path to one; leave the row out, or save the data "
            "set again with the images in it"
        )
    return contents


def image_shape(contents: list[bytes], size: int, gray: bool, origin: str) -> tuple[int, int, int, int]:
    """[N, height, width, channels] of all images: height and width are ``size``, or what they have if that is 0.

    WorkloadError if that differs, or if all together take more memory than is allowed.
    """
    first: tuple[int, int] | None = (size, size) if size else None
    for number, content in enumerate(contents, start=1):
        try:
            with open_image(io.BytesIO(content)) as image:
                found = image.height, image.width
        except Exception as error:  # Pillow's readers raise many types for damaged files, and document no closed set
            raise _unreadable(origin, number, error) from error
        if first is None:
            first = found
        if not size and found != first:
            raise WorkloadError(
                f"{origin}, row {number}: the image has {found[0]} x {found[1]} pixels, and the first one "
                f"{first[0]} x {first[1]}; set size to bring all to one"
            )
    assert first is not None, "there is a row"
    shape = (len(contents), *first, 1 if gray else 3)
    if np.prod(shape, dtype=np.float64) > MAX_ARRAY_BYTES:
        raise WorkloadError(
            f"{origin}: {len(contents)} images of {first[0]} x {first[1]} pixels take more than "
            f"{MAX_ARRAY_BYTES / 1e9:g} GB, which is the limit; set a smaller size"
        )
    return shape


def decoded(contents: list[bytes], shape: tuple[int, int, int, int], origin: str) -> NDArray[np.uint8]:
    """The images in this shape; those of another size are stretched. WorkloadError if one is damaged."""
    from PIL import Image

    _, height, width, channels = shape
    pixels = np.empty(shape, np.uint8)
    for number, content in enumerate(contents):
        try:
            with open_image(io.BytesIO(content)) as image:
                found = rgb(image).convert("L") if channels == 1 else rgb(image)
            if found.size != (width, height):
                found = found.resize((width, height), Image.Resampling.BICUBIC)
            pixels[number] = np.asarray(found).reshape(height, width, channels)
        except Exception as error:  # as above
            raise _unreadable(origin, number + 1, error) from error
    return pixels


def _unreadable(origin: str, row: int, error: Exception) -> WorkloadError:
    reason = " ".join(str(error).split()) or type(error).__name__
    return WorkloadError(
        f"{origin}, row {row}: the image cannot be read ({reason}); leave the row out, or save the data set again"
    )
