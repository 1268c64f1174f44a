"""What a file is that was given in place of an .npz file, by its first bytes."""

from __future__ import annotations

from pathlib import Path

_STARTS = {
    b"PAR1": "a Parquet table",
    b"\x93NUMPY": "a single array (.npy)",
    b"\x89HDF": "an HDF5 file",
    b"\x1f\x8b": "a gzip archive",
    b"\x80": "a Python pickle, which is never read,",
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
}


def foreign_kind(path: Path) -> str:
    """What the file is; empty for a zip archive, as .npz files are, and for what is not known."""
    with path.open("rb") as file:
        start = file.read(4096)
    for magic, kind in _STARTS.items():
        if start.startswith(magic):
            return kind
    if b"\0" in start or start.startswith(b"PK"):
        return ""
    try:
        first = start.decode("utf-8").partition("\n")[0]
    except UnicodeDecodeError:
        return ""
    return "a table as text (CSV)" if any(mark in first for mark in ",;\t") else "a text file"
