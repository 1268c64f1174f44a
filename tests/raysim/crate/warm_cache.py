"""Gives roc-validator the RO-Crate 1.1 context without a network: ``python warm_cache.py CACHE URL FILE``.

It runs with the Python of the validator's own environment.
"""

from __future__ import annotations

import sys
from pathlib import Path

from requests import Request
from requests_cache import CachedResponse, CachedSession


def main() -> None:
    cache, url, file = sys.argv[1:]
    session = CachedSession(cache, backend="sqlite", expire_after=-1)
    headers = {"Content-Type": "application/ld+json"}
    response = CachedResponse(status_code=200, url=url, headers=headers, content=Path(file).read_bytes())
    session.cache.save_response(response, session.cache.create_key(Request("GET", url)))


if __name__ == "__main__":
    main()
