"""A worker is forked where the fork server can do so, and is as one that Ray starts by itself."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from raysim.actors import fork_server, forked_worker
from raysim.actors.fork_server import SOCKET
from tests.processes import within

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux")

FACTS = """
import json, os, resource, signal, sys
mask = os.umask(0)
facts = {"arguments": sys.argv[1:], "name": __name__, "first_folder": sys.path[0], "path": sys.path[1:], "umask": mask}
facts |= {"folder": os.getcwd(), "group": os.getpgid(0) == os.getpid(), "session": os.getsid(0)}
facts |= {"environment": {name: value for name, value in os.environ.items() if name not in sys.argv}}
facts |= {"blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())), "niceness": os.nice(0)}
facts |= {"handlers": [str(signal.getsignal(number)).split(" at ")[0] for number in (1, 2, 15, 17)]}
facts |= {"files": resource.getrlimit(resource.RLIMIT_NOFILE), "open": sorted(map(int, os.listdir("/proc/self/fd")))}
facts |= {"score": open("/proc/self/oom_score_adj").read(), "flags": list(sys.flags)}
print(json.dumps({"numpy": "numpy" in sys.modules, **facts}), flush=True)
"""


class Served:
    """A fork server alone, without Ray, and programs of workers that ask it."""

    def __init__(self, folder: Path, before: str = "pass") -> None:
        self.program, self.name = folder / "a_worker.py", f"test-{os.getpid()}-{folder.name}"
        self.program.write_text(FACTS, encoding="utf-8")
        left_out = {*fork_server.THREADS}
        self.own = {name: value for name, value in os.environ.items() if name not in left_out}
        self.own[SOCKET] = self.name
        code = f"from raysim.actors import fork_server; {before}; fork_server.main()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, "threadpoolctl,numpy", *sys.path],
            stdin=subprocess.PIPE,
            env={**fork_server.ENVIRONMENT, **self.own},
            process_group=0,
        )
        assert within(120, self._listens)

    def _listens(self) -> bool:
        return f"@{self.name}\n" in Path("/proc/net/unix").read_text()

    def asked(self, *arguments: str, python: Sequence[str] = (), before: Any = None, **environment: str) -> Any:
        """The facts of a worker that is started as Ray's node manager does, with arguments and an environment."""
        started = subprocess.run(
            [sys.executable, *python, forked_worker.__file__, *arguments],
            env={**self.own, fork_server.WORKER: str(self.program), **environment},
            capture_output=True,
            timeout=300,
            check=True,
            preexec_fn=before,
            start_new_session=False,
        )
        return json.loads(started.stdout)

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(120) == 0


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    server = Served(tmp_path_factory.mktemp("served"))
    yield server
    server.end()


def test_a_forked_worker_is_as_one_that_starts_by_itself(served: Served) -> None:
    def before() -> None:
        os.setpgid(0, 0)
        os.umask(0o027)
        os.nice(3)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        Path("/proc/self/oom_score_adj").write_text("500")
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

    forked = served.asked("--worker-id=7", before=before)
    alone = served.asked("--worker-id=7", before=before, **{SOCKET: "no-server-here"})
    assert (forked.pop("numpy"), alone.pop("numpy")) == (True, False)
    for facts in (forked, alone):
        facts["environment"].pop(SOCKET)
    assert forked == alone
    assert forked["umask"] == 0o027 and forked["score"] == "500\n" and forked["blocked"] == [signal.SIGINT]


def test_files_are_closed_whatever_is_sent(served: Served) -> None:
    served.asked()
    before = set(Path(f"/proc/{served.process.pid}/fd").iterdir())
    for length, files in ((b"\x09" * 8, [0, 1, 2]), (bytes(7) + b"\x02", [0, 1]), (bytes(7) + b"\x02", [0, 1, 2])):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(f"\0{served.name}")
            socket.send_fds(client, [length], files)
            client.sendall(b"{}")
    assert served.asked()["numpy"]
    # Its connection with a worker may be open a moment longer than the worker is at work.
    assert within(60, lambda: before.issuperset(Path(f"/proc/{served.process.pid}/fd").iterdir()))


@pytest.mark.parametrize(
    ("environment", "python"),
    [({"SPECIAL": "1"}, []), ({"OMP_NUM_THREADS": "4"}, []), ({}, ["-O"])],
    ids=["environment", "threads", "flags"],
)
def test_a_worker_that_would_import_something_else_is_not_forked(
    served: Served, environment: dict[str, str], python: list[str]
) -> None:
    facts = served.asked(python=python, **environment)
    assert not facts["numpy"]
    assert environment.items() <= facts["environment"].items() and facts["flags"][3] == len(python)


def test_a_worker_is_forked_whatever_a_ray_before_has_set(served: Served) -> None:
    """Ray sets Python's debugger in a process that it connects; a Ray that is started there later hands it on."""
    facts = served.asked(PYTHONBREAKPOINT="ray.util.rpdb.set_trace")
    assert facts["numpy"] and facts["environment"]["PYTHONBREAKPOINT"] == "ray.util.rpdb.set_trace"


@pytest.mark.parametrize(
    "defect",
    [
        "fork_server.os.geteuid = lambda: 12345",
        "fork_server.can_fork = lambda: False",
        "fork_server.os.setpgid = lambda *_: 1 / 0",
    ],
    ids=["another user", "threads", "an error behind the fork"],
)
def test_a_worker_that_the_server_does_not_serve_becomes_ray_s_own(tmp_path: Path, defect: str) -> None:
    server = Served(tmp_path, defect)
    try:
        assert not server.asked()["numpy"]
    finally:
        server.end()


def test_a_name_that_another_user_has_taken_is_not_trusted(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SOCKET, served.name)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert not forked_worker.is_forked("a_program_that_is_never_run.py")


def test_without_a_server_no_worker_is_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SOCKET, "no-server-here")
    assert not forked_worker.is_forked("ray.py")
