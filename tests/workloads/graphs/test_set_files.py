"""Files of published sets: in a folder, an archive or compressed; damaged and huge ones are named."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from raysim.workloads.errors import WorkloadError
from raysim.workloads.graphs import set_files
from raysim.workloads.graphs.set_files import SetFiles
from tests.workloads.graphs.tu_texts import zipped

TEXT = b"1, 2\n" * 4000


def written(folder: Path, kind: str) -> tuple[SetFiles, Path]:
    """A set with one part, ``A``, and the file that it is in."""
    if kind == "zip":
        path = zipped(folder, "S", {"A": TEXT.decode()})
        return SetFiles("S", path, "S_{}.txt"), path
    pattern = "{}.csv.gz" if kind == "gz" else "S_{}.txt"
    path = folder / pattern.format("A")
    path.write_bytes(gzip.compress(TEXT) if kind == "gz" else TEXT)
    return SetFiles("S", folder, pattern), path


@pytest.mark.parametrize("kind", ["zip", "gz", "txt"])
def test_more_than_the_limit_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    files, _ = written(tmp_path, kind)
    assert files.read("A") == TEXT and files.read("B") is None
    monkeypatch.setattr(set_files, "MAX_FILE_BYTES", len(TEXT) - 1)
    with pytest.raises(WorkloadError, match=r"A\.(txt|csv\.gz) in .* cannot be read .unpacked it takes more than"):
        files.read("A")


@pytest.mark.parametrize(
    ("kind", "damage"), [("zip", "empty"), ("zip", "text"), ("zip", "cut"), ("zip", "flipped"), ("gz", "cut")]
)
def test_a_damaged_archive_is_named(tmp_path: Path, kind: str, damage: str) -> None:
    files, path = written(tmp_path, kind)
    content = path.read_bytes()
    flipped = bytearray(content)
    flipped[content.find(b"S_A.txt") + 12] ^= 0xFF
    damaged: dict[str, bytes] = {"empty": b"", "text": b"<html>", "cut": content[:-40], "flipped": bytes(flipped)}
    path.write_bytes(damaged[damage])
    with pytest.raises(WorkloadError, match=r"S: .*A\..* in .* cannot be read .*damaged, copy or download"):
        files.read("A")
