"""Runs in one process that are ended by signals: what is saved, what is said, the exit code."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from raysim.launch import main
from tests.fingerprint import fingerprint

ROOT = Path(__file__).parents[3]
# A checkpoint is due after the last round only, so that what is found was saved because of the signal.
RUN = (
    "--method=mine:Waiting",
    "--model=logistic",
    "--engine.backend=inline",
    "--pictures=false",
    "--workload.clients=4",
    "--workload.limit=200",
    "--rounds=5",
    "--engine.checkpoint_every=1000",
    "--method.gate=go",
)
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


_started: list[subprocess.Popen[bytes]] = []


class Started:
    """A run as a process in a session of its own, with a terminal of its own or files."""

    def __init__(self, folder: Path, *before: str, terminal: bool = False) -> None:
        self.log = folder / "said.txt"
        command = [*before, sys.executable, "-m", "raysim.launch", *RUN, "--output=run"]
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{folder}"}
        self.terminal, side = pty.openpty() if terminal else (-1, os.open(self.log, os.O_WRONLY | os.O_CREAT))
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=side if terminal else subprocess.DEVNULL,
            stdout=side,
            stderr=side,
            start_new_session=True,
            preexec_fn=(lambda: _own_terminal(side)) if terminal else _default_signals,
        )
        _started.append(self.process)
        os.close(side)

    def wait_for(self, condition: Callable[[], bool], seconds: float = 120) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert self.process.poll() is None and time.monotonic() < deadline, self.said()
            time.sleep(0.02)

    def wait_for_text(self, text: str) -> None:
        self.wait_for(lambda: text in self.said())

    def said(self) -> str:
        return self.log.read_text() if self.log.exists() else ""


def _default_signals() -> None:
    """Where the tests themselves run in the background, Ctrl-C is ignored, and children inherit that."""
    for number in CODES:
        signal.signal(number, signal.SIG_DFL)


def _own_terminal(side: int) -> None:
    """Makes the terminal the session's own, so that its end reaches the process as SIGHUP."""
    import fcntl
    import termios

    _default_signals()
    fcntl.ioctl(side, termios.TIOCSCTTY, 0)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    shutil.copy(Path(__file__).parents[1] / "user_code.py", tmp_path / "mine.py")
    yield tmp_path
    for process in _started:  # after a failure it would wait for ever
        process.kill()
        process.wait()
    _started.clear()


def goes_on_as_if_nothing_had_been(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two whole rounds were saved, and the resumed run equals an undisturbed one."""
    assert main(["--resume", "run", "--method=mine:Waiting"]) == 0
    assert "goes on after round 2" in capsys.readouterr().err
    assert main([*RUN, "--output=undisturbed"]) == 0
    assert fingerprint(folder / "run") == fingerprint(folder / "undisturbed")


@pytest.mark.parametrize("number", CODES)
def test_the_last_whole_round_is_saved(
    folder: Path, capsys: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    run = Started(folder)
    run.wait_for_text("round 2/5")
    time.sleep(0.5)  # well within round 3, whose visits wait
    run.process.send_signal(number)
    (folder / "go").touch()
    assert run.process.wait(60) == CODES[number], run.said()
    *_, stopped, advice = run.said().splitlines()
    assert stopped == "raysim: stopped"
    assert advice == "Go on with: python -m raysim.launch --resume run --method mine:Waiting"
    assert "Traceback" not in run.said()
    goes_on_as_if_nothing_had_been(folder, capsys)


@pytest.mark.parametrize("number", CODES)
def test_before_the_first_round_nothing_is_left(folder: Path, number: signal.Signals) -> None:
    run = Started(folder)
    run.wait_for(lambda: (folder / "run" / "config.yaml").exists())
    run.process.send_signal(number)
    assert run.process.wait(60) == CODES[number], run.said()
    assert "Traceback" not in run.said() and "--resume" not in run.said()
    assert not (folder / "run").exists()


def test_a_signal_within_an_import_keeps_the_exit_code(folder: Path) -> None:
    (folder / "asked.py").write_text(
        "import signal, sys\n"
        "from raysim.cli.interruption import Interruption\n"
        "try:\n"
        "    with Interruption() as interruption:\n"
        "        exec('signal.raise_signal(signal.SIGTERM)')\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit(interruption.exit_code)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)])}
    assert subprocess.run([sys.executable, "-m", "asked"], env=environment, timeout=60).returncode == 143


def test_a_second_signal_does_not_wait(folder: Path) -> None:
    # Not for the partition's picture either, however long the plotting library takes to load.
    (folder / "matplotlib").mkdir()
    (folder / "matplotlib" / "__init__.py").write_text("import time\ntime.sleep(600)\n")
    run = Started(folder)
    run.wait_for_text("round 2/5")
    time.sleep(0.5)
    run.process.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    assert run.process.poll() is None
    run.process.send_signal(signal.SIGTERM)
    assert run.process.wait(120) == 143, run.said()
    assert "Traceback" not in run.said() and run.said().splitlines()[-1].startswith("Go on with: ")


def test_a_closed_terminal_is_no_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Started(folder, terminal=True)
    table = folder / "run" / "rounds.csv"
    run.wait_for(lambda: table.exists() and "\n2," in table.read_text())
    time.sleep(0.5)
    os.close(run.terminal)
    (folder / "go").touch()
    assert run.process.wait(60) == 129
    goes_on_as_if_nothing_had_been(folder, capsys)


def test_nohup_is_heeded(folder: Path) -> None:
    run = Started(folder, "nohup")
    run.wait_for_text("round 2/5")
    run.process.send_signal(signal.SIGHUP)
    (folder / "go").touch()
    assert run.process.wait(60) == 0, run.said()
