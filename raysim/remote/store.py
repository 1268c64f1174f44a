"""Objects of a remote folder: put, get, list and remove, each with a time limit.

pyarrow, which a run needs anyway, speaks to S3 and Google Cloud Storage itself; every other scheme is fsspec's.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from raysim.errors import RaysimError, ResultsError, reason_of
from raysim.remote.address import checked
from raysim.units import byte_count

T = TypeVar("T")
_SERVER = re.compile(r"(https?)://([^/?#\s]+)/?", re.IGNORECASE)


@dataclass
class Patience:
    """Time limits, all in seconds."""

    connect: float = 10.0
    """Until a connection is there."""
    call: float = 60.0
    """One call: an object is put or got, names are listed."""
    first_pause: float = 1.0
    """After a first failure; it doubles with each one that follows."""
    longest_pause: float = 60.0
    at_end: float = 120.0
    """Without getting on, at the end of a run or in reading one."""


PATIENCE = Patience()


class UnreachableError(RaysimError):
    """The remote side did not answer in time, or with an error: another time it may."""


class Store:
    """The objects of one remote folder, by their names below it.

    Args:
        address: ``s3://bucket/run`` say; credentials, region and endpoint come from the environment
            (``AWS_ACCESS_KEY_ID``, ``AWS_REGION``, ``AWS_ENDPOINT_URL``, …) and the files of the cloud's own tools.

    Raises:
        ResultsError: the address is none, or nothing is installed that knows its scheme.
        UnreachableError: what makes a connection fails.
    """

    def __init__(self, address: str) -> None:
        self.address = checked(address)
        self._is_object_store = address.partition("://")[0] in ("s3", "gs", "gcs")
        """Folders are but beginnings of names, and need not be made."""
        self.sent = 0.0
        """When an object was last written, by the monotonic clock; 0: none was."""
        self._files, self._root = self._within("connecting", self._opened)

    def put(self, name: str, data: bytes) -> None:
        """Write an object; S3 and Google Cloud Storage show it whole or not at all."""

        def write() -> None:
            path = f"{self._root}/{name}"
            if not self._is_object_store:
                self._files.create_dir(path.rpartition("/")[0], recursive=True)
            with self._files.open_output_stream(path) as stream:
                stream.write(data)

        self._within(f"writing {name}", write)
        self.sent = time.monotonic()

    def get(self, name: str, limit: int) -> bytes:
        """The content of an object.

        Raises:
            FileNotFoundError: there is none.
            ResultsError: it is larger than ``limit`` bytes.
        """

        def read() -> bytes:
            with self._files.open_input_stream(f"{self._root}/{name}") as stream:
                return bytes(stream.read(limit + 1))

        found = self._within(f"reading {name}", read)
        if len(found) > limit:
            raise ResultsError(f"{self.address}/{name} is larger than {byte_count(limit)}: no run has written it.")
        return found

    def names(self, folder: str) -> dict[str, int]:
        """Bytes of each object in a folder, by its name there."""
        from pyarrow.fs import FileSelector, FileType, PyFileSystem

        def listed() -> dict[str, int]:
            if isinstance(self._files, PyFileSystem):  # fsspec's ftp, say, answers from what it has listed before
                self._files.handler.fs.invalidate_cache()
            found = self._files.get_file_info(FileSelector(f"{self._root}/{folder}", allow_not_found=True))
            return {str(entry.base_name): int(entry.size) for entry in found if entry.type == FileType.File}

        return self._within(f"listing {folder}", listed)

    def remove(self, name: str) -> None:
        """Remove an object, if it is there."""

        def delete() -> None:
            try:
                self._files.delete_file(f"{self._root}/{name}")
            except FileNotFoundError:
                return

        self._within(f"removing {name}", delete)

    def _within(self, what: str, action: Callable[[], T]) -> T:
        """The action's result, waited for no longer than a call may take: a library's own limits may not hold."""
        results: list[T] = []
        errors: list[Exception] = []

        def work() -> None:
            try:
                results.append(action())
            except Exception as error:  # of whatever library the scheme needs
                errors.append(error)

        thread = threading.Thread(target=work, name=f"{what} at {self.address}", daemon=True)
        thread.start()
        thread.join(PATIENCE.call)
        if results:
            return results[0]
        if errors and isinstance(errors[0], FileNotFoundError | RaysimError):
            raise errors[0]
        reason = reason_of(errors[0]) if errors else f"no answer within {PATIENCE.call:g} s"
        raise UnreachableError(f"{self.address}: {what}: {reason}") from (errors[0] if errors else None)

    def _opened(self) -> tuple[Any, str]:
        """pyarrow's file system of the scheme, and the folder's path in it."""
        from pyarrow import fs

        scheme, _, path = self.address.partition("://")
        if scheme in ("gs", "gcs"):
            return fs.GcsFileSystem(retry_time_limit=timedelta(seconds=PATIENCE.connect)), path
        if scheme == "s3":
            return _s3(path.partition("/")[0]), path
        import fsspec

        try:
            files, path = fsspec.core.url_to_fs(self.address)
        except (ImportError, ValueError) as error:
            raise ResultsError(
                f"{self.address}: {reason_of(error)}. s3:// and gs:// need no further package; others need fsspec's."
            ) from error
        return fs.PyFileSystem(fs.FSSpecHandler(files)), path


def _s3(bucket: str) -> Any:
    from pyarrow import fs

    scheme, host = _endpoint()
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not region and not host:
        region = fs.resolve_s3_region(bucket)
    return fs.S3FileSystem(
        region=region,
        endpoint_override=host,
        scheme=scheme,
        connect_timeout=PATIENCE.connect,
        request_timeout=PATIENCE.call,
        background_writes=False,
        allow_delayed_open=True,  # a block is one request, of which nothing is left where it is cut off
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=2),
    )


def _endpoint() -> tuple[str, str] | tuple[None, None]:
    """Scheme and host of the S3 server that the environment names; None: Amazon's."""
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
        if not (text := os.environ.get(name)):
            continue
        found = _SERVER.fullmatch(text)
        if not found:
            raise ResultsError(
                f"{name} is {text!r}. Allowed: http:// or https:// and a host, perhaps with a port, without a path: "
                "http://localhost:9000 say. Set it so, or unset it for Amazon S3."
            )
        return found[1].lower(), found[2]
    return None, None
