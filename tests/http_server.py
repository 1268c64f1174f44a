"""A web server of files on this machine, for downloads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Serves a folder, which is made if absent: its address, without a slash at the end, and the requests so far."""
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *arguments: Any) -> None:
            asked.append(f"{self.command} {self.path}")

    folder.mkdir(exist_ok=True)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as listening:
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_port}", asked
        finally:
            listening.shutdown()
            thread.join()
