"""Runs that go on from a folder in which something was damaged, and runs that are trained longer than planned."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from raysim.config.config_file import sealed
from raysim.errors import ConfigError, RaysimError, ResultsError
from raysim.launch import main
from raysim.results.result import load_result
from raysim.running.simulation import run
from tests.attack.folders import small as config
from tests.fingerprint import fingerprint
from tests.watch import Watch


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, with checkpoints of rounds 4 and 6."""
    return run(config(tmp_path_factory.mktemp("whole") / "run")).folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "run"))


def resume(folder: Path, **options: Any) -> list[str]:
    watch = Watch()
    run(config(folder, **options), resume=folder, observer=watch)
    return watch.notes


def edit(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))


# -- tables ---------------------------------------------------------------------------------------------------------

# What else is found: tests/raysim/storage/test_table_marks.py and tests/attack.
TABLE_DAMAGE: list[tuple[str, Callable[[list[bytes]], list[bytes]], str]] = [
    ("rounds.csv", lambda rows: [*rows[:-1], rows[-1][:-9]], "it ends after round 5, with 5 of 6 rows"),
    ("rounds.csv", lambda rows: [*rows[:6], rows[6].replace(b".", b"1", 1)], "up to 6 has changed"),
    ("clients.csv", lambda rows: [*rows[:-2], rows[-1], rows[-2]], "line 19 (round 6) does not follow"),
]


@pytest.mark.parametrize(("name", "change", "reason"), TABLE_DAMAGE)
def test_a_damaged_table_is_said_and_the_checkpoint_before_it_serves(
    folder: Path, whole: Path, name: str, change: Any, reason: str
) -> None:
    edit(folder / name, change)
    said = [note for note in resume(folder) if note.startswith("damaged: ")]
    assert len(said) == 1 and f"{name}: " in said[0] and reason in said[0], said
    assert said[0].endswith("The run goes on from the checkpoint of round 4")
    assert fingerprint(folder) == fingerprint(whole)


@pytest.mark.parametrize("content", [None, b"", b"round,acc", bytes(300)])
@pytest.mark.parametrize("name", ["rounds.csv", "clients.csv"])
def test_without_a_table_no_checkpoint_serves_and_there_is_one_advice(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes | None
) -> None:
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    summary = (folder / "summary.json").read_bytes()
    assert main(["--resume", str(folder)]) == 1
    error = capsys.readouterr().err
    assert re.search(rf"raysim: damaged: \S*{name}: .*No checkpoint is left to go on from: start it in a new", error)
    assert "Traceback" not in error and "Go on with" not in error
    assert (folder / "summary.json").read_bytes() == summary


def test_rows_after_the_checkpoint_are_cut_whatever_they_are(folder: Path, whole: Path) -> None:
    shutil.rmtree(folder / "checkpoints" / "round-000006")
    for name, rows in (("rounds.csv", 5), ("clients.csv", 13)):
        edit(folder / name, lambda lines, rows=rows: [*lines[:rows], bytes(77), b"\n\xff,1\n5,1"])  # type: ignore[misc]
    assert not [note for note in resume(folder) if "damaged" in note]
    assert fingerprint(folder) == fingerprint(whole)


def test_an_unreadable_profile_is_dropped(tmp_path: Path) -> None:
    found = run(config(tmp_path / "run", engine__profile=True, schedule__rounds=2)).folder
    edit(found / "profile.csv", lambda lines: [*lines, b"\0\0\n", b"x,y\n"])
    resume(found, engine__profile=True, schedule__rounds=2)
    assert b"\0" not in (found / "profile.csv").read_bytes()


# -- checkpoints ----------------------------------------------------------------------------------------------------


def newest(folder: Path) -> Path:
    return folder / "checkpoints" / "round-000006"


def test_a_damaged_checkpoint_is_said_and_the_one_before_it_serves(folder: Path, whole: Path) -> None:
    file = newest(folder) / "server.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    (said,) = [note for note in resume(folder) if "damaged" in note]
    assert "round-000006/server.safetensors: its content has changed" in said and "checkpoint of round 4" in said
    assert fingerprint(folder) == fingerprint(whole)
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == ["round-000004", "round-000006"]


@pytest.mark.parametrize("change", [{"round": 4}, {"round": 2}, {"files": {}}, {"facts": {}}])
def test_a_manifest_that_says_something_else_is_damaged(folder: Path, whole: Path, change: dict[str, Any]) -> None:
    file = newest(folder) / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    assert [note for note in resume(folder) if "manifest.json: its content has changed" in note]
    assert fingerprint(folder) == fingerprint(whole)


