"""The command ``python -m raysim.data``, with a server of this machine in the place of the publishers'."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from raysim.data import main
from raysim.workloads.data_sets import catalog
from raysim.workloads.data_sets.catalog import BY_NAME, DATA_SETS, File
from raysim.workloads.data_sets.converters import CONVERTERS
from raysim.workloads.registry import WORKLOADS
from tests.http_server import served
from tests.workloads.images.leaf import write_leaf

PLAY = "Ann:\n" + "to be or not " * 100
needs_data = pytest.mark.skipif("RAYSIM_DATA" not in os.environ, reason="RAYSIM_DATA is not set")


@pytest.fixture
def publisher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, list[str]]]:
    """A server with a text in the place of tinyshakespeare: its folder, and the requests so far."""
    monkeypatch.setenv("RAYSIM_DATA", str(tmp_path / "data"))
    with served(tmp_path / "served") as (address, asked):
        (tmp_path / "served" / "input.txt").write_text(PLAY, encoding="utf-8")
        digest = hashlib.sha256(PLAY.encode()).hexdigest()
        mirrored = replace(BY_NAME["tinyshakespeare"], files=(File(f"{address}/input.txt", f"sha256:{digest}"),))
        monkeypatch.setitem(catalog.BY_NAME, "tinyshakespeare", mirrored)
        yield tmp_path / "served", asked


def test_fetch_then_verify(
    publisher: tuple[Path, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fetch", "tinyshakespeare"]) == 0
    place = tmp_path / "data" / "text" / "tinyshakespeare"
    assert (place / "input.txt").read_text(encoding="utf-8") == PLAY
    assert [*(tmp_path / "data").iterdir()] == [tmp_path / "data" / "text"]  # no rest of the download
    assert "--method fedavg --workload tinyshakespeare" in capsys.readouterr().out
    assert main(["verify", "tinyshakespeare"]) == 0
    told = capsys.readouterr().out
    assert "1 published files with their checksums; 46 samples to train, 12 in local tests" in told
    (place / "input.txt").write_text(PLAY + "!", encoding="utf-8")
    assert main(["verify", "tinyshakespeare"]) == 1
    assert "it is damaged or has changed, and is not used" in capsys.readouterr().err
    asked = len(publisher[1])
    assert main(["fetch", "tinyshakespeare"]) == 1 and len(publisher[1]) == asked
    assert "is there already; remove it to fetch it again" in capsys.readouterr().err


@pytest.mark.parametrize(("content", "words"), [("other", "has the sha256"), (None, "404")])
def test_what_is_not_the_published_file_leaves_nothing(
    content: str | None,
    words: str,
    publisher: tuple[Path, list[str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (publisher[0] / "input.txt").unlink()
    if content is not None:
        (publisher[0] / "input.txt").write_text(content, encoding="utf-8")
    assert main(["fetch", "tinyshakespeare"]) == 1
    assert words in capsys.readouterr().err
    assert not [*(tmp_path / "data").iterdir()]


def test_convert_from_a_folder(publisher: tuple[Path, list[str]], tmp_path: Path) -> None:
    assert main(["convert", "tinyshakespeare", str(publisher[0]), "--to", str(tmp_path / "other")]) == 0
    assert (tmp_path / "other" / "text" / "tinyshakespeare" / "input.txt").exists() and not publisher[1]


def test_an_interrupted_copy_leaves_nothing_and_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The files that were copied already counted as all, and the repeat was refused."""
    for part in ("train", "test"):
        for letter in "abc":
            write_leaf(tmp_path / "plays", part, {letter: (["ab"], ["c"])})
            (tmp_path / "plays" / part / "all_data.json").rename(tmp_path / "plays" / part / f"{letter}.json")
    copied: list[Path] = []

    def interrupted(source: Path, target: Path) -> None:
        target.write_bytes(source.read_bytes())
        copied.append(target)
        if len(copied) == 5:
            raise KeyboardInterrupt

    command = ["convert", "shakespeare", str(tmp_path / "plays"), "--to", str(tmp_path / "data")]
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfile", interrupted)
        assert main(command) == 130
    assert len(copied) == 5 and "interrupted; nothing was written" in capsys.readouterr().err
    assert not [*(tmp_path / "data" / "text").iterdir()]
    assert main(command) == 0
    assert len([*(tmp_path / "data" / "text" / "shakespeare").rglob("*.json")]) == 6


def test_the_list_says_source_terms_and_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["list", "--to", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    for data in DATA_SETS:
        assert f"{data.name} (not there): {data.title}" in told and data.source in told and data.license in told
        assert (f"raysim.data fetch {data.name}" if data.files else f"raysim.data convert {data.name}") in told


def test_the_list_as_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "mnist.npz").touch()
    assert main(["list", "--json", "--to", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [*found] == [data.name for data in DATA_SETS]
    assert found["mnist"]["there"] and not found["adult"]["there"] and found["mnist"]["license"] == "CC BY-SA 3.0"


def test_every_entry_is_whole() -> None:
    for data in DATA_SETS:
        assert data.layout in (*CONVERTERS, "files", "leaf-text")
        assert data.name in WORKLOADS or data.name == "usps"  # a domain of digit-domains
        assert bool(data.files) != bool(data.how)
        for file in data.files:
            kind, _, digest = file.digest.partition(":")
            assert file.url.startswith("http") and len(digest) == {"sha256": 64, "md5": 32}[kind]


@needs_data
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("adult", "2 published files with their checksums"),
        ("heart-disease", "4 published files with their checksums"),
        ("tinyshakespeare", "1 published files with their checksums"),
        ("usps", "2007 in the global test, 10 classes"),
    ],
)
def test_real_files_verify(name: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", name]) == 0
    assert words in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["fetch", "cifar11"], 2, "there is no data set 'cifar11'. Did you mean"),
        (["fetch"], 2, "no data set is named. Allowed: mnist"),
        (["fetch", "femnist"], 2, "its publisher has no file to download; clone the source"),
        (["fetch", "har"], 2, "then python -m raysim.data convert har"),
        (["convert", "har", "gone"], 2, "har: there is no gone; give the folder of the published files"),
        (["convert", "har"], 2, "convert har needs the folder of its published files (https://archive.ics"),
        (["fetch", "mnist", "here"], 2, "fetch mnist here: convert alone reads a folder"),
        (["verify", "mnist", "here"], 2, "the data folder is named by --to here"),
        (["list", "mnist"], 2, "list mnist: it shows all data sets; leave mnist out"),
        (["verify", "har"], 1, "python -m raysim.data list says how to get it"),
    ],
)
def test_requests_that_cannot_be(
    words: list[str], code: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--to", str(tmp_path)]) == code
    assert told in capsys.readouterr().err


def test_no_folder(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("RAYSIM_DATA", raising=False)
    assert main(["verify", "mnist"]) == 2
    assert "RAYSIM_DATA is not set" in capsys.readouterr().err
    assert main(["list"]) == 0
