"""Ray or the driver dies or freezes: the launching process says what is gone, ends with 1, and nothing stays behind."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from actors.own_ray import MARK
from tests.processes import within
from tests.small_runs import ON_RAY, words

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
LIMIT = 8
long = pytest.mark.skipif("RAYSIM_LONG_TESTS" not in os.environ, reason="set RAYSIM_LONG_TESTS=1: each starts a Ray")
ENGINE = {"engine.checkpoint_every": 1, "engine.actors": 1, "engine.heartbeat_limit": LIMIT}
METHOD = {"method.name": "mine:Waiting", "method.gate": f"{ROOT}/never-there"}
RUN = words(ON_RAY | ENGINE | METHOD | {"schedule.rounds": 4, "output": "run"})


class Launched:
    """A run on a Ray of its own, whose third round never ends."""

    def __init__(self, folder: Path) -> None:
        shutil.copy(ROOT / "tests" / "raysim" / "user_code.py", folder / "mine.py")
        self.log = folder / "said.txt"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "raysim.launch", *RUN],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": f"{ROOT}:{folder}"},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        within(240, lambda: "round 2/4" in self.log.read_text() or self.process.poll() is not None)
        assert "round 2/4" in self.log.read_text(), self.log.read_text()

    def processes(self) -> dict[int, str]:
        """All that Ray runs for it: by its mark, or a file of its session."""
        mark, session = f"{MARK}={self.process.pid}.", re.compile(rf"/session_[\d_-]+_{self.process.pid}/")
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                files = [str(file.readlink()) for file in (entry / "fd").iterdir()]
                if mark.encode() in (entry / "environ").read_bytes() or any(map(session.search, files)):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
        found.pop(self.process.pid, None)
        return found

    def signal(self, part: str, number: signal.Signals) -> None:
        found = [process for process, line in self.processes().items() if part in line.split(" --")[0]]
        assert found, self.processes()
        for process in found:
            with suppress(ProcessLookupError):  # ended by itself meanwhile
                os.kill(process, number)

    def nothing_is_left(self, seconds: float) -> bool:
        return within(seconds, lambda: not self.processes(), pause=0.1)


@pytest.fixture
def launched(tmp_path: Path) -> Iterator[Launched]:
    run = Launched(tmp_path)
    yield run
    run.process.kill()
    run.process.wait()
    assert run.nothing_is_left(30), run.processes()


@pytest.mark.timeout(600)
def test_a_killed_launcher_leaves_nothing(launched: Launched) -> None:
    """And a round that lasts longer than the limit is no hang: until then the run goes on."""
    time.sleep(1.5 * LIMIT)
    assert launched.process.poll() is None, launched.log.read_text()
    launched.process.kill()
    launched.process.wait()
    assert launched.nothing_is_left(10), launched.processes()


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("part", "number", "said"),
    [
        ("Agent", signal.SIGKILL, "Ray's node manager (raylet) has died"),
        (":DriverActor", signal.SIGSTOP, "the driver (process"),
        pytest.param("raylet/raylet", signal.SIGKILL, "Ray's node manager (raylet) has died", marks=long),
        pytest.param("raylet/raylet", signal.SIGSTOP, "Ray's node manager (raylet) is frozen", marks=long),
        pytest.param("gcs_server", signal.SIGSTOP, "Ray's control store (gcs_server) is frozen", marks=long),
        pytest.param("gcs_server", signal.SIGKILL, "Ray's control store (gcs_server) has died", marks=long),
    ],
)
def test_what_is_gone_is_said(launched: Launched, part: str, number: signal.Signals, said: str) -> None:
    launched.signal(part, number)
    code = launched.process.wait(90)
    *_, message, advice = launched.log.read_text().splitlines()
    assert code == 1, launched.log.read_text()
    assert message.startswith(f"raysim: {said}") and "Traceback" not in launched.log.read_text()
    assert advice == "Go on with: python -m raysim.launch --resume run --method mine:Waiting"
    assert launched.nothing_is_left(2), launched.processes()
