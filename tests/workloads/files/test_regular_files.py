"""Data files that anyone may have made: no program is started, nothing is waited for, no memory is taken unasked."""

from __future__ import annotations

import gzip
import io
import os
import resource
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from PIL import Image
from pyarrow import parquet

from raysim.workloads.errors import WorkloadError
from raysim.workloads.files.leaf_files import read_leaf
from raysim.workloads.files.parquet_files import read_parquet
from raysim.workloads.files.regular_files import UNREADABLE, allowed_bytes, open_regular, open_unpacked
from raysim.workloads.files.table_files import read_table
from raysim.workloads.graphs.set_files import SetFiles
from raysim.workloads.huggingface.arrow_files import read_columns
from raysim.workloads.huggingface.encoded_images import decoded, image_shape
from raysim.workloads.images.decode import FORMATS, decode
from raysim.workloads.images.layout import _lines

EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n%%EOF\n"


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sixteenth of the least limit: to unpack its 268 MB takes seconds."""
    assert allowed_bytes(0) == 2**28
    monkeypatch.setattr("raysim.workloads.files.regular_files.SMALLEST_LIMIT", 2**24)


@pytest.fixture
def ghostscript(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program of Ghostscript's name that leaves a mark."""
    mark, place = tmp_path / "was-started", tmp_path / "bin"
    place.mkdir()
    (place / "gs").write_text(f"#!/bin/sh\ntouch '{mark}'\n")
    (place / "gs").chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
    from PIL import EpsImagePlugin

    monkeypatch.setattr(EpsImagePlugin, "gs_binary", None)  # it is looked for once
    return mark


@pytest.mark.parametrize("name", ["x.png", "x.jpg", "x.tiff"])
def test_an_image_file_starts_no_program(tmp_path: Path, ghostscript: Path, name: str) -> None:
    (tmp_path / name).write_bytes(EPS)
    with pytest.raises(WorkloadError, match="no image in one of the formats PNG, JPEG, BMP, GIF, TIFF, WEBP"):
        decode(tmp_path / name, 8, truncated=False)
    with pytest.raises(WorkloadError, match=r"row 1: the image cannot be read \(it is no image in one of"):
        image_shape([EPS], 8, False, "column")
    with pytest.raises(WorkloadError, match=r"row 1: the image cannot be read \(it is no image in one of"):
        decoded([EPS], (1, 8, 8, 3), "column")
    assert not ghostscript.exists()


@pytest.mark.parametrize("kind", FORMATS)
def test_the_formats_that_are_meant_are_read_by_their_content(tmp_path: Path, kind: str) -> None:
    pixels = np.full((8, 8, 3), 200, np.uint8)
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, format=kind)
    (tmp_path / "x.png").write_bytes(content.getvalue())
    assert np.abs(decode(tmp_path / "x.png", 8, truncated=False).astype(int) - 200).max() <= 2


@pytest.mark.parametrize("kind", ["PPM", "TGA", "ICO", "PCX"])
def test_other_formats_are_refused(tmp_path: Path, kind: str) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "x", format=kind)
    (tmp_path / "x").rename(tmp_path / "x.png")
    with pytest.raises(WorkloadError, match="no image in one of the formats"):
        decode(tmp_path / "x.png", 8, truncated=False)


def repeated(path: Path, rows: int, size: int) -> Path:
    """One text of ``size`` bytes in every row, as Parquet has it: once, and its number."""
    numbers = pyarrow.array(np.zeros(rows, np.int32))
    column = pyarrow.DictionaryArray.from_arrays(numbers, pyarrow.array(["x" * size]))
    table = pyarrow.table({"text": column, "label": numbers})
    parquet.write_table(table, path, compression="zstd", store_schema=False, dictionary_pagesize_limit=10**9)
    return path


@pytest.mark.parametrize("reader", [read_parquet, read_table, lambda path: read_columns([path])])
def test_a_parquet_file_of_a_few_bytes_does_not_fill_the_memory(
    tmp_path: Path, reader: Callable[[Path], object]
) -> None:
    path = repeated(tmp_path / "x.parquet", 20_000, 500_000)  # 10 GB
    facts = parquet.ParquetFile(path).metadata
    assert path.stat().st_size < 3000 and facts.row_group(0).total_byte_size < 10**6  # what a check of these would see
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises((WorkloadError, ValueError), match=r"unpacked it takes more than 0\.268 GB"):
        reader(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_000_000  # KB


@pytest.mark.parametrize("nested", ["struct", "list"])
def test_nor_does_one_with_the_text_within_another_value(tmp_path: Path, nested: str) -> None:
    rows = 20_000
    text = pyarrow.DictionaryArray.from_arrays(pyarrow.array(np.zeros(rows, np.int32)), pyarrow.array(["x" * 500_000]))
    within = (
        pyarrow.StructArray.from_arrays([text], ["bytes"])
        if nested == "struct"
        else pyarrow.ListArray.from_arrays(np.arange(rows + 1, dtype=np.int32), text)
    )
    path = tmp_path / "x.parquet"
    parquet.write_table(
        pyarrow.table({"x": within}), path, compression="zstd", store_schema=False, dictionary_pagesize_limit=10**9
    )
    assert path.stat().st_size < 3000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match="unpacked it takes more"):
        read_parquet(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_000_000  # KB


def test_a_table_of_numbers_is_counted_too(tmp_path: Path) -> None:
    table = pyarrow.table({name: np.zeros(5_000_000) for name in "abcdefgh"})  # 320 MB
    parquet.write_table(table, tmp_path / "x.parquet", compression="zstd")
    with pytest.raises(WorkloadError, match="unpacked it takes more"):
        read_table(tmp_path / "x.parquet")


def test_honest_parquet_files_are_read_as_they_are(tmp_path: Path) -> None:
    images = pyarrow.StructArray.from_arrays([pyarrow.array([b"x" * 100, b"y"] * 50), ["a"] * 100], ["bytes", "path"])
    columns = {
        "image": images, "numbers": [[1, 2], []] * 50, "texts": [["a"], ["b", None]] * 50, "label": list(range(100)),
        "text": ["é", None] * 50, "weight": [0.5, None] * 50,
    }  # fmt: skip
    table = pyarrow.table(columns)
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=7)
    found = read_parquet(tmp_path / "x.parquet")
    assert found.equals(table) and found.schema == table.schema


