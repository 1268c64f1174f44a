"""Between a run and the head of a sound Ray: from some byte of the answers on they are dropped, cut off or changed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from random import Random
from types import TracebackType

import ray

from raysim.actors.start_retry import patiently
from raysim.errors import FINISHED
from raysim.running.simulation import run
from tests.attack.folders import Ending, launch
from tests.attack.place import Attempt, Place
from tests.fingerprint import fingerprint
from tests.launched import ROOT
from tests.processes import within
from tests.small_runs import IN_PROCESS, LOGISTIC, ON_RAY, small_run, words

LIMIT, ENDING, START = 12, 15, 240
"""Seconds: the limit of silence, from then to the end of the run, and what a run may take until its first false
answer."""
SOUND = 500
"""Bytes of the answers before which a run would not even begin to join."""
ALL = 7000
"""About as many bytes as a head sends until the first round."""
LIES = ("silence", "cut off", "noise", "a bit of each answer changed")
RUN = {"schedule.rounds": 6, "engine.actors": 1, "engine.cpus_per_client": 0.5, "engine.heartbeat_limit": LIMIT}


class Relay:
    """Listens on a port of its own, and passes on what comes to a head, and what the head answers.

    Args:
        address: of the head.
        honest: number of bytes of the answers that are passed on as they are.
        lie: one of ``LIES``.
    """

    def __init__(self, address: str, honest: int, lie: str, random: Random) -> None:
        host, _, port = address.rpartition(":")
        self._head, self._honest, self._lie, self._random = (host, int(port)), honest, lie, random
        self._answered = 0
        self._sockets: list[socket.socket] = []
        self._server = socket.create_server(("0.0.0.0", 0))  # Ray asks this machine by its other address
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self.lied = 0.0
        """When the first false answer was given; 0: none was."""

    def __enter__(self) -> Relay:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for each in (self._server, *self._sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client = self._server.accept()[0]
                head = socket.create_connection(self._head)
                self._sockets += [client, head]
                for ends in ((client, head), (head, client)):
                    threading.Thread(target=self._pass_on, args=(*ends, head), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, head: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(self._told(data) if source is head else data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _told(self, data: bytes) -> bytes:
        """The bytes in the place of an answer of the head's."""
        self._answered += len(data)
        if self._answered <= self._honest:
            return data
        self.lied = self.lied or time.monotonic()
        if self._lie == "silence":
            return b""
        if self._lie == "cut off":
            raise OSError
        if self._lie == "noise":
            return self._random.randbytes(len(data))
        changed = bytearray(data)
        changed[self._random.randrange(len(data))] ^= 1 << self._random.randrange(8)
        return bytes(changed)


def turning_head(place: Place, random: Random) -> Attempt:
    """A run joins a head that is honest at first: it has the undisturbed run's bits, or ends soon with one message.

    What has begun is then resumed in this process, with the same bits.
    """
    return turned(place, random.choice(LIES), random.randint(SOUND, ALL), random)


def turned(place: Place, lie: str, honest: int, random: Random) -> Attempt:
    """One run that joins the Ray of this process through such a relay."""
    if not ray.is_initialized():
        patiently(partial(ray.init, "local", num_cpus=2, include_dashboard=False, log_to_driver=False))
    folder = place.new()
    with Relay(ray.get_runtime_context().gcs_address, honest, lie, random) as relay:
        with _joining(place, [f"--engine.address={relay.address}", f"--output={folder}"]) as process:
            within(START, lambda: relay.lied or process.poll() is not None, pause=0.1)
            late = ""
            try:
                error = process.communicate(
                    timeout=(relay.lied or time.monotonic()) + LIMIT + ENDING - time.monotonic()
                )[1]
            except subprocess.TimeoutExpired:
                process.kill()
                error, late = process.communicate()[1], f"still there {LIMIT + ENDING} s after the first false answer"
        lied = bool(relay.lied)
    ending = Ending(process.returncode, error)
    fault = late or ending.fault()
    if not fault and ending.code != FINISHED and folder.exists():
        again = launch(["--resume", str(folder), "--engine.backend=inline", "--engine.address=local"])
        error += again.error
        fault = again.fault() or ("it cannot be resumed" if again.code else "")
    whole = run(small_run(place.new(), IN_PROCESS | LOGISTIC | {"schedule.rounds": RUN["schedule.rounds"]})).folder
    if not fault and folder.exists() and fingerprint(folder) != fingerprint(whole):
        fault = "another result"
    if not fault:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(whole)
    return Attempt(f"{lie} from byte {honest} on", fault, error, made=lied)


@contextmanager
def _joining(place: Place, options: list[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "raysim.launch", *words({**ON_RAY, **RUN}), *options],
        cwd=place.root,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
