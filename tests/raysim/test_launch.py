"""The command line as a process of its own: output, exit codes, interrupts, and what it leaves running."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pandas as pd
import pytest

from raysim.launch import main
from raysim.results.result import comparable, load_result
from tests.long_tests import long
from tests.processes import marked, within

QUICK = ("--method=fedavg", "--workload.clients=4", "--workload.limit=300", "--engine.checkpoint_every=1")
BUFFERED = (
    *("--timing.mode=buffered", "--timing.buffer=2", "--timing.concurrency=4", "--devices.preset=phones"),
    "--compression.kind=int8",
)
PLAIN = "--pictures=false"
ENGINE = ("--engine.dashboard=false", "--engine.actors=1")
MARK = "RAYSIM_TEST_MARK"
# Everything that the launching process has no use for and that takes long to import.
HEAVY = ("torch", "pandas", "matplotlib", "sklearn")
CHECK = f"""
import sys
from raysim.launch import main
if __name__ == "__main__":
    code = main(sys.argv[1:])
    print("HEAVY", [name for name in {HEAVY} if name in sys.modules])
    sys.exit(code)
"""


class Launched:
    """A run in a session of its own, as a terminal would start it."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.mark = uuid.uuid4().hex
        self.errors = folder / "stderr.txt"
        (folder / "check.py").write_text(CHECK)
        with self.errors.open("w") as file:
            self.process = subprocess.Popen(
                [sys.executable, "check.py", *QUICK, PLAIN, *ENGINE, "--output=run", *arguments],
                cwd=folder,
                env=os.environ | {MARK: self.mark},
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                start_new_session=True,
            )

    def wait_for(self, text: str) -> None:
        within(300, lambda: text in self.errors.read_text() or self.process.poll() is not None)
        assert text in self.errors.read_text(), self.errors.read_text()

    def interrupt(self, number: int = signal.SIGINT) -> None:
        """Ctrl-C reaches every process of the terminal's group, Ray's too; `kill` the one that it names."""
        if number == signal.SIGINT:
            os.killpg(self.process.pid, number)
        else:
            os.kill(self.process.pid, number)

    def end(self, seconds: float = 120) -> tuple[int, str, str]:
        out, _ = self.process.communicate(timeout=seconds)
        return self.process.returncode, out, self.errors.read_text()

    def left(self) -> list[str]:
        """Titles of the processes that this run started and that are still there (Ray's end a moment later)."""
        mark = f"{MARK}={self.mark}"
        within(20, lambda: not marked(mark), pause=0.1)
        return marked(mark)


@pytest.mark.usefixtures("place")
def test_one_plain_line_a_round_and_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--engine.backend=inline", "--model=logistic", "--workload=synthetic", "--workload.train_size=100")
    assert main([*QUICK, *arguments, "--rounds=2", "--output=run"]) == 0
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert [line.split()[:2] for line in lines[-2:]] == [["round", "1/2"], ["round", "2/2"]]
    assert lines[1:3] == ["loading the data …", "building the model …"]
    assert len(lines) == 7 and "synthetic: made up" in lines[4]
    assert re.search(r"; \d+\.\d s to start, \d+\.\d s in rounds, \d+\.\d s in all$", out.splitlines()[0])
    assert "(synthetic data) after 2 rounds and 4 local epochs" in out and "run/report.html" in out


@long  # cli/test_interruption.py does it in one process, and the next ones stop a run while Ray starts
@pytest.mark.slow
def test_interrupted_on_ray_and_resumed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code, no process left, nothing heavy in the launching process, and the same tables in the end.

    In virtual time, where every step leaves clients at work whose updates come into a later one.
    """
    launched = Launched(place, "--rounds=90", *BUFFERED)
    launched.wait_for("round  3/90")
    launched.interrupt(signal.SIGTERM)
    code, out, errors = launched.end()
    assert code == 143, errors
    assert errors.splitlines()[-1] == "Go on with: python -m raysim.launch --resume run"
    steps = ["starting Ray …", "starting the driver …", "loading the data …", "starting client actors …"]
    assert errors.splitlines()[1:5] == steps
    # A plan, rounds, and what was asked for: no noise of Ray, no traceback.
    starts = ("fedavg on", *steps, "round ", "raysim: stopped", "Go on with", "stopping: ")
    assert [line for line in errors.splitlines() if not line.startswith(starts) and "client actor" not in line] == []
    assert out == "HEAVY []\n"
    assert launched.left() == []
    done = len(load_result(place / "run").rounds)
    assert 3 <= done < 90
    assert main(["--resume", "run", "--engine.backend=inline"]) == 0
    assert f"goes on after round {done}" in capsys.readouterr().err
    assert main([*QUICK, "--rounds=90", *BUFFERED, "--engine.backend=inline", PLAIN, "--output=undisturbed"]) == 0
    found, expected = load_result(place / "run"), load_result(place / "undisturbed")
    pd.testing.assert_frame_equal(comparable(found.rounds), comparable(expected.rounds))
    pd.testing.assert_frame_equal(comparable(found.clients), comparable(expected.clients))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_while_ray_starts(place: Path, number: int) -> None:
    """It ends without waiting for Ray, and leaves neither a folder nor a process."""
    launched = Launched(place, "--rounds=40")
    launched.wait_for("fedavg on")
    time.sleep(1.5)  # well within Ray's start
    launched.interrupt(number)
    code, _, errors = launched.end(60)
    assert code == 128 + number, errors
    assert "Traceback" not in errors and "SIGTERM received" not in errors and "--resume" not in errors, errors
    assert not (place / "run").exists() and launched.left() == []


@long
@pytest.mark.slow
def test_interrupted_twice_does_not_wait_for_the_client_task(place: Path) -> None:
    launched = Launched(place, "--method=mine:Waiting", "--method.gate=never-there", "--model=logistic", "--rounds=3")
    launched.wait_for("round 2/3")  # the client tasks of round 3 never end
    launched.interrupt()
    launched.wait_for("stopping: ")
    launched.interrupt()
    code, _, errors = launched.end(40)
    assert code == 130 and "Traceback" not in errors, errors
    assert "--resume run --method mine:Waiting" in errors.splitlines()[-1]
    assert launched.left() == []


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    code = "import sys, time; from raysim.launch import main; time.sleep(0.5); sys.exit(main(['--list']))"
    reader = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert reader.stdout is not None and reader.stderr is not None
    reader.stdout.close()
    assert (reader.wait(60), reader.stderr.read()) == (0, b"")
