"""Serves the page: static files, and one stream of server-sent events with the parts of the run as they change.

aiohttp, because Ray's own dashboard is built on it: no package more than a run needs anyway.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from aiohttp import web

from raysim.errors import ConfigError, ResultsError
from raysim.ui.reading import Reading

STATIC = Path(__file__).parent / "static"
PAUSE = 0.5
"""Seconds between two looks at the run's folder."""
HEARTBEAT = 10.0
"""Seconds of silence after which the stream says that it is still there."""
_EMPTY_STYLE = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
"""Digest of no text at all: plotly adds an empty style element and fills it rule by rule, which is no inline style. A
style of its maps, which no chart here uses, is refused, as a browser's console says."""
_HEADERS = {
    # A browser then refuses whatever a slip in handling text might let in, and everything from elsewhere.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; "
    f"style-src 'self' {_EMPTY_STYLE}; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Broadcast:
    """Looks at the folder and wakes the streams; each sends what it has not yet sent, so a slow one skips states."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._versions: dict[str, int] = {}
        self._changed = asyncio.Condition()

    async def watch(self) -> None:
        """Until canceled."""
        while True:
            try:
                changed = await asyncio.to_thread(self._reading.refresh)
            except ResultsError as error:  # damaged while it is shown
                changed = self._reading.broken(str(error))
            if changed:
                async with self._changed:
                    for name in changed:
                        self._versions[name] = self._versions.get(name, 0) + 1
                    self._changed.notify_all()
            await asyncio.sleep(PAUSE)

    async def news(self) -> AsyncIterator[dict[str, Any]]:
        """Parts by name, first all there are; empty after a while without any."""
        seen: dict[str, int] = {}
        while True:
            async with self._changed:
                with suppress(TimeoutError):
                    async with asyncio.timeout(HEARTBEAT):
                        while self._versions == seen:
                            await self._changed.wait()
                fresh = [name for name, version in self._versions.items() if seen.get(name) != version]
                seen = dict(self._versions)
            parts = self._reading.everything()
            yield {name: parts[name] for name in fresh}


_READING: web.AppKey[Reading] = web.AppKey("reading", Reading)
_BROADCAST: web.AppKey[Broadcast] = web.AppKey("broadcast", Broadcast)


def application(reading: Reading, token: str = "") -> web.Application:
    """The page of one run.

    Args:
        token: what a browser must show once, as ``?token=``; empty: only this machine's own names are answered, which
            keeps foreign pages from reaching it under a name of theirs.
    """
    app = web.Application(middlewares=[_guard(token)])
    app[_READING] = reading
    app.router.add_get("/", _index)
    app.router.add_get("/events", _events)
    app.router.add_get("/static/plotly.min.js", _plotly)
    app.router.add_static("/static", STATIC)
    app.cleanup_ctx.append(_watching)
    return app


def chart_library() -> Path:
    """The charts' JavaScript, in the installed package; found without importing that.

    Raises:
        ConfigError: the package is not installed.
    """
    package = find_spec("plotly")
    if package is None or not package.submodule_search_locations:
        raise ConfigError(
            f"the live page draws its charts with plotly, which {sys.executable} does not have. Install it: "
            "pip install -e . in raysim's folder"
        )
    return Path(package.submodule_search_locations[0]) / "package_data" / "plotly.min.js"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _guard(token: str) -> Any:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            host = request.url.host or ""
        except ValueError:  # a port beyond 65535, say
            raise web.HTTPBadRequest(text="The Host header names no address.\n") from None
        if token:
            given = request.query.get("token", "")
            if given and _same(given, token):
                # Out of the address at once: it would stay in the browser's history, and on the screen.
                answer = web.HTTPSeeOther("/")
                answer.set_cookie(_cookie(request), token, httponly=True, samesite="Strict")
                answer.headers.update(_HEADERS)
                raise answer
            if not _same(request.cookies.get(_cookie(request), ""), token):
                raise web.HTTPForbidden(text="Open the address that was printed at the start: it has the token.\n")
        elif not is_loopback(host.strip("[]")):
            raise web.HTTPForbidden(text="Open this page as http://127.0.0.1 or http://localhost.\n")
        response = await handler(request)
        if not response.prepared:
            for name, value in _HEADERS.items():
                response.headers.setdefault(name, value)
        return response

    return guard


def _cookie(request: web.Request) -> str:
    """Its name has the port in it: browsers share cookies among all ports, and a machine may serve several runs."""
    return f"raysim-ui-{request.url.port}"


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())


async def _watching(app: web.Application) -> AsyncIterator[None]:
    app[_BROADCAST] = Broadcast(app[_READING])
    task = asyncio.create_task(app[_BROADCAST].watch())
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def _index(request: web.Request) -> web.StreamResponse:
    return web.FileResponse(STATIC / "index.html")


async def _plotly(request: web.Request) -> web.StreamResponse:
    # The one large file: a browser keeps it and only asks whether it has changed.
    return web.FileResponse(chart_library(), headers={"Cache-Control": "no-cache"})


async def _events(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers=_HEADERS | {"Content-Type": "text/event-stream"})
    await response.prepare(request)
    with suppress(ConnectionResetError):  # the page was closed
        async for parts in request.app[_BROADCAST].news():
            text = "".join(f"event: {name}\ndata: {json.dumps(part)}\n\n" for name, part in parts.items())
            await response.write((text or ": still here\n\n").encode())
    return response
