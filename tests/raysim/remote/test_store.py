"""Connections to object stores: which server the environment names, and what was listed before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

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
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "localhost:9000")
    assert launch.main(["--method=fedavg", "--engine.backend=inline", "--output=s3://bucket/run"]) == REFUSED
    assert "AWS_ENDPOINT_URL is 'localhost:9000'" in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]