def test_texts_that_are_by_number_and_then_are_not(tmp_path: Path) -> None:
    """As a writer leaves it when there are too many of them: in every file of images."""
    images = [bytes([number % 251]) * 3000 for number in range(2000)]
    column = pyarrow.StructArray.from_arrays([pyarrow.array(images), [""] * 2000], ["bytes", "path"])
    table = pyarrow.table({"image": column, "text": [image.hex() for image in images]})
    parquet.write_table(table, tmp_path / "x.parquet", dictionary_pagesize_limit=100_000)
    assert read_parquet(tmp_path / "x.parquet").equals(table)


@pytest.mark.usefixtures("small_limit")
def test_a_packed_table_is_no_larger_than_it_may_be(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "x.csv.gz", "wb") as file:
        for _ in range(20):
            file.write(b"1,2\n" * 250_000)  # 20 MB
    assert (tmp_path / "x.csv.gz").stat().st_size < 10**5
    with pytest.raises(WorkloadError, match=r"unpacked it takes more than 0\.0168 GB"):
        read_table(tmp_path / "x.csv.gz")


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zip", ""])
def test_packed_tables_are_read(tmp_path: Path, suffix: str) -> None:
    import bz2
    import lzma

    content, path = b"x,y\n1,2\n3,4\n", tmp_path / f"x.csv{suffix}"
    packers: dict[str, Callable[[bytes], bytes]] = {
        ".gz": gzip.compress,
        ".bz2": bz2.compress,
        ".xz": lzma.compress,
        "": bytes,
    }
    if suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x.csv", content)
    else:
        path.write_bytes(packers[suffix](content))
    assert read_table(path)["y"].tolist() == [2, 4]
    path.write_bytes(path.read_bytes()[:20])
    if suffix:
        with pytest.raises(WorkloadError, match="cannot be read as a table"):
            read_table(path)


@pytest.mark.parametrize("header", ["x,x,y", "x,x ,y", "x;y; x", "y\tx\tx "])
def test_two_columns_of_one_name_are_refused(tmp_path: Path, header: str) -> None:
    separator = max(",;\t", key=header.count)
    (tmp_path / "x.csv").write_text(f"\n{header}\n{separator.join('123')}\n")
    with pytest.raises(WorkloadError, match="two columns are called 'x'"):
        read_table(tmp_path / "x.csv")


@pytest.mark.parametrize("names", [["x", "x", "y"], ["x", "x ", "y"]])
def test_two_columns_of_one_name_in_a_parquet_file_are_refused(tmp_path: Path, names: list[str]) -> None:
    parquet.write_table(pyarrow.Table.from_arrays([pyarrow.array([1, 2])] * 3, names), tmp_path / "x.parquet")
    with pytest.raises(WorkloadError, match=r"'x' is there twice|two columns are called 'x'"):
        read_table(tmp_path / "x.parquet")


@pytest.mark.timeout(180)
@pytest.mark.parametrize("device", [False, True])
def test_pipes_and_devices_are_no_files(tmp_path: Path, device: bool) -> None:
    def lay(name: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.symlink_to("/dev/zero") if device else os.mkfifo(path)
        return path

    for reader, name in (
        (open_regular, "a"), (open_unpacked, "x.csv.gz"), (read_table, "x.csv"), (read_parquet, "x.parquet"),
        (lambda path: decode(path, 8, truncated=False), "x.png"), (_lines, "names.csv"),
        (lambda path: list(read_leaf(path.parents[1], "train")), "train/x.json"),
        (lambda path: SetFiles("S", path.parent, "S_{}.txt").read("A"), "S_A.txt"),
        (lambda path: SetFiles("S", path.parent, "{}.csv.gz").read("edge"), "edge.csv.gz"),
        (lambda path: read_columns([path]), "y.parquet"),
    ):  # fmt: skip
        with pytest.raises((WorkloadError, *UNREADABLE)):
            reader(lay(name))
