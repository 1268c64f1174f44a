"""Ray or the driver dies or freezes: the launching process says what is gone, ends with 1, and nothing stays behind."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from raysim.config.run_config import default_config
from tests.launched import ROOT, Launched
from tests.small_runs import ON_RAY, words

pytestmark = pytest.mark.slow
LIMIT = 8
ENDING = 10
"""Seconds from the limit to the end of the process and of all that is Ray's."""
long = pytest.mark.skipif("RAYSIM_LONG_TESTS" not in os.environ, reason="set RAYSIM_LONG_TESTS=1: each starts a Ray")
ENGINE = {"engine.checkpoint_every": 1, "engine.actors": 1, "engine.heartbeat_limit": LIMIT}
METHOD = {"method.name": "mine:Waiting", "method.gate": f"{ROOT}/never-there"}
RUN = words(ON_RAY | ENGINE | METHOD | {"schedule.rounds": 4, "output": "run"})


@pytest.fixture
def launched(tmp_path: Path) -> Iterator[Launched]:
    """A run whose third round never ends."""
    shutil.copy(ROOT / "tests" / "raysim" / "user_code.py", tmp_path / "mine.py")
    run = Launched(tmp_path, RUN)
    assert run.has_two_rounds(240), run.log.read_text()
    yield run
    assert run.end(), run.processes()


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
    before = time.monotonic()
    assert launched.signal(part, number), launched.processes()
    code = launched.process.wait(90)
    seconds = time.monotonic() - before
    *_, message, advice = launched.log.read_text().splitlines()
    assert code == 1, launched.log.read_text()
    assert message.startswith(f"raysim: {said}") and "Traceback" not in launched.log.read_text()
    assert advice == "Go on with: python -m raysim.launch --resume run --method mine:Waiting"
    assert launched.nothing_is_left(2), launched.processes()
    assert seconds < LIMIT + ENDING


def test_the_default_limit_ends_a_run_within_a_minute() -> None:
    assert default_config().engine.heartbeat_limit + ENDING <= 60
