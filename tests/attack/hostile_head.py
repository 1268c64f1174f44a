"""A Ray head that answers the first question and then lies, drops connections or says nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import grpc

from tests.attack.folders import Ending
from tests.attack.place import Attempt, Place
from tests.launched import ROOT
from tests.small_runs import ON_RAY, words

LIMIT, ENDING = 50, 10
"""Seconds of silence that a run allows by default, and from then to its end."""
FIRST = ("CheckAlive", "ClusterInfo")
"""What is asked of a head before it is joined; Ray's own client asks the second again."""


def _silent(random: Random, context: Any) -> bytes:
    closed = threading.Event()
    context.add_callback(closed.set)
    closed.wait(4 * (LIMIT + ENDING))
    return b""


def _noise(random: Random, context: Any) -> bytes:
    return random.randbytes(random.choice([1, 100, 100_000]))


def _empty(random: Random, context: Any) -> bytes:
    return b""


def _denied(random: Random, context: Any) -> bytes:
    context.abort(random.choice(list(grpc.StatusCode)[1:]), "no")
    raise AssertionError


LIES: Mapping[str, Callable[[Random, Any], bytes]] = {
    "silence": _silent,
    "noise": _noise,
    "empty answers": _empty,
    "errors": _denied,
}


class Head(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Takes every call of any name.

    Args:
        kind: the lie; "mixed": another one for every call.
    """

    def __init__(self, kind: str, random: Random) -> None:
        self.kind, self.random, self.asked = kind, random, list[str]()

    def service(self, details: Any) -> Any:
        self.asked.append(details.method)
        honest = details.method.endswith(FIRST) and len(self.asked) == 1
        lie = LIES[self.random.choice([*LIES]) if self.kind == "mixed" else self.kind]

        def answer(request: bytes, context: Any) -> bytes:
            return b"" if honest else lie(self.random, context)

        return grpc.unary_unary_rpc_method_handler(answer)


def hostile_head(place: Place, random: Random) -> Attempt:
    """A run joins such a head: it ends within a minute with one message, and leaves no folder."""
    kind, client = random.choice([*LIES, "mixed"]), random.random() < 0.3
    return joined(place, kind, client, random)


def joined(place: Place, kind: str, client: bool, random: Random, limit: int = LIMIT) -> Attempt:
    """One run that joins, as a node or by the client server, and waits at most ``limit`` seconds for an answer."""
    head, folder = Head(kind, random), place.new()
    server = grpc.server(ThreadPoolExecutor(64), handlers=[head])
    port = server.add_insecure_port("0.0.0.0:0")  # Ray asks this machine by its other address
    server.start()
    address = f"{'ray://' if client else ''}127.0.0.1:{port}"
    command = [sys.executable, "-m", "raysim.launch", *words(ON_RAY), f"--engine.address={address}"]
    command += [f"--engine.heartbeat_limit={limit}", f"--output={folder}"]
    process = subprocess.Popen(
        command,
        cwd=place.root,
        env={**os.environ, "PYTHONPATH": str(ROOT), "RAY_AUTH_TOKEN": "0" * 64},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 240  # a start on a busy machine
        while not head.asked and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        try:
            error, fault = process.communicate(timeout=limit + ENDING)[1], ""
        except subprocess.TimeoutExpired:
            process.kill()
            error, fault = process.communicate()[1], f"still there after {limit + ENDING} s"
    finally:
        server.stop(None)
    ending = Ending(process.returncode, error)
    if not fault:
        fault = "exit code 0" if ending.code == 0 else ending.fault()
    if not fault and folder.exists():
        fault = "a folder was left"
    asked = f"{len(head.asked)} questions, the last {head.asked[-1].rpartition('/')[2] if head.asked else 'none'}"
    return Attempt(f"{kind} at {address} ({asked})", fault, error)
