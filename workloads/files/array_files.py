"""Sizes of arrays in .npy and .npz files, checked against the file's length and a limit before memory is taken."""

from __future__ import annotations

import ast
import math
import zipfile
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

MAX_ARRAY_BYTES = 16 * 10**9
"""Upper bound of all arrays in one file, unpacked. Larger data belong into a format that is read in parts."""
MAX_HEADER_BYTES = 4096
"""A header holds a shape and a type; a parser would take a long one apart recursively."""


def array_members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The arrays of an .npz file by name.

    Raises:
        ValueError: it holds something else, or unpacked more than ``MAX_ARRAY_BYTES``.
    """
    members = archive.infolist()
    for member in members:
        if not member.filename.endswith(".npy"):
            raise ValueError(f"{member.filename!r} is no array")
    if sum(member.file_size for member in members) > MAX_ARRAY_BYTES:
        raise ValueError(f"unpacked it takes more than {MAX_ARRAY_BYTES / 1e9:g} GB, the limit for one file")
    return {member.filename.removesuffix(".npy"): member for member in members}


def read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """One array of an .npz file; nothing is unpickled.

    Raises:
        ValueError: it is damaged or holds Python objects, or its header claims more than there is.
        zipfile.BadZipFile, zlib.error, OSError, EOFError: it cannot be unpacked.
    """
    with archive.open(member) as file:
        check_header(file, member.file_size)
    with archive.open(member) as file:
        array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    return array


def blank_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """Zeros of the type and shape of one array of an .npz file, which take no memory; errors as in ``read_member``."""
    with archive.open(member) as file:
        shape, kind = check_header(file, member.file_size)
    return np.broadcast_to(np.zeros((), kind), shape)


def check_header(file: IO[bytes], length: int) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type that the header of an .npy file claims, compared with the file's length in bytes.

    Raises:
        ValueError: it is no such header, has Python objects, or its array does not have that length.
    """
    version = np.lib.format.read_magic(file)
    width = 2 if version == (1, 0) else 4
    size = int.from_bytes(file.read(width), "little")
    if size > MAX_HEADER_BYTES:
        raise ValueError(f"its header takes {size} bytes, more than the {MAX_HEADER_BYTES} that it may")
    try:
        header = ast.literal_eval(file.read(size).decode("latin1"))
        shape, kind = tuple(header["shape"]), np.dtype(header["descr"])
        expected = math.prod(shape) * kind.itemsize
    except (ValueError, SyntaxError, KeyError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(f"its header cannot be read ({type(error).__name__})") from error
    if kind.hasobject:
        raise ValueError("it holds Python objects")
    if not all(isinstance(extent, int) and extent >= 0 for extent in shape):
        raise ValueError(f"its header claims the shape {shape}")
    held = length - len(np.lib.format.magic(*version)) - width - size
    if not kind.itemsize and math.prod(shape):
        raise ValueError(f"its header claims {kind} {shape}, values that take no bytes")
    if expected != held:
        raise ValueError(f"its header claims {kind} {shape}, {expected} bytes, and {held} are there")
    return shape, kind
