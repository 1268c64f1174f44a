"""The program of a worker where a fork server runs: it has the server fork one, or becomes Ray's worker itself.

Ray's node manager starts it in the place of its own. It imports nothing of raysim's, so that it is up at once.
"""

import json
import os
import resource
import socket
import sys
from contextlib import suppress
from pathlib import Path

SECONDS = 40.0
"""Longest wait for the server, which may still import torch; Ray gives a worker sixty."""


def is_forked(program: str) -> bool:
    """Whether the server has started a worker with this process's properties and arguments."""
    worker = {
        "arguments": [program, *sys.argv[1:]],
        "environment": dict(os.environ),
        "folder": str(Path.cwd()),
        "niceness": os.nice(0),
        "open_files": resource.getrlimit(resource.RLIMIT_NOFILE),
        "out_of_memory_score": Path("/proc/self/oom_score_adj").read_text(),
    }
    message = json.dumps(worker).encode()
    with suppress(OSError), socket.socket(socket.AF_UNIX) as server:
        server.settimeout(SECONDS)
        server.connect(f"\0{os.environ['RAYSIM_FORK_SERVER']}")
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
