"""A server of S3 in this process, whose connection can be lost and come back."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from moto.server import ThreadedMotoServer

from raysim.remote.store import PATIENCE


class S3Server:
    """One bucket, ``bucket``; what it holds stays while it is down."""

    def __init__(self) -> None:
        self.port = 0
        self.up()
        urllib.request.urlopen(urllib.request.Request(f"{self.endpoint}/bucket", method="PUT")).close()

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def up(self) -> None:
        """Listen, again at the same port."""
        self._server: Any = ThreadedMotoServer(ip_address="127.0.0.1", port=self.port, verbose=False)
        self._server.start()
        self.port = self._server.get_host_and_port()[1]

    def down(self) -> None:
        """Answer nothing more."""
        with suppress(Exception):
            self._server.stop()


@contextmanager
def s3_server(patch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """A server that the environment names, and short patience with it."""
    server = S3Server()
    for name, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_ENDPOINT_URL": server.endpoint,
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        patch.setenv(name, value)
    for name, seconds in {
        "connect": 1.0,
        "call": 5.0,
        "first_pause": 0.02,
        "longest_pause": 0.1,
        "at_end": 0.3,
    }.items():
        patch.setattr(PATIENCE, name, seconds)
    try:
        yield server
    finally:
        server.down()
