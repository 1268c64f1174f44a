"""``python -m raysim.replay``: one change and nothing else, rounds before it taken from the run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any, Never

import pytest

from raysim.comparison.runs import compare
from raysim.launch import main as launch
from raysim.replay import begin
from raysim.replay.__main__ import main
from raysim.replay.comparison import compare_runs
from raysim.running import simulation
from raysim.running.simulation import run
from raysim.storage.proof_file import PROOF_NAME, read_proof
from raysim.verify import main as verify
from tests.attack.folders import small
from tests.attack.forgeries import made_anew, read, write
from tests.fingerprint import fingerprint
from tests.long_tests import long

RUN: dict[str, Any] = {
    "method__name": "fedprox",
    "workload__clients": 4,
    "engine__proof": "clients",
    "training__batch_size": 8,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with checkpoints after rounds 4 and 6, its last."""
    return run(small(tmp_path_factory.mktemp("run") / "run", **RUN)).folder


def replayed(folder: Path, target: Path, *words: str) -> Path:
    assert main([str(folder), "--output", str(target), *words]) == 0
    return target


@pytest.mark.parametrize("first", [1, 4])
def test_an_unchanged_replay_has_the_bits_of_the_run(folder: Path, tmp_path: Path, first: int) -> None:
    assert fingerprint(replayed(folder, tmp_path / "replay", "--from", str(first))) == fingerprint(folder)


def test_a_replay_of_the_folder_that_one_stands_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert main([".", "--from", "6"]) == 0
    assert fingerprint(folder.with_name("run-replay")) == fingerprint(folder)


@long
def test_two_workers_give_the_same_bits(folder: Path, tmp_path: Path) -> None:
    words = ["--from", "4", "--without", "1"]
    one, two = replayed(folder, tmp_path / "one", *words), replayed(folder, tmp_path / "two", *words, "--actors", "2")
    assert fingerprint(one) == fingerprint(two)
    assert fingerprint(replayed(folder, tmp_path / "same", "--from", "3", "--actors", "2")) == fingerprint(folder)


