"""A process that has imported torch, from which Ray's workers are forked: they share its memory and start at once.

Each process that imports torch for itself takes a second and 300 MB of its own. Where Ray would start a worker here, it
starts forked_worker.py, which has the fork server fork one; where the server cannot, it becomes Ray's worker itself.

Ray itself is not imported before the fork, since its C++ library reads a worker's environment when it is loaded.

Also the program of the server. A worker that is forked off leaves ``main``, and then runs Ray's own program.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import resource
import runpy
import secrets
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

SOCKET = "RAYSIM_FORK_SERVER"
"""Environment variable: the name of the server's socket; 0 in the launching process: no server is wanted."""
WORKER = "RAYSIM_RAY_WORKER"
"""Environment variable: path of Ray's own program for a worker."""
MODULES = ("threadpoolctl", "torch", "raysim.client_side.train_chunk", "raysim.driver.drive")
"""Modules that a driver and the first task of a client actor need."""
OF_RAY = ("filelock", "google.protobuf.descriptor_pb2", "jsonschema", "requests", "yaml")
"""Modules that Ray imports in every worker; one that is missing is left out."""
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""Environment variables of the server, so that no library starts a thread when it is loaded.

Ray's workers take one thread of OpenMP unless more are asked for.
"""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables of numbers of threads."""
SET_LATER = ("KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK", "PYTHONBREAKPOINT", "SPT_NOENV")
"""Environment variables that torch or Ray sets in a process that uses them."""
MAY_DIFFER = frozenset({*ENVIRONMENT, *SET_LATER, SOCKET, WORKER})
"""Environment variables, beside Ray's own, in which a worker and the server may differ.

A worker that asks for several threads of OpenMP is refused all the same.
"""
GPUS = ("/dev/nvidia", "/dev/kfd")
"""Beginnings of the device files of GPUs."""
HANDLERS: Mapping[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
"""Python's handlers of the signals that the server ignores."""
FORKED = b"1"
SECONDS = 10.0
"""Longest wait for what a worker says of itself."""


def libraries_of_given() -> tuple[str, ...]:
    """Modules by which Ray's processes import the large libraries that this program has: its network may need them.

    They leave torch's compiler out, a second of PyTorch Geometric's import.
    """
    return ("raysim.workloads._torch_geometric",) if "torch_geometric" in sys.modules else ()


class ForkServer:
    """The server of a Ray that this process starts; it ends with this process, or before.

    Args:
        libraries: modules that are imported for workers beside those of every run.
    """

    def __init__(self, libraries: Sequence[str] = ()) -> None:
        self._modules = (*MODULES, *libraries)
        self._name = secrets.token_hex(16)
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = False
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start the server: it imports beside this process.

        Nothing happens where the system has no such sockets, where libraries are asked for more than one thread (they
        start them when they are loaded), or where no server is wanted.
        """
        several = any(os.environ.get(name, "1") != "1" for name in THREADS)
        if sys.platform != "linux" or several or os.environ.get(SOCKET) == "0":
            return
        with self._lock, suppress(OSError):
            if not self._ended:
                self._process = subprocess.Popen(
                    [sys.executable, *site_flags(), __file__, ",".join(self._modules), *sys.path],
                    stdin=subprocess.PIPE,  # which ends with this process
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,  # a worker that imports for itself says what fails
                    env={**ENVIRONMENT, **os.environ, SOCKET: self._name},
                    process_group=0,  # what ends the terminal's processes must not end it
                )

    @contextmanager
    def serving(self) -> Iterator[None]:
        """A Ray that is started within this context has its workers forked from the server, if that was started."""
        if self._process is None:
            yield
            return
        import ray
        from ray._private import parameter  # the one place where the program of workers can be set

        given = parameter.RayParams
        os.environ[SOCKET] = self._name
        os.environ[WORKER] = str(Path(ray.__file__).parent / "_private" / "workers" / "default_worker.py")
        program = str(Path(__file__).with_name("forked_worker.py"))
        setattr(parameter, "RayParams", partial(given, worker_path=program))  # noqa: B010 - a class, for mypy
        try:
            yield
        finally:
            setattr(parameter, "RayParams", given)  # noqa: B010
            del os.environ[SOCKET], os.environ[WORKER]

    def end(self) -> None:
        """End the server for good; workers that were forked from it go on."""
        with self._lock:
            self._ended = True
            if self._process is not None:
                self._process.kill()
                self._process.communicate()
                self._process = None


def site_flags() -> list[str]:
    """Flags of this interpreter that Ray hands on to its workers."""
    return ["-S"] * bool(sys.flags.no_site) + ["-s"] * bool(sys.flags.no_user_site)


def peer_is_this_user(connection: socket.socket) -> bool:
    """Whether the process at the other end is this user's: sockets without a file are open to everybody."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    user: int = struct.unpack("3i", found)[1]
    return user == os.geteuid()


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Receive a worker's properties and its three standard files, as forked_worker.py sends them.

    Raises:
        ValueError: something else was sent, or less. No file stays open.
    """
    length, files, _, _ = socket.recv_fds(connection, 8, 3)
    try:
        received = b""
        while len(received) < int.from_bytes(length, "big") and (part := connection.recv(1 << 16)):
            received += part
        if len(files) != 3:
            raise ValueError(f"{len(files)} files in the place of 3")
        return json.loads(received), files
    except BaseException:
        close(files)
        raise


def close(files: Iterable[int]) -> None:
    """Close files by their numbers."""
    for file in files:
        os.close(file)


def is_alike(worker: Mapping[str, Any], own: Mapping[str, str]) -> bool:
    """Whether a worker would import the same as this process did: the same Python, and the same environment."""
    environment = worker["environment"]
    names = {name for name in {*environment, *own} if not name.startswith("RAY_")} - MAY_DIFFER
    return (
        worker["python"] == [sys.executable, *sys.flags]
        and environment.get("OMP_NUM_THREADS", "1") == "1"
        and all(environment.get(name) == own.get(name) for name in names)
    )


def can_fork() -> bool:
    """Whether a fork of this process is whole: it has one thread, and no GPU, which works in one process alone."""
    if len(list(Path("/proc/self/task").iterdir())) > 1:
        return False
    return not any(str(file.resolve()).startswith(GPUS) for file in Path("/proc/self/fd").iterdir())


def become(worker: Mapping[str, Any], files: Collection[int]) -> None:
    """Take over a worker's properties, in a process that has just been forked."""
    os.setpgid(0, 0)  # Ray ends a worker's whole group of processes
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number in HANDLERS:
        signal.signal(number, signal.SIG_IGN if number in worker["ignored_signals"] else HANDLERS[number])
    signal.pthread_sigmask(signal.SIG_SETMASK, worker["blocked_signals"])
    for number, file in enumerate(files):
        os.dup2(file, number)
    close(files)
    os.environ.clear()
    os.environ.update(worker["environment"])
    os.chdir(worker["folder"])
    os.umask(worker["umask"])
    os.nice(worker["niceness"] - os.nice(0))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(worker["out_of_memory_score"])
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, tuple(worker["open_files"]))
    sys.argv = worker["arguments"]
    sys.modules["numpy"].random.seed()  # Python's own generator begins anew by itself
    gc.enable()


