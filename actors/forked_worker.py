"""The program of a worker where a fork server runs: it has the server fork one, or becomes Ray's worker itself.

Ray's node manager starts it in the place of its own. It imports nothing of raysim's, so that it is up at once.
"""

import json
import os
import resource
import signal
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path

SECONDS = 40.0
"""Longest wait for the server, which may still import torch; Ray gives a worker sixty."""


def properties(program: str) -> dict[str, object]:
    """The properties of this process that a worker has from Ray's node manager."""
    mask = os.umask(0)
    os.umask(mask)
    return {
        "arguments": [program, *sys.argv[1:]],
        "blocked_signals": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "environment": dict(os.environ),
        "folder": str(Path.cwd()),
        "ignored_signals": [
            number for number in (signal.SIGINT, signal.SIGHUP) if signal.getsignal(number) == signal.SIG_IGN
        ],
        "niceness": os.nice(0),
        "open_files": resource.getrlimit(resource.RLIMIT_NOFILE),
        "out_of_memory_score": Path("/proc/self/oom_score_adj").read_text(),
        "python": [sys.executable, *sys.flags],
        "umask": mask,
    }


def is_forked(program: str) -> bool:
    """Whether the server has started a worker with this process's properties and arguments."""
    with suppress(OSError), socket.socket(socket.AF_UNIX) as server:
        message = json.dumps(properties(program)).encode()
        server.settimeout(SECONDS)
        server.connect(f"\0{os.environ['RAYSIM_FORK_SERVER']}")
        peer = server.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        if struct.unpack("3i", peer)[1] != os.geteuid():  # the server is gone, and another user has taken its name
            return False
        socket.send_fds(server, [len(message).to_bytes(8, "big")], [0, 1, 2])
        server.sendall(message)
        return bool(server.recv(1))
    return False


def main() -> None:
    """Hand over to the server, or go on as Ray's own program."""
    program = os.environ["RAYSIM_RAY_WORKER"]
    if not is_forked(program):
        flags = sys.orig_argv[1 : -len(sys.argv)]
        os.execv(sys.executable, [sys.executable, *flags, program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