def test_rounds_before_the_change_are_those_of_the_run(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = replayed(folder, tmp_path / "replay", "--from", "4", "--without", "client 1", "--set", "mu=0.5")
    before, after = (read_proof(each / PROOF_NAME) for each in (folder, path))
    contents = [[entry.content for entry in entries[1:7]] for entries in (before, after)]
    assert contents[0][:3] == contents[1][:3]
    assert not any(first == second for first, second in zip(contents[0][3:], contents[1][3:], strict=True))
    assert after[0].content["settings"]["schedule.without"] == [1]
    assert (
        after[0].content["origin"]
        == json.loads((path / "origin.json").read_text())
        == {
            "run": "run",
            "head": before[-1].head,
            "rounds": 3,
            "head_there": before[3].head,
            "changes": ["method.mu: 0.01 → 0.5", "schedule.without: [] → [1]"],
        }
    )
    (left_out,) = [row for row in compare_runs(folder, path).clients if row.after is None]
    assert left_out.client == 1 and left_out.before is not None  # what it had in round 3 is not compared
    page = (path / "replay.html").read_text()
    assert "Differences by client" in page and "without [1]" in page
    labels = [setting.label for setting in compare([folder, path]).settings]
    assert labels == [
        "mu 0.01, without []",
        "mu 0.5, without [1], replayed from round 4 with method.mu: 0.01 → 0.5; schedule.without: [] → [1]",
    ]
    capsys.readouterr()
    assert verify([str(path), "--all"]) == 0
    out = capsys.readouterr().out
    assert "origin.json" in out and "3 rounds computed again" in out
    assert "the first 3 rounds were taken from the run run with the proof" in out
    assert verify([str(path), "--spot", "5"]) == 0
    assert verify([str(path), "--rounds", "3"]) == 2
    assert "round 3 was taken from the run run" in capsys.readouterr().err
    second = replayed(path, tmp_path / "second", "--from", "6", "--without", "2")
    assert json.loads((second / "origin.json").read_text())["changes"] == ["schedule.without: [1] → [1, 2]"]
    assert main([str(path), "--from", "3"]) == 2
    assert "took its first 3 rounds from the run run" in capsys.readouterr().err
    (path / "origin.json").write_text((path / "origin.json").read_text().replace(before[-1].head, "0" * 64))
    assert verify([str(path)]) == 1
    assert "origin.json: it is not the origin that the proof names" in capsys.readouterr().out


def test_a_replay_without_a_client_is_a_run_that_never_had_it(folder: Path, tmp_path: Path) -> None:
    path = replayed(folder, tmp_path / "replay", "--without", "3")
    scratch = run(small(tmp_path / "scratch", **RUN, schedule__unseen_clients=1)).folder
    assert fingerprint(path) == fingerprint(scratch)


def test_another_seed_of_a_purpose_leaves_the_others(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = replayed(folder, tmp_path / "replay", "--seed-of", "training=7", "--json")
    told = json.loads(capsys.readouterr().out)
    assert told["origin"]["changes"] == ["seed_of: [] → ['training=7']"]
    assert [row["client"] for row in told["clients"]] == [0, 1, 2, 3] and told["mean_difference"]["low"] is not None
    loss = told["measures"]["loss"]
    assert loss["difference"] == loss["replay"] - loss["run"] != 0
    assert (path / "partition.csv").read_text() == (folder / "partition.csv").read_text()
    assert verify([str(path), "--all"]) == 0


def test_the_samples_of_a_client_that_is_left_out_are_attacked_in_both_models(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replayed(folder, tmp_path / "replay", "--without", "2", "--membership", "--json")
    (found,) = json.loads(capsys.readouterr().out)["membership"]
    assert found["client"] == 2 and found["members"] > found["others"] > 0
    assert 0 <= found["after"] <= 1 and found["before"] != found["after"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--from", "7"], "--from 7: the run has no such round. Allowed: 1 to 6."),
        (["--without", "9"], "--without 9: no such client took part. Those that did: 0 (client 0), 1 (client 1)"),
        (["--seed-of", "trainin=7"], "seed_of: 'trainin=7' is not allowed. Did you mean training? Allowed: PURPOSE=SE"),
        (["--from", "3", "--seed-of", "data=1"], "--from 3: streams of data are drawn before the first round."),
        (["--from", "3", "--set", "limit=60"], "--from 3: the rounds before depend on workload.limit too."),
        (
            ["--from", "3", "--set", "local_epochs=3"],
            "--from 3: the rounds before depend on schedule.local_epochs too.",
        ),
        (["--from", "3", "--set", "schedule.sampling=oort"], "the rounds before depend on schedule.sampling too."),
        (["--from", "3", "--set", "compression.down=int8"], "the rounds before depend on compression.down too."),
        (["--set", "privacy.clip=1"], "privacy.clip: 1.0 has no effect with privacy.kind none"),  # the default, typed
        (["--set", "mu"], "--set mu: it is no NAME=VALUE, method.mu=0.1 say."),
        (["--set", "schedule.without=1"], "--set schedule.without: say --without."),
        (["--membership"], "--membership: it tests the samples of clients that are left out."),
        (
            ["--without", "0", "--membership", "--set", "batchnorm_statistics=local"],
            "--membership: clients have models of their own, and there is no global one to attack.",
        ),
        (["--without", "0", "--without", "1", "--without", "2", "--without", "3"], "all 4 clients are left out"),
        (["--without", "0", "--set", "devices.preset=phones"], "schedule.without: [0] is not possible with devices"),
    ],
)
def test_what_cannot_be_replayed_is_refused(
    folder: Path, tmp_path: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(folder), "--output", str(tmp_path / "replay"), *words]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "replay").exists()


def test_a_folder_that_is_not_free_is_refused_before_a_round_is_computed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("raysim.replay.begin._rounds_before", lambda *_: pytest.fail("rounds were computed"))
    (tmp_path / "notes.txt").touch()
    assert main([str(folder), "--from", "4", "--output", str(tmp_path)]) == 2
    assert f"{tmp_path} is not empty (it holds notes.txt). Choose a new or an empty folder" in capsys.readouterr().err


def test_the_folder_is_checked_and_the_rounds_before_too(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(shutil.copytree(folder, tmp_path / "forged"))
    lines = read(path / "rounds.csv")
    lines[2][lines[0].index("loss")] = "0.5"
    write(path / "rounds.csv", lines)
    assert main([str(path)]) == 2
    assert "is not what its proof says" in capsys.readouterr().err
    made_anew(path)
    assert main([str(path), "--from", "4"]) == 2
    assert "the rounds before 4 come out differently here (rounds.csv (round 2, loss): 0.5" in capsys.readouterr().err


def test_ctrl_c_before_its_first_round_leaves_no_folder(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object) -> Never:
        os.kill(os.getpid(), signal.SIGTERM)
        raise AssertionError("the signal ends it")

    monkeypatch.setattr(simulation, "_drive", interrupted)
    assert main([str(folder), "--output", str(tmp_path / "replay"), "--from", "5"]) == 128 + signal.SIGTERM
    assert not (tmp_path / "replay").exists()


def test_a_replay_that_was_killed_while_it_began_does_not_go_on(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would compute the rounds that it says it has taken."""
    target = tmp_path / "replay"
    monkeypatch.setattr(begin, "_take_over", lambda before, path, config: shutil.copytree(path, tmp_path / "killed"))
    main([str(folder), "--output", str(target), "--from", "5", "--set", "method.mu=5"])
    assert launch(["--resume", str(tmp_path / "killed")]) == 1
    said = capsys.readouterr().err
    assert "is a replay that was ended before it had the 4 rounds that it takes" in said and "Go on with" not in said
    assert not (tmp_path / "killed" / "rounds.csv").exists()


def test_no_code_of_a_foreign_folder_is_run_unless_it_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "from raysim.methods.fedavg import METHOD\n\n\nclass Mine(METHOD):\n    pass\n"
    (tmp_path / "their_replayed_method.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    folder = run(small(tmp_path / "run", method__name="their_replayed_method:Mine", schedule__rounds=2)).folder
    del sys.modules["their_replayed_method"]
    assert main([str(folder)]) == 2 and "their_replayed_method" not in sys.modules
    assert "names code of its own: method 'their_replayed_method:Mine'" in capsys.readouterr().err
    assert main([str(folder), "--trust", str(folder), "--from", "2", "--without", "0"]) == 0
