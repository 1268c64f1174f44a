"""A run on a disk that is full for a while, and on one that stays full: a real file system of a few megabytes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from raysim.config.run_config import RunConfig
from raysim.errors import RaysimError
from raysim.launch import main
from raysim.results.result import load_result
from raysim.running.simulation import run
from raysim.storage import checkpoint
from tests.attack.folders import BASE
from tests.fingerprint import fingerprint
from tests.small_runs import IN_PROCESS, small_run, words
from tests.watch import Watch


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)]
    with suppress(FileNotFoundError):
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            yield place
            subprocess.run(["umount", str(place)], check=True)
            return
    pytest.skip("mounting a file system is not allowed here")


SIZES: dict[str, Any] = {"workload.clients": 4, "workload.limit": 200, "schedule.rounds": 8}
WORDS = words(IN_PROCESS | BASE | SIZES)


def config(output: Path) -> RunConfig:
    return small_run(output, BASE | SIZES)


class Filling(Watch):
    """Fills the disk to the last byte when one round begins, and makes room when another one does."""

    def __init__(self, disk: Path, full: int, free: int) -> None:
        super().__init__()
        self.filler, self.full, self.free = disk / "filler", full, free

    def round_started(self, round: int, local_epochs: int, participants: int) -> None:
        if round == self.full:
            with suppress(OSError), self.filler.open("wb", buffering=0) as file:
                while file.write(bytes(512)):
                    pass
        if round == self.free:
            self.filler.unlink()


@pytest.fixture
def expected(tmp_path: Path) -> Callable[[], dict[str, Any]]:
    return lambda: fingerprint(run(config(tmp_path / "undisturbed")).folder)


def test_a_disk_that_is_full_for_a_while_costs_nothing(disk: Path, expected: Callable[[], dict[str, Any]]) -> None:
    watch = Filling(disk, full=3, free=6)
    found = run(config(disk / "run"), observer=watch)
    assert fingerprint(found.folder) == expected()
    first, second, third = watch.faults  # at rounds 4 and 5; 6 is the next
    assert "round 4" in first and "No space left on device" in first and "tries again after every round" in first
    assert "round 5" in second and third == "the checkpoint of round 6 could be written again"


def test_a_disk_that_stays_full_ends_the_run_and_it_can_be_resumed(
    disk: Path, expected: Callable[[], dict[str, Any]]
) -> None:
    watch = Filling(disk, full=3, free=0)
    with pytest.raises(RaysimError, match=r"No space left on device.*--resume"):
        run(config(disk / "run"), observer=watch)
    assert checkpoint.newest_first(disk / "run" / "checkpoints")[0].name == "round-000002"
    rounds = load_result(disk / "run").rounds["round"].tolist()  # whole rows, as many as had room
    assert rounds == list(range(1, len(rounds) + 1))
    assert not list((disk / "run").rglob("*.partial"))
    watch.filler.unlink()
    assert fingerprint(run(config(disk / "run"), resume=disk / "run").folder) == expected()


@pytest.mark.parametrize("kilobytes", [4, 8])
def test_a_disk_without_room_for_a_folder_leaves_none(
    disk: Path, kilobytes: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither an empty config.yaml, which no resume reads, nor a traceback."""
    subprocess.run(["mount", "-o", f"remount,size={kilobytes}k", str(disk)], check=True)
    assert main([*WORDS, f"--output={disk / 'run'}"]) == 2
    error = capsys.readouterr().err
    assert "raysim: Cannot write" in error and "No space left on device" in error and "Traceback" not in error
    assert not list(disk.iterdir())


def test_a_disk_with_room_for_some_rows_leaves_a_folder_that_goes_on(
    disk: Path, expected: Callable[[], dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(["mount", "-o", "remount,size=28k", str(disk)], check=True)
    assert main([*WORDS, f"--output={disk / 'run'}"]) == 1
    error = capsys.readouterr().err
    assert "No space left on device" in error and "Traceback" not in error and "--resume" in error
    subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
    assert main(["--resume", str(disk / "run")]) == 0
    assert fingerprint(disk / "run") == expected()
