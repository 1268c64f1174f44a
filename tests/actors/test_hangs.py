"""Ray or the driver dies or freezes: the launching process says what is gone, ends with 1, and nothing stays behind.

In virtual time, with clients' noise, compression and a rule.
"""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from raysim.config.run_config import default_config
from tests.attack.on_ray import gated
from tests.launched import ROOT, Launched
from tests.long_tests import long
from tests.small_runs import words

pytestmark = pytest.mark.slow
LIMIT = 8
ENDING = 10
"""Seconds from the limit to the end of the process and of all that is Ray's."""
ENGINE = {"engine.backend": "ray", "engine.checkpoint_every": 1, "engine.actors": 1, "engine.dashboard": False}
METHOD = {"method.name": "mine:Waiting", "method.gate": f"{ROOT}/never-there"}
KIND = gated()["local noise, top-k, a rule, in virtual time"]
RUN = words({**KIND, **ENGINE, **METHOD, "output": "run"})
FROZEN_NODE = ("raylet/raylet", signal.SIGSTOP, "Ray's node manager (raylet) is frozen")
FROZEN_STORE = ("gcs_server", signal.SIGSTOP, "Ray's control store (gcs_server) is frozen")
FROZEN_DRIVER = (":DriverActor", signal.SIGSTOP, "the driver (process")


@pytest.fixture
def launched(tmp_path: Path) -> Iterator[Launched]:
    """A run whose third round never ends."""
    with going(tmp_path, LIMIT) as run:
        yield run


@contextmanager
def going(folder: Path, limit: float) -> Iterator[Launched]:
    shutil.copy(ROOT / "tests" / "raysim" / "user_code.py", folder / "mine.py")
    run = Launched(folder, [*RUN, f"--engine.heartbeat_limit={limit}"])
    try:
        assert run.has_two_rounds(480), run.log.read_text()
        yield run
    finally:
        gone = run.end()
    assert gone, run.processes()


@pytest.mark.timeout(600)
def test_a_killed_launcher_leaves_nothing(launched: Launched) -> None:
    """And a round that lasts longer than the limit is no hang: until then the run goes on."""
    time.sleep(1.5 * LIMIT)
    assert launched.process.poll() is None, launched.log.read_text()
    launched.process.kill()
    launched.process.wait()
    assert launched.nothing_is_left(60), launched.processes()


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("part", "number", "said"),
    [
        ("Agent", signal.SIGKILL, "Ray's node manager (raylet) has died"),
        pytest.param(*FROZEN_DRIVER, marks=long),
        pytest.param("raylet/raylet", signal.SIGKILL, "Ray's node manager (raylet) has died", marks=long),
        pytest.param(*FROZEN_NODE, marks=long),
        pytest.param(*FROZEN_STORE, marks=long),
        pytest.param("gcs_server", signal.SIGKILL, "Ray's control store (gcs_server) has died", marks=long),
    ],
)
def test_what_is_gone_is_said(launched: Launched, part: str, number: signal.Signals, said: str) -> None:
    assert ended(launched, part, number, said) < LIMIT + ENDING


@long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("part", "number", "said"), [FROZEN_NODE, FROZEN_STORE, FROZEN_DRIVER])
def test_with_the_default_limit_it_ends_within_a_minute(
    tmp_path: Path, part: str, number: signal.Signals, said: str
) -> None:
    with going(tmp_path, default_config().engine.heartbeat_limit) as run:
        assert ended(run, part, number, said) < 60


def ended(run: Launched, part: str, number: signal.Signals, said: str) -> float:
    """Send the signal; seconds until the run has said so, with what to do next, and nothing of Ray is left."""
    before = time.monotonic()
    assert run.signal(part, number), run.processes()
    code = run.process.wait(90)
    seconds = time.monotonic() - before
    *_, message, advice = run.log.read_text().splitlines()
    assert code == 1, run.log.read_text()
    assert message.startswith(f"raysim: {said}") and "Traceback" not in run.log.read_text()
    assert advice == "Go on with: python -m raysim.launch --resume run --method mine:Waiting"
    assert run.nothing_is_left(30), run.processes()
    return seconds


def test_the_default_limit_leaves_time_to_end_within_a_minute() -> None:
    assert default_config().engine.heartbeat_limit + ENDING <= 60
