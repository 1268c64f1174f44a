"""Runs in the background, as real processes: they outlive what launched them, and are found, followed and stopped."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from raysim import sitting, status
from raysim.launch import main
from raysim.results import load_result
from tests.fingerprint import fingerprint

SMALL = (
    "--method=fedavg",
    "--model=logistic",
    "--workload.clients=4",
    "--workload.limit=300",
    "--engine.checkpoint_every=1",
    "--engine.dashboard=false",
)
INLINE = ("--engine.backend=inline",)
MARK = "RAYSIM_TEST_MARK"
# What only reads a run's folder must not take seconds to start.
LIGHT = """
import sys
from raysim.attach import main
code = main(sys.argv[1:])
print("HEAVY", [name for name in ("torch", "ray", "pandas", "matplotlib") if name in sys.modules])
sys.exit(code)
"""


class Place:
    """A folder to launch in; what is left of its processes at the end is ended."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.mark = folder, uuid.uuid4().hex
        (folder / "light.py").write_text(LIGHT)
        shutil.copy(Path(__file__).parent / "user_code.py", folder / "mine.py")

    def start(self, *command: str) -> subprocess.Popen[str]:
        """A process in a session of its own, as a terminal would start it."""
        return subprocess.Popen(
            [sys.executable, *command],
            cwd=self.folder,
            env=os.environ | {MARK: self.mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # Where the tests themselves run in the background, Ctrl-C is ignored, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def launch(self, *arguments: str, run: str = "run") -> tuple[int, str, str]:
        place = () if "--resume" in arguments else (*SMALL, f"--output={run}")
        return end(self.start("-m", "raysim.launch", *place, "--detach", *arguments))

    def attach(self, *arguments: str) -> tuple[int, str, str]:
        return end(self.start("light.py", *arguments))

    def running(self) -> list[int]:
        """Numbers of the processes that were started from here, and by these."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and f"{MARK}={self.mark}".encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
        return found


def end(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, errors = process.communicate(timeout=120)
    return process.returncode, out, errors


def wait(condition: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    made = Place(tmp_path)
    yield made
    for process in made.running():
        os.kill(process, signal.SIGKILL)


def test_a_run_on_ray_outlives_the_process_that_launched_it(place: Place, tmp_path: Path) -> None:
    """Killed while the run starts; the run ends as if nothing had been, and whoever attaches has its exit code."""
    launching = place.start("-m", "raysim.launch", *SMALL, "--rounds=6", "--output=run", "--detach")
    wait(lambda: sitting.holder(tmp_path / "run"))
    os.killpg(launching.pid, signal.SIGKILL)
    launching.communicate()
    assert launching.returncode == -signal.SIGKILL
    code, out, errors = place.attach("run")
    assert code == 0, errors
    lines = errors.splitlines()
    assert lines[0] == "fedavg on digits with logistic, seed 0" and any("client actors" in line for line in lines)
    rounds = [line.split()[1] for line in lines if line.startswith("round ")]
    assert rounds == [f"{number}/6" for number in range(1, 7)]
    assert "after 6 rounds" in out and out.endswith("HEAVY []\n")
    assert main([*SMALL, *INLINE, "--rounds=6", "--output=attached"]) == 0
    assert fingerprint(tmp_path / "run") == fingerprint(tmp_path / "attached")
    wait(lambda: not place.running(), 20)


def test_followed_left_stopped_and_resumed(place: Place, tmp_path: Path) -> None:
    waiting = ("--method=mine:Waiting", *INLINE, "--rounds=5")
    code, out, errors = place.launch(*waiting)
    assert code == 0, errors
    process = sitting.holder(tmp_path / "run")["process"]
    assert out.splitlines()[0] == f"run goes on in the background as process {process}"
    assert "fedavg" not in out and "mine:Waiting on digits" in errors  # what the run says is shown until then
    wait(lambda: status.read(tmp_path / "run")["round"] == 3)

    left = place.start("light.py", "run")
    assert left.stderr is not None
    seen = left.stderr.readline()
    while "round 2/5" not in seen:
        seen = left.stderr.readline()
    os.killpg(left.pid, signal.SIGINT)
    code, _, errors = end(left)
    assert code == 130 and errors == "\nraysim: the run goes on; again: python -m raysim.attach run\n"

    code, _, errors = place.launch("--resume", "run")
    assert code == 2 and f"process {process} on" in errors and "python -m raysim.attach" in errors
    code, out, _ = end(place.start("-m", "raysim.launch", *SMALL, "--output=run", "--detach"))
    assert (code, out) == (2, "")  # the folder is taken

    stopping = place.start("light.py", "--stop", "run")
    wait(lambda: sitting.asked_to_stop(tmp_path / "run"))
    (tmp_path / "go").touch()
    code, _, errors = end(stopping)
    assert code == 0 and errors.endswith("raysim: stopped\nGo on with: python -m raysim.launch --resume run\n")
    assert len(load_result(tmp_path / "run").rounds) < 5
    assert place.attach("run")[0] == 130  # the run's own

    code, _, errors = place.launch("--resume", "run")
    assert code == 0 and "goes on after round" in errors
    assert place.attach("run")[0] == 0
    assert main([*SMALL, *waiting, "--output=undisturbed"]) == 0
    assert fingerprint(tmp_path / "run") == fingerprint(tmp_path / "undisturbed")


def test_what_cannot_start_is_said_at_once_with_its_exit_code(place: Place, tmp_path: Path) -> None:
    code, out, errors = place.launch("--mu=1")
    assert (code, out) == (2, "") and "--mu" in errors
    code, out, errors = place.launch("--engine.address=127.0.0.1:1")
    assert (code, out) == (1, "") and "no Ray cluster answers at 127.0.0.1:1" in errors
    assert not (tmp_path / "run").exists()


def test_a_failure_after_the_start_is_found_by_who_attaches(place: Place, tmp_path: Path) -> None:
    """Its folder stays, though there is no round in it: the launching process has said that the run is there."""
    place.launch("--method=mine:Broken", "--method.where=aggregate", "--method.round=1", *INLINE, "--rounds=2")
    code, _, errors = place.attach("run")
    assert code == 1
    assert "round 1, stage aggregate: ZeroDivisionError: a mistake of mine" in errors
    assert "Traceback" in (tmp_path / "run" / "output.log").read_text()


def test_a_run_whose_process_was_killed_is_known_for_dead(place: Place, tmp_path: Path) -> None:
    assert place.launch("--method=mine:Waiting", *INLINE, "--ui")[0] == 0
    assert "live page: http://127.0.0.1:" in (tmp_path / "run" / "output.log").read_text()
    wait(lambda: status.read(tmp_path / "run")["round"] == 3)
    attached = place.start("light.py", "run")
    os.kill(sitting.holder(tmp_path / "run")["process"], signal.SIGKILL)
    code, _, errors = end(attached)
    assert code == 1 and "the run died in round 3 of 20" in errors
    assert errors.splitlines()[-1] == "Go on with: python -m raysim.launch --resume run"
