"""Addresses of remote folders, and what is meant as one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import raysim
from raysim import launch, verify
from raysim.crate import __main__ as crate
from raysim.errors import REFUSED, ResultsError
from raysim.paper import __main__ as paper
from raysim.remote.address import checked, is_remote, local_folder, local_path
from raysim.remote.places import run_folder
from raysim.remote.store import Store
from raysim.report import run_page
from tests.small_runs import IN_PROCESS, LOGISTIC


@pytest.mark.parametrize("text", ["s3://", "s3://bucket", "s3://bucket/../x", "s3://bucket/a?b", "S3 //x"])
def test_an_address_is_a_bucket_and_a_folder(text: str) -> None:
    with pytest.raises(ResultsError, match="is no remote run folder"):
        Store(text)


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(ResultsError, match="an address holds no password") as caught:
        checked("sftp://me:secret@host/runs/first")
    assert "secret" not in str(caught.value)
    assert checked("sftp://me@host:22/runs/first/") == "sftp://me@host:22/runs/first"


def test_addresses_have_folders_of_their_own() -> None:
    assert is_remote("s3://bucket/run") and not is_remote("runs/first") and not is_remote(Path("s3://bucket/run"))
    assert local_folder("s3://bucket/run/") == local_folder("s3://bucket/run") != local_folder("s3://other/run")
    with pytest.raises(ResultsError, match="of this machine"):
        local_path("s3://bucket/run")
    with pytest.raises(ResultsError, match="sch"):
        Store("sch://bucket/run")


def test_the_home_folder_is_meant_by_its_sign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No shell expands it behind an equals sign, or in YAML: folders were named ``~``."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert local_path("~/x") == run_folder("~/x") == tmp_path / "home" / "x"
    assert local_path("a/~") == Path("a/~") and local_path("~no-such-user/x") == Path("~no-such-user/x")
    first = raysim.run(IN_PROCESS | LOGISTIC, rounds=1, output="~/run", progress=False)
    assert first.folder == tmp_path / "home" / "run" and first.config["output"] == "~/run"
    again = raysim.run(resume="~/run", rounds=2, progress=False)
    assert len(again.rounds) == 2 and raysim.load_model("~/run") is not None
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("S3://bucket/run", "s3://bucket/run"),
        ("s3:/bucket/run", "s3://bucket/run"),
        ("Gs:/bucket/run", "gs://bucket/run"),
        ("file:/tmp/run", "file:///tmp/run"),
    ],
)
def test_a_misspelled_address_is_no_folder_of_this_machine(text: str, right: str) -> None:
    with pytest.raises(ResultsError, match=f"'{text}' is no remote address.* Write '{right}', or './{text}'"):
        is_remote(text)
    with pytest.raises(ResultsError, match="of this machine"):
        local_path(text)
    with pytest.raises(ResultsError, match="is no remote address"):
        raysim.run(IN_PROCESS | LOGISTIC, output=text)


@pytest.mark.parametrize("text", ["./S3:/bucket/run", "/runs/s3:/run", "C:/runs/first", "runs/a:/b", "s3:bucket"])
def test_a_folder_with_a_colon_is_one_of_this_machine(text: str) -> None:
    assert not is_remote(text)
    assert local_path(text) == Path(text)


@pytest.mark.parametrize(
    "command",
    [
        lambda text: launch.main(["--method=fedavg", "--output", text]),
        lambda text: launch.main(["--resume", text]),
        lambda text: launch.main(["--config=file.yaml"]),
        lambda text: verify.main([text]),
        lambda text: crate.main(["run", "--output", text]),
        lambda text: paper.main(["run", "--output", text]),
        lambda text: run_page.main(["run", "other", "--out", text]),
    ],
)
def test_commands_say_how_an_address_is_written(
    command: Callable[[str], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file.yaml").write_text("method: fedavg\noutput: S3://bucket/run\n")
    assert command("S3://bucket/run") == REFUSED
    assert "S3://bucket/run" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file.yaml"]