def serve(listener: socket.socket) -> bool:
    """Fork a worker for each that asks, until the launching process is gone. True in a worker, False at the end."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system takes away workers that have ended
    own = dict(os.environ)
    while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
        connection, _ = listener.accept()
        with connection, suppress(OSError, ValueError, KeyError):
            connection.settimeout(SECONDS)
            if not peer_is_this_user(connection):
                continue
            worker, files = receive(connection)
            try:
                forked = can_fork() and is_alike(worker, own) and os.fork() == 0
            except BaseException:
                close(files)
                raise
            if forked:
                try:
                    listener.close()
                    become(worker, files)
                    connection.sendall(FORKED)
                except BaseException:
                    os._exit(1)  # who asks is told nothing, and becomes the worker itself
                return True
            close(files)
    return False


def main() -> None:
    """Import, serve, and in each worker that is forked off run Ray's program."""
    for number in HANDLERS:  # it ends with the launching process
        signal.signal(number, signal.SIG_IGN)
    modules, path = sys.argv[1].split(","), sys.argv[2:]
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"\0{os.environ[SOCKET]}")
    listener.listen(1024)
    gc.disable()  # until all is imported: nothing of it is garbage
    own = list(sys.path)
    sys.path[:] = path
    for module in OF_RAY:
        with suppress(ImportError):
            importlib.import_module(module)
    for module in modules:
        importlib.import_module(module)
    gc.freeze()  # what the collector touches is a worker's own memory
    if serve(listener):
        if not sys.flags.safe_path:  # Python begins with the folder of the program that it runs
            own[0] = str(Path(sys.argv[0]).parent)
        sys.path[:] = own
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