def test_the_only_checkpoint_damaged_is_one_advice(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(folder / "checkpoints" / "round-000004")
    next(newest(folder).glob("clients-*.safetensors")).unlink()
    assert main(["--resume", str(folder)]) == 1
    error = capsys.readouterr().err
    assert re.search(r"clients-\d+\.safetensors: No such file", error) and f"--config {folder / 'config.yaml'}" in error
    assert "--resume" not in error


def test_a_finished_run_without_checkpoints_keeps_its_tables(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(folder / "checkpoints")
    rows = (folder / "rounds.csv").read_bytes()
    assert main(["--resume", str(folder)]) == 1
    assert "the run is finished, and there is no checkpoint" in capsys.readouterr().err
    assert (folder / "rounds.csv").read_bytes() == rows


def test_an_unfinished_run_without_checkpoints_says_that_it_starts_again(folder: Path, whole: Path) -> None:
    shutil.rmtree(folder / "checkpoints")
    (folder / "summary.json").unlink()
    assert [note for note in resume(folder) if "holds no checkpoint: the run starts again from round 1 (6 were" in note]
    assert fingerprint(folder) == fingerprint(whole)


def test_a_folder_of_an_earlier_version_is_one_sentence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (folder / "checkpoints").glob("*/manifest.json"):
        manifest = json.loads(path.read_text())
        path.write_text(json.dumps({"format": 2, "round": manifest["round"], "facts": {}, "files": manifest["files"]}))
    assert main(["--resume", str(folder)]) == 1
    error = capsys.readouterr().err
    assert "has format 2, this raysim reads 3: go on with the version" in error and "Go on with" not in error


# -- config.yaml ----------------------------------------------------------------------------------------------------


def test_a_changed_config_is_damaged(folder: Path) -> None:
    path = folder / "config.yaml"
    text = path.read_text()
    path.write_text(text.replace("learning_rate: 0.1", "learning_rate: 0.2"))
    with pytest.raises(ConfigError, match=r"^damaged: .*config\.yaml: it has changed since the run wrote it"):
        resume(folder)
    path.write_text(text.splitlines(keepends=True)[0])
    with pytest.raises(ConfigError, match="the checksum, is missing"):
        resume(folder)


def test_a_config_of_another_run_is_refused(folder: Path) -> None:
    path = folder / "config.yaml"
    text = path.read_text().rpartition("# SHA")[0]
    path.write_text(sealed(text.replace("learning_rate: 0.1", "learning_rate: 0.2")))
    with pytest.raises(RaysimError, match=r"round-000006 was made with other settings: training\.learning_rate: 0\.1"):
        resume(folder, training__learning_rate=0.2)


# -- more rounds ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method__name": "fedavg", "training__learning_rate_decay": 0.9, "schedule__sampling_rate": 0.7},
        {"method__name": "fedavg", "schedule__joins": (1, 2), "schedule__join_every": 5},
        {"method__name": "fedavg", "evaluation__every": 4},  # the sixth round is evaluated only because it is the last
    ],
)
def test_a_finished_run_can_be_trained_longer(tmp_path: Path, options: dict[str, Any]) -> None:
    longer = run(config(tmp_path / "longer", schedule__rounds=10, **options)).folder
    folder = run(config(tmp_path / "run", pictures=not options, **options)).folder
    before = b"" if options else (folder / "curve.png").read_bytes()
    assert main(["--resume", str(folder), "--rounds", "10"]) == 0
    assert fingerprint(folder) == fingerprint(longer)
    found = load_result(folder)
    assert found.config["schedule"]["rounds"] == 10 and found.summary["rounds"] == 10
    timeless = {"seconds"}
    expected = load_result(longer).summary
    assert {k: found.summary[k] for k in found.summary.keys() - timeless} == {
        k: expected[k] for k in expected.keys() - timeless
    }
    assert options or (folder / "curve.png").read_bytes() != before
    assert main(["--resume", str(folder)]) == 0  # the config in the folder is the new one


def test_a_run_whose_length_was_given_in_epochs_can_be_trained_longer(tmp_path: Path) -> None:
    options = {"method__name": "fedavg", "schedule__local_epochs": 2}
    longer = run(config(tmp_path / "longer", schedule__rounds=8, **options)).folder
    folder = run(config(tmp_path / "run", schedule__epochs=13, **options)).folder
    assert len(load_result(folder).rounds) == 6
    assert main(["--resume", str(folder), "--epochs", "17"]) == 0
    assert fingerprint(folder) == fingerprint(longer)
    assert load_result(folder).config["schedule"]["epochs"] == 17
    assert main(["--resume", str(folder), "--rounds", "8"]) == 0  # the same length
    assert main(["--resume", str(folder), "--rounds", "9"]) == 0
    assert len(load_result(folder).rounds) == 9
    assert load_result(folder).config["schedule"]["epochs"] == 0


def test_random_intervals_depend_on_the_number_of_rounds(tmp_path: Path) -> None:
    options = {"method__name": "fedavg", "schedule__intervals": "random", "schedule__local_epochs": 4}
    folder = run(config(tmp_path / "run", engine__keep_checkpoints=1, **options)).folder
    stored = (folder / "config.yaml").read_bytes()
    with pytest.raises(ResultsError, match=r"rounds 10 is not possible.* have only their first [3-5] rounds in common"):
        resume(folder, schedule__rounds=10, **options)
    assert (folder / "config.yaml").read_bytes() == stored and (folder / "summary.json").exists()


def test_fewer_rounds_than_are_done_are_refused(folder: Path) -> None:
    with pytest.raises(ResultsError, match="rounds 4 is not possible for this run: 6 rounds done"):
        resume(folder, schedule__rounds=4)
