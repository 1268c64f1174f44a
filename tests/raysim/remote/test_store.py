"""Connections to object stores: which server the environment names, and what was listed before."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem

from raysim import launch
from raysim.errors import REFUSED, ResultsError
from raysim.remote.store import Store


@pytest.fixture(autouse=True)
def _no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """How pyarrow was asked for a file system of S3, which it need not connect to."""
    from pyarrow import fs

    calls: list[dict[str, Any]] = []

    def open_s3(**given: Any) -> SimpleNamespace:
        calls.append(given)
        return SimpleNamespace()

    monkeypatch.setattr(fs, "S3FileSystem", open_s3)
    monkeypatch.setattr(fs, "resolve_s3_region", lambda bucket: "eu-north-1")
    return calls


class Remembering(LocalFileSystem):  # type: ignore[misc]
    """Files of this machine, whose folders are listed once, as fsspec's file system of FTP does."""

    protocol = "remembering"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.removeprefix("remembering://")))

    def ls(self, path: str, detail: bool = False, **options: Any) -> list[Any]:
        if path not in self.dircache:
            self.dircache[path] = super().ls(path, detail=True, **options)
        found = self.dircache[path]
        return found if detail else [entry["name"] for entry in found]

    def invalidate_cache(self, path: str | None = None) -> None:
        self.dircache.clear()


def test_objects_of_another_process_are_listed(tmp_path: Path) -> None:
    fsspec.register_implementation("remembering", Remembering, clobber=True)
    here, other = (Store(f"{scheme}://{tmp_path}/run") for scheme in ("remembering", "file"))
    here.put("states/first", b"1")
    assert here.names("states") == {"first": 1}
    other.put("states/second", b"12")
    assert here.names("states") == {"first": 1, "second": 2}


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
@pytest.mark.parametrize(
    "text",
    [
        "localhost:9000",
        "minio.example.org",
        "//minio.example.org",
        "ftp://minio.example.org",
        "http://",
        "http://host:9000/minio",
        "http://host?region=x",
    ],
)
def test_a_server_of_s3_is_named_in_full(
    name: str, text: str, opened: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(ResultsError, match=rf"^{name} is .*http://localhost:9000"):
        Store("s3://bucket/run")
    assert not opened


@pytest.mark.parametrize(
    ("text", "scheme", "host"),
    [
        ("http://localhost:9000", "http", "localhost:9000"),
        ("HTTPS://[::1]:9000/", "https", "[::1]:9000"),
        ("", None, None),
    ],
)
def test_the_server_that_the_environment_names_is_used(
    text: str,
    scheme: str | None,
    host: str | None,
    opened: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", text)
    Store("s3://bucket/run")
    (call,) = opened
    assert (call["scheme"], call["endpoint_override"]) == (scheme, host)
    assert call["region"] == (None if host else "eu-north-1")


def test_a_server_that_is_not_named_in_full_costs_no_folder(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "localhost:9000")
    assert launch.main(["--method=fedavg", "--engine.backend=inline", "--output=s3://bucket/run"]) == REFUSED
    assert "AWS_ENDPOINT_URL is 'localhost:9000'" in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]
