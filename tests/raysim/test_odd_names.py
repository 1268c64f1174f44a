"""Odd names of folders and users, and files that are not what they should be: one sentence before the run begins."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from raysim.config.config_file import sealed
from raysim.launch import main
from raysim.report.run_page import main as report
from raysim.report.run_page import page
from raysim.workloads.errors import WorkloadError
from raysim.workloads.files.leaf_files import read_leaf
from raysim.workloads.images.femnist import leaf_images
from tests.raysim.report.pages import make

WORDS = ["--method", "fedavg", "--model", "logistic", "--engine.backend", "inline", "--rounds", "1"]


@pytest.mark.parametrize("name", ["a\0b", "x" * 300, "a\udcffb", "\ud800"])
def test_a_folder_that_cannot_have_its_name(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS, "--output", str(tmp_path / name)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and said.startswith("raysim: output: ") and "Choose another" in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["", "# nothing\n"])
def test_an_empty_config_is_refused_at_once(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.yaml").write_text(sealed(text))
    assert main(["--resume", str(tmp_path)]) == 2
    assert "config.yaml: it is empty" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["user\0", "\ud800", "x" * 300, "a\nb"])
def test_users_of_leaf(name: str, tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    content = {"users": [name], "user_data": {name: {"x": [[0.0]], "y": [0]}}}
    (tmp_path / "train" / "x.json").write_text(json.dumps(content))
    with pytest.raises(WorkloadError, match=r"user '.*'…? has a name .*; rename it"):
        list(read_leaf(tmp_path, "train"))


@pytest.mark.parametrize("label", [10**30, -1, 10**9])
def test_a_label_of_femnist(label: int, tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    content = {"users": ["u"], "user_data": {"u": {"x": [[0.0] * 784], "y": [label]}}}
    (tmp_path / "train" / "x.json").write_text(json.dumps(content))
    with pytest.raises(WorkloadError, match="samples of user u are no images"):
        leaf_images(tmp_path)


def test_no_link_of_a_comparison_is_a_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["javascript:alert(1)", "a#b?c"]
    for name in names:
        make(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert report([*names, "--out", "compare.html"]) == 0
    links = re.findall(r'<a [^>]*href="([^"]*)"', Path("compare.html").read_text())
    assert sorted(links) == ["a%23b%3Fc/report.html", "javascript%3Aalert%281%29/report.html"]


def test_pages_of_a_folder_whose_name_is_no_text(tmp_path: Path) -> None:
    make(tmp_path / "run").rename(tmp_path / "a\udcffb")
    page(tmp_path / "a\udcffb")
    assert b"a\\udcffb" in (tmp_path / "a\udcffb" / "report.html").read_bytes()


@pytest.mark.parametrize("error", [MemoryError(), ImportError("libtorch.so: failed to map segment from shared object")])
def test_a_cap_on_memory_is_said(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("raysim.launch._run", fail)
    assert main([]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "If memory is limited" in said
