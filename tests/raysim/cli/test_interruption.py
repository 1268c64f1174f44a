"""Runs that are ended by signals: what is saved, what is said, the exit code."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from raysim.cli.interruption import Interruption
from raysim.launch import main
from tests.fingerprint import fingerprint
from tests.processes import within
from tests.raysim.conftest import SMALL

ROOT = Path(__file__).parents[3]
# A checkpoint is due after the last round only, so that what is found was saved because of the signal.
RUN = (*SMALL, "--method=mine:Waiting", "--method.gate=go", "--rounds=5", "--engine.checkpoint_every=1000")
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


def two_rounds_are_done(place: Path) -> None:
    """And the client tasks of the third wait."""
    table = place / "run" / "rounds.csv"
    assert within(300, lambda: table.exists() and "\n2," in table.read_text())
    time.sleep(0.3)


def interrupted(place: Path, number: int) -> int:
    """The exit code of a run in this process, to which a signal comes in its third round."""

    def send() -> None:
        two_rounds_are_done(place)
        os.kill(os.getpid(), number)
        (place / "go").touch()

    hand = threading.Thread(target=send)
    hand.start()
    code = main([*RUN, "--output=run"])
    hand.join()
    return code


def goes_on_as_if_nothing_had_been(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two whole rounds were saved, and the resumed run equals an undisturbed one."""
    assert main(["--resume", "run", "--method=mine:Waiting"]) == 0
    assert "goes on after round 2" in capsys.readouterr().err
    assert main([*RUN, "--output=undisturbed"]) == 0
    assert fingerprint(place / "run") == fingerprint(place / "undisturbed")


@pytest.mark.slow
@pytest.mark.parametrize("number", CODES)
def test_the_last_whole_round_is_saved(place: Path, capsys: pytest.CaptureFixture[str], number: int) -> None:
    before = signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    try:  # the tests may have been started by nohup, and what is ignored is ignored by a run too
        assert interrupted(place, number) == CODES[signal.Signals(number)]
    finally:
        signal.signal(number, before)
    said = capsys.readouterr().err
    *_, stopped, advice = said.splitlines()
    assert stopped == "raysim: stopped"
    assert advice == "Go on with: python -m raysim.launch --resume run --method mine:Waiting"
    assert "Traceback" not in said
    goes_on_as_if_nothing_had_been(place, capsys)


@pytest.mark.parametrize("number", CODES)
def test_a_signal_in_a_forked_child_ends_only_the_child(capfd: pytest.CaptureFixture[str], number: int) -> None:
    """Ctrl-C while Ray starts may come between the fork of a process of Ray and the start of its program."""
    program = [sys.executable, "-c", "print('the program ran')"]
    before = signal.signal(number, signal.SIG_DFL)
    try:  # the tests may have been started by nohup
        with Interruption() as interruption:
            child = subprocess.run(program, preexec_fn=lambda: signal.raise_signal(number), check=False)
            assert child.returncode == CODES[signal.Signals(number)]
            assert not interruption.asked()
    finally:
        signal.signal(number, before)
    assert capfd.readouterr() == ("", "")


