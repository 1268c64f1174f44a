"""Serves the page: static files, and the parts of the run that have changed since the page asked last.

aiohttp, because Ray's own dashboard is built on it: no package more than a run needs anyway.
"""

from __future__ import annotations

import asyncio
import functools
import hmac
import ipaddress
import re
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from aiohttp import web

from raysim.errors import ConfigError, ResultsError
from raysim.report.html import style
from raysim.ui.reading import Reading

STATIC = Path(__file__).parent / "static"
PAUSE = 0.5
"""Seconds between two looks at the run's folder."""
STEP = 0.1
"""Seconds after which a question that waits for new parts looks for some again."""
LONGEST = 10.0
"""Seconds after which a question is answered where nothing is new, so that the page knows that the server is there."""
_EMPTY_STYLE = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
"""Digest of no text at all: plotly adds an empty style element and fills it rule by rule, which is no inline style."""
_STYLE_NAME = re.compile(rb'getElementById\("([0-9a-f]{64})"\)')
"""Where plotly looks whether the page already has the style of its maps, which no chart here uses."""
_HEADERS = {
    # A browser then refuses whatever a slip in handling text might let in, and everything from elsewhere.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; "
    f"style-src 'self' {_EMPTY_STYLE}; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


_READING: web.AppKey[Reading] = web.AppKey("reading", Reading)


def application(reading: Reading, token: str = "") -> web.Application:
    """The page of one run.

    Args:
        token: what a browser must show once, as ``?token=``; empty: only this machine's own names are answered, which
            keeps foreign pages from reaching it under a name of theirs.
    """
    app = web.Application(middlewares=[_guard(token)])
    app[_READING] = reading
    app.router.add_get("/", _index)
    app.router.add_get("/parts", _parts)
    app.router.add_get("/static/plotly.min.js", _plotly)
    app.router.add_get("/static/style.css", _style)
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
    task = asyncio.create_task(_watch(app[_READING]))
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def _watch(reading: Reading) -> None:
    while True:
        try:
            await asyncio.to_thread(reading.refresh)
        except ResultsError as error:  # damaged while it is shown
            reading.broken(str(error))
        except Exception as error:  # of a shared folder that is away for a while, say: the next look may succeed
            reading.broken(f"The run's folder could not be read: {type(error).__name__}: {error}")
        await asyncio.sleep(PAUSE)


async def _index(request: web.Request) -> web.StreamResponse:
    reading = request.app[_READING]
    if not reading.parts:
        await asyncio.to_thread(reading.refresh)
    page = await asyncio.to_thread(reading.page)
    return web.Response(text=page.replace("</head>", f"{_places_of_styles()}</head>", 1), content_type="text/html")


async def _style(request: web.Request) -> web.StreamResponse:
    return web.Response(text=style(), content_type="text/css")


@functools.cache
def _places_of_styles() -> str:
    """Empty elements under the names of plotly's inline styles: it adds none then, which the policy would refuse."""
    names = dict.fromkeys(_STYLE_NAME.findall(chart_library().read_bytes()))
    return "".join(f'<template id="{name.decode()}"></template>' for name in names)


async def _plotly(request: web.Request) -> web.StreamResponse:
    # The one large file: a browser keeps it and only asks whether it has changed.
    return web.FileResponse(chart_library(), headers={"Cache-Control": "no-cache"})


async def _parts(request: web.Request) -> web.StreamResponse:
    """Send the parts that changed after the look at the folder that the page has drawn, as soon as there are some.

    The page asks, and is not told by itself: one that draws slowly then skips states, where a stream of them would hold
    up each one until all before it are drawn.
    """
    reading = request.app[_READING]
    try:
        after = int(request.query.get("after", "0"))
    except ValueError:
        raise web.HTTPBadRequest(text="after is the number of a look, which the last answer has.\n") from None
    until = time.monotonic() + LONGEST
    while (answer := reading.newer(after))["look"] == after and time.monotonic() < until:
        await asyncio.sleep(STEP)
    return web.json_response(answer)
