"""``python -m raysim.verify``: every forgery is found by the mode that promises it, and what is said of it."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

import raysim
from raysim.cli.foreign_folder import read_config
from raysim.config.config_file import sealed
from raysim.config.registry import public_name
from raysim.crate.run_facts import RunFacts
from raysim.errors import RaysimError, ResultsError
from raysim.running.simulation import run
from raysim.storage.proof_file import ProofFile
from raysim.verify import main, verify_given
from tests.attack.folders import small
from tests.attack.forgeries import COMPUTED, FOLDER, made_anew, read, write
from tests.own_data import QUICK, seeded, three_clients
from tests.watch import stopped


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("runs")
    given: dict[str, dict[str, Any]] = {
        "local": {},
        "fedavg": {"method__name": "fedavg"},
        "other": {"seed": 5, "method__name": "fedavg"},
    }
    return {name: run(small(place / name, **options)).folder for name, options in given.items()}


@pytest.fixture
def folder(runs: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(runs["fedavg"], tmp_path / "run"))


@pytest.mark.parametrize("name", FOLDER)
def test_a_look_at_the_folder_finds_it(folder: Path, runs: dict[str, Path], name: str) -> None:
    for number in range(2):
        shutil.rmtree(folder)
        shutil.copytree(runs["fedavg"], folder)
        what = FOLDER[name](folder, runs["other"], Random(f"{name} {number}"))
        assert main([str(folder)]) == 1, what


@pytest.mark.parametrize("name", COMPUTED)
def test_computing_again_finds_it(
    tmp_path: Path, runs: dict[str, Path], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(runs["local" if name == "value_of_client" else "fedavg"], folder)
    what = COMPUTED[name](folder, runs["other"], Random(name))
    assert main([str(folder)]) == 0, what
    capsys.readouterr()
    assert main([str(folder), "--all"]) == 1, what
    assert capsys.readouterr().out.startswith("differs: ")


def test_equal_is_said_with_what_was_checked(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(runs["fedavg"]), "--all"]) == 0
    head = json.loads((runs["fedavg"] / "summary.json").read_text())["proof"]
    equal, proof = capsys.readouterr().out.splitlines()
    assert equal == (
        "equal: 6 rounds, checkpoint of round 4, checkpoint of round 6, model.safetensors, summary.json, "
        "partition.csv, 6 rounds computed again"
    )
    assert proof == f"proof {head}"
    assert main([str(runs["fedavg"]), "--head", head]) == 0
    assert main([str(runs["fedavg"]), "--head", "1" * 64]) == 1
    for part in ("", head[:12]):  # the first would check nothing, the second could be found by trying
        assert main([str(runs["fedavg"]), "--head", part]) == 2


def test_rounds_are_computed_from_the_nearest_checkpoint(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(folder), "--rounds", "6"]) == 0
    assert "summary.json, 2 rounds computed again" in capsys.readouterr().out
    assert main([str(folder), "--rounds", "6,2"]) == 0
    out = capsys.readouterr().out
    assert "4 rounds computed again" in out and "no checkpoint before round 2 is kept" in out
    lines = read(folder / "rounds.csv")
    place = lines[0].index("loss")
    lines[5][place] = repr(float(lines[5][place]) + 2.0**-52)
    write(folder / "rounds.csv", lines)
    made_anew(folder)
    assert main([str(folder), "--rounds", "3"]) == 0
    capsys.readouterr()
    assert main([str(folder), "--rounds", "5", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["equal"] is False
    (difference,) = found["differences"]
    assert (difference["where"], difference["round"], difference["item"]) == ("rounds.csv", 5, "loss")
    assert difference["what"].endswith(" units in the last place)")


def test_a_state_that_was_forged_is_named_by_tensor(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The chain of another processor, say: all of it holds together, and the state is not what is computed here."""
    folder = run(small(tmp_path / "run", method__name="fedavg", schedule__rounds=2)).folder
    other = run(small(tmp_path / "other", method__name="fedavg", schedule__rounds=2, training__momentum=0.5)).folder
    text = (other / "config.yaml").read_text().rpartition("# SHA-256")[0]
    (other / "config.yaml").write_text(sealed(text.replace("momentum: 0.5", "momentum: 0.0")))
    first, *rest = (other / "proof.jsonl").read_text().splitlines(keepends=True)
    mine = (folder / "proof.jsonl").read_text().splitlines(keepends=True)[0]
    contents = [{key: value for key, value in json.loads(line).items() if key != "head"} for line in (mine, *rest)]
    (other / "proof.jsonl").unlink()
    for content in contents:
        ProofFile(other / "proof.jsonl").append(content)
    made_anew(other)
    assert first != mine and main([str(other)]) == 0
    environment = json.loads((other / "environment.json").read_text())
    environment["versions"]["torch"] = "1.0"
    (other / "environment.json").write_text(json.dumps(environment))
    capsys.readouterr()
    assert main([str(other), "--rounds", "1"]) == 1
    out = capsys.readouterr().out
    assert "differs: clients.csv (round 1, client 0, loss): " in out
    assert "here is another torch: " in out and "in the run 1.0" in out
    assert main([str(other), "--all", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["differences"]
    assert any(each["where"] == "server" and "units in the last place" in each["what"] for each in found)


@pytest.mark.parametrize(("name", "value"), [("synthetic", True), ("clients", 100), ("model_values", 7)])
def test_what_the_summary_says_of_data_and_model_is_computed_again(
    folder: Path, name: str, value: int, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = json.loads((folder / "summary.json").read_text())
    (folder / "summary.json").write_text(json.dumps(summary | {name: value}))
    assert main([str(folder)]) == 0 and main([str(folder), "--all"]) == 1
    assert f"summary.json ({name}): {value}, and {summary[name]} computed again" in capsys.readouterr().out


def test_a_run_that_was_stopped_is_checked_as_far_as_it_went(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = stopped(small(tmp_path / "run"), 3)
    assert main([str(path), "--all"]) == 0
    assert "equal: 3 rounds" in (out := capsys.readouterr().out) and "the run has not ended" in out
    (path / "proof.jsonl").write_bytes((path / "proof.jsonl").read_bytes() + b'{"torn')
    assert main([str(path)]) == 0


@pytest.mark.parametrize("number", ["7", "0", "3,9"])
def test_rounds_that_are_not_there_are_refused(folder: Path, number: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(folder), "--rounds", number]) == 2
    assert re.search(r"--rounds: the run has no round [790]. Allowed: 1 to 6", capsys.readouterr().err)


def test_rounds_and_counts_that_are_none_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([str(folder), "--rounds", "3,x"])
    assert "--rounds: '3,x' are no rounds. Allowed: whole numbers" in capsys.readouterr().err
    for unused in (["--actors", "4"], ["--cpu"], ["--method", "scaffold"], ["--trust", str(folder)]):
        assert main([str(folder), *unused]) == 2
        assert f"{unused[0]}: nothing is computed again. Add --all, or --rounds 3,17" in capsys.readouterr().err
    assert main([str(folder), "--spot=-3"]) == 2
    assert "--spot: -3 client tasks. Allowed: a whole number ≥ 1" in capsys.readouterr().err


def test_without_a_proof_there_is_nothing_to_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = run(small(tmp_path / "run", engine__proof="none", schedule__rounds=1)).folder
    assert main([str(folder)]) == 2
    assert "has no proof.jsonl: the run was made with --proof none" in capsys.readouterr().err
    RunFacts.of(folder)  # of which a crate can be made: it claims no proof
    summary = json.loads((folder / "summary.json").read_text())
    (folder / "summary.json").write_text(json.dumps({**summary, "proof": "ab" * 32}))
    assert main([str(folder)]) == 2
    assert "has no proof.jsonl, and summary.json names its head abab" in capsys.readouterr().err
    with pytest.raises(ResultsError, match="it was removed"):
        RunFacts.of(folder)
    assert main([str(tmp_path)]) == 2
    assert "config.yaml is missing" in capsys.readouterr().err


def test_no_code_of_a_foreign_folder_is_run_unless_it_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "their_method.py").write_text(
        "from raysim.methods.fedavg import METHOD\n\n\nclass Mine(METHOD):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    folder = run(small(tmp_path / "run", method__name="their_method:Mine", schedule__rounds=2)).folder
    del sys.modules["their_method"]
    assert main([str(folder)]) == 0 and "their_method" not in sys.modules
    capsys.readouterr()
    assert main([str(folder), "--all"]) == 2 and "their_method" not in sys.modules
    assert "names code of its own: method 'their_method:Mine'" in capsys.readouterr().err
    assert main([str(folder), "--all", "--method", "their_method:Mine"]) == 0
    assert main([str(folder), "--rounds", "2", "--trust", str(folder)]) == 0


def test_a_run_is_not_computed_with_another_class_than_it_had(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing would read the option, and the run would come out as it was."""
    folder = run(small(tmp_path / "run", schedule__rounds=2)).folder
    assert main([str(folder), "--all", "--method", "local"]) == 0
    for other in ("scaffold", "mine:Scaffold"):
        assert main([str(folder), "--all", "--method", other]) == 2
        said = capsys.readouterr().err
        assert f"--method {other}: the run in {folder} has method local" in said
        assert f"python -m raysim.replay {folder} --set method.name={other}" in said
    options = argparse.Namespace(method="mine:Scaffold", workload=None, model=None, trust=[])  # of another folder
    assert public_name("method", read_config(folder, options, one_of_several=True).method) == "local"


CLIENTS = {"engine__proof": "clients", "engine__checkpoint_every": 1, "engine__keep_checkpoints": 9}
TASKS: dict[str, dict[str, Any]] = {
    "states": {},
    "compressed": {"method__name": "fedavg", "compression__kind": "top-k", "compression__error_feedback": True},
    "stale": {"method__name": "fedavg", "devices__preset": "classes", "timing__mode": "buffered", "timing__buffer": 2},
    "merged": {
        "method__name": "fedavg",
        "workload__clients": 40,
        "workload__limit": 400,
        "workload__min_samples": 1,
        "workload__partition": "iid",
        "schedule__rounds": 2,
    },
}


@pytest.mark.parametrize("kind", TASKS)
def test_client_tasks_are_computed_by_themselves(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """From the states that checkpoints keep, whatever meets in a round; a task that was made up is found."""
    folder = run(small(tmp_path / "run", **TASKS[kind], **CLIENTS)).folder
    assert main([str(folder), "--spot", "1000"]) == 0
    lines = read(folder / "clients.csv")
    out = capsys.readouterr().out
    assert f"{len(lines) - 1} client tasks computed again" in out and "note: " not in out
    place = lines[0].index("update_digest")
    assert all(len(line[place]) == 64 for line in lines[1:])
    lines[-1][place] = "0" * 64
    write(folder / "clients.csv", lines)
    made_anew(folder)
    assert main([str(folder)]) == 0
    capsys.readouterr()
    assert main([str(folder), "--spot", "1000", "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)["differences"]
    client = int(lines[-1][lines[0].index("client")])
    assert (found["item"], found["client"]) == ("update_digest", client)


def test_tasks_behind_checkpoints_that_are_gone_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = run(small(tmp_path / "run", engine__proof="clients")).folder
    assert main([str(folder), "--spot", "2"]) == 0
    out = capsys.readouterr().out
    assert "2 client tasks computed again" in out and "6 of the run's 18 client tasks" in out


def test_without_their_digests_no_tasks_are_computed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(folder), "--spot", "2"]) == 2
    assert "its proof has no digests of client tasks. Make the run with --proof clients" in capsys.readouterr().err


def test_data_and_a_model_that_were_given_in_python_are_given_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given: dict[str, Any] = {"model": seeded(), "clients": three_clients()}
    folder = raysim.run("fedavg", **given, **QUICK, output=str(tmp_path / "run")).folder
    assert main([str(folder)]) == 0
    assert verify_given(folder, rounds=None, **given).equal
    with pytest.raises(RaysimError, match="the data is not the one that"):
        verify_given(folder, rounds=None, model=seeded(), clients=three_clients()[:2])
    assert main([str(folder), "--all"]) == 2
    assert "given in Python" in capsys.readouterr().err