OTHER_ERRORS = """
import signal
import weakref
from raysim import Observer
from raysim.errors import ConfigError
from raysim.methods.fedavg import FedAvg

def asked(error):
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise error("a library's own")

class WhenMade(Observer):
    def __init__(self):
        asked(ConfigError)

class Server(FedAvg):
    def init_server(self, model):
        asked(RuntimeError)

class Refused(FedAvg):
    def init_server(self, model):
        asked(ConfigError)

class Lost(FedAvg):
    def init_server(self, model):
        thing = type("Thing", (), {})()
        watch = weakref.ref(thing, lambda reference: signal.raise_signal(signal.SIGINT))
        del thing
        return super().init_server(model)
"""


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")  # what Python says of a lost one
@pytest.mark.parametrize(
    "words",
    ["--engine.observer=other:WhenMade", "--method=other:Server", "--method=other:Refused", "--method=other:Lost"],
)
def test_an_error_that_a_library_makes_of_it_is_none(
    place: Path, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    """Some C libraries answer KeyboardInterrupt with an error of their own, which says nothing of the run."""
    (place / "other.py").write_text(OTHER_ERRORS)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert main([*SMALL, words, "--output=run"]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    said = capsys.readouterr().err
    assert said.splitlines()[-1] in ("raysim: stopped", "raysim: interrupted")
    assert "Traceback" not in said and "a library's own" not in said
    assert not (place / "run").exists()


def test_nohup_is_heeded(place: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert interrupted(place, signal.SIGHUP) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


# -- processes of their own -----------------------------------------------------------------------------------------


@pytest.fixture
def started(place: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts a run in a session of its own that writes to the other side of a terminal or to ``said.txt``."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(*more: str, terminal: int = -1) -> subprocess.Popen[bytes]:
        side = os.open(place / "said.txt", os.O_WRONLY | os.O_CREAT) if terminal < 0 else terminal
        processes.append(
            subprocess.Popen(
                [sys.executable, "-m", "raysim.launch", *RUN, "--output=run", *more],
                env={**os.environ, "PYTHONPATH": f"{ROOT}:{place}"},
                stdin=subprocess.DEVNULL if terminal < 0 else side,
                stdout=side,
                stderr=side,
                start_new_session=True,
                preexec_fn=lambda: _own_signals(terminal),
            )
        )
        os.close(side)
        return processes[-1]

    yield start
    for process in processes:  # after a failure it would wait for ever
        process.kill()
        process.wait()


def _own_signals(terminal: int) -> None:
    """Where the tests run in the background Ctrl-C is ignored, and children inherit that; and makes the terminal the
    session's own, so that its end reaches the process as SIGHUP."""
    import fcntl
    import termios

    for number in CODES:
        signal.signal(number, signal.SIG_DFL)
    if terminal >= 0:
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


@pytest.mark.slow
def test_before_the_first_round_nothing_is_left(place: Path, started: Callable[..., subprocess.Popen[bytes]]) -> None:
    run = started()
    assert within(300, (place / "run" / "config.yaml").exists)
    run.send_signal(signal.SIGINT)
    assert run.wait(60) == 130
    said = (place / "said.txt").read_text()
    assert "Traceback" not in said and "--resume" not in said
    assert not (place / "run").exists()


@pytest.mark.slow
def test_a_second_signal_does_not_wait(place: Path, started: Callable[..., subprocess.Popen[bytes]]) -> None:
    # Not for the partition's picture either, however long the plotting library takes to load.
    (place / "matplotlib").mkdir()
    (place / "matplotlib" / "__init__.py").write_text("import time\ntime.sleep(600)\n")
    run = started("--pictures=true")
    two_rounds_are_done(place)
    run.send_signal(signal.SIGTERM)
    time.sleep(2.0)  # of two that come at once a busy process would see one
    assert run.poll() is None
    run.send_signal(signal.SIGTERM)
    said = place / "said.txt"
    assert run.wait(120) == 143, said.read_text()
    assert "Traceback" not in said.read_text()
    assert said.read_text().splitlines()[-1].startswith("Go on with: ")


@pytest.mark.slow
def test_a_closed_terminal_is_no_error(
    place: Path, capsys: pytest.CaptureFixture[str], started: Callable[..., subprocess.Popen[bytes]]
) -> None:
    terminal, side = pty.openpty()
    run = started(terminal=side)
    two_rounds_are_done(place)
    os.close(terminal)
    (place / "go").touch()
    assert run.wait(60) == 129
    goes_on_as_if_nothing_had_been(place, capsys)


def test_a_signal_within_an_import_keeps_the_exit_code(place: Path) -> None:
    (place / "asked.py").write_text(
        "import signal, sys\n"
        "from raysim.cli.interruption import Interruption\n"
        "try:\n"
        "    with Interruption() as interruption:\n"
        "        exec('signal.raise_signal(signal.SIGTERM)')\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit(interruption.exit_code)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(place)])}
    assert subprocess.run([sys.executable, "-m", "asked"], env=environment, timeout=300).returncode == 143
