"""Starts the page's server: in a thread beside a run, or in a process of its own."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import threading
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from raysim.errors import ConfigError
from raysim.ui.reading import Reading
from raysim.ui.server import application, chart_library, is_loopback

TOKEN_VARIABLE = "RAYSIM_UI_TOKEN"


@dataclass(frozen=True)
class Address:
    """Where to listen; port 0: any free one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """From HOST, :PORT or HOST:PORT (an IPv6 host in brackets).

        Raises:
            ConfigError: it is none of these.
        """
        host, colon, port = text.rpartition(":") if not text.endswith("]") else (text, "", "")
        if not colon:
            host, port = text, "0"
        if not port.isdecimal() or int(port) > 65535:
            raise ConfigError(
                f"the page's address {text}: {port!r} is no port. Allowed: HOST, :PORT or HOST:PORT, 127.0.0.1:8300 "
                "say."
            )
        return cls(host.strip("[]") or "127.0.0.1", int(port))

    def token(self) -> str:
        """The token that a browser must show: none on this machine alone; else ``RAYSIM_UI_TOKEN``, or a new one."""
        given = os.environ.get(TOKEN_VARIABLE, "")
        return given or ("" if is_loopback(self.host) else secrets.token_urlsafe(24))


class Page:
    """The server of one run's page, in a thread of its own until ``close``.

    Raises:
        ConfigError: nothing can listen at the address, or the charts' package is missing.
        ResultsError: the folder holds no run, or a damaged one.
    """

    def __init__(self, folder: Path, address: Address) -> None:
        chart_library()
        reading, token = Reading(folder), address.token()
        reading.refresh()  # a folder that cannot be shown is said now, not to a browser
        self._loop = asyncio.new_event_loop()
        self._runner = web.AppRunner(application(reading, token), shutdown_timeout=0.5, access_log=None)
        self._thread = threading.Thread(target=self._loop.run_forever, name="page", daemon=True)
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._start(address), self._loop).result()
        except OSError as error:
            self.close()
            raise ConfigError(
                f"the page's address: nothing can listen at {address.host}:{address.port}: {error.strerror or error}. "
                "Give another one (HOST:PORT), or port 0 for any free one"
            ) from error
        host = socket.gethostname() if address.host in ("0.0.0.0", "::") else address.host
        host = f"[{host}]" if ":" in host else host
        self.url = f"http://{host}:{self.port}/" + (f"?token={token}" if token else "")

    @property
    def port(self) -> int:
        """The port that was taken."""
        return int(self._runner.addresses[0][1])

    async def _start(self, address: Address) -> None:
        await self._runner.setup()
        await web.TCPSite(self._runner, address.host, address.port).start()

    async def _end(self) -> None:
        await self._runner.cleanup()
        questions = asyncio.all_tasks() - {asyncio.current_task()}  # which may still wait for something new
        for question in questions:
            question.cancel()
        if questions:
            await asyncio.wait(questions, timeout=1.0)

    def close(self) -> None:
        """Stop serving."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10.0)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10.0)
        self._loop.close()


def until_interrupted() -> None:
    """Wait for Ctrl-C."""
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        print()
