"""A look at a run's folder names each thing that is not what the proof says, and nothing else."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from raysim.config.config_file import sealed
from raysim.driver.summary import OF_THE_DATA, of_rounds, of_settings
from raysim.running.simulation import run
from raysim.storage.proof_file import ProofFile
from raysim.storage.run_folder import RunFolder
from raysim.verification.folder_check import FolderCheck
from tests.attack.folders import small
from tests.attack.forgeries import other_value, read, with_checksum, write

Found = tuple[str, int | None, str]
"""File, round, and what is said of it."""
OLD = "checkpoints/round-000004"
LAST = "checkpoints/round-000006"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("runs")
    late = {"devices__preset": "classes", "timing__mode": "buffered", "timing__buffer": 2}
    given: dict[str, dict[str, Any]] = {"local": {}, "stale": {"method__name": "fedavg", **late}}
    return {name: run(small(place / name, **options)).folder for name, options in given.items()}


@pytest.fixture
def folder(runs: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(runs["local"], tmp_path / "run"))


def differences(folder: Path) -> list[Found]:
    return [(each.where, each.round, each.what) for each in FolderCheck(folder).run().differences]


@pytest.mark.parametrize(("name", "column"), [("rounds", "loss"), ("clients", "train_loss")])
def test_a_table_with_a_summary_that_fits_it(folder: Path, name: str, column: str) -> None:
    lines = read(folder / f"{name}.csv")
    place = lines[0].index(column)
    lines[2][place] = repr(float(lines[2][place]) + 2.0**-40)
    number = int(lines[2][lines[0].index("round")])
    write(folder / f"{name}.csv", lines)
    finish(folder)
    assert differences(folder) == [(f"{name}.csv", number, "its rows are not those of the proof (SHA-256)")]


def test_a_number_added_within_a_value_of_the_summary(folder: Path) -> None:
    summary = json.loads((folder / "summary.json").read_text())
    summary["costs_to_accuracies"][0]["joules"] = 0.01
    (folder / "summary.json").write_text(json.dumps(summary))
    ((where, _, what),) = differences(folder)
    assert where == "summary.json" and "'joules': 0.01" in what


def test_another_round_in_the_place_of_the_last(folder: Path) -> None:
    """All rows are there, and the readers of a table take its last line for the result."""
    lines = read(folder / "rounds.csv")
    lines.append(lines.pop(2))
    write(folder / "rounds.csv", lines)
    finish(folder)
    what = "it cannot be read: line 7 is of round 2, behind one of round 6"
    assert differences(folder) == [("rounds.csv", None, what)]


def test_a_last_line_that_readers_leave_out(folder: Path) -> None:
    table = folder / "rounds.csv"
    table.write_bytes(table.read_bytes().removesuffix(b"\n"))
    finish(folder)
    assert differences(folder) == [("rounds.csv", None, "it cannot be read: its last line is not whole")]


def test_rows_of_a_round_without_a_line(folder: Path) -> None:
    lines = read(folder / "clients.csv")
    lines.append(list(lines[-1]))
    lines[-1][lines[0].index("round")] = "7"
    write(folder / "clients.csv", lines)
    finish(folder)
    assert differences(folder) == [("clients.csv", None, "a row of round '7', of which the proof has no line")]


def test_a_chain_that_leaves_out_a_round(folder: Path) -> None:
    chain = ProofFile(folder / "proof.jsonl")
    contents = [dict(entry.content) for entry in chain.entries]
    contents[6]["round"] = 7
    chain.path.unlink()
    for content in contents:
        ProofFile(chain.path).append(content)
    what = "its lines are not settings, rounds 1, 2, 3 … and an end"
    assert differences(folder) == [("proof.jsonl", None, what)]


def test_a_clients_state_in_the_last_checkpoint(folder: Path) -> None:
    other_value(folder, next((folder / LAST).glob("clients-*.safetensors")))
    assert differences(folder) == [(LAST, 6, "the clients' states are not those of the proof (SHA-256)")]


def test_a_state_of_an_earlier_round_in_a_checkpoint(runs: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(runs["stale"], tmp_path / "run"))
    (path, *_) = sorted((folder / LAST).glob("server-after-*.safetensors"))
    number = int(path.stem.removeprefix("server-after-"))
    other_value(folder, path)
    what = f"the server's state after round {number} is not that of the proof (SHA-256)"
    assert differences(folder) == [(LAST, 6, what)]


def other_chain(facts: dict[str, Any]) -> None:
    facts["tables"]["proof.jsonl"]["head"] = "0" * 64


def other_settings(facts: dict[str, Any]) -> None:
    facts["settings"]["training.learning_rate"] = 0.2


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (other_chain, "it was saved beside another chain"),
        (other_settings, "it is of other settings (training.learning_rate)"),
    ],
)
def test_a_checkpoint_of_another_run(folder: Path, change: Callable[[dict[str, Any]], None], what: str) -> None:
    manifest = json.loads((folder / OLD / "manifest.json").read_text())
    change(manifest["facts"])
    with_checksum(folder / OLD / "manifest.json", manifest)
    assert differences(folder) == [(OLD, 4, what)]


def test_the_last_checkpoint_is_gone(folder: Path) -> None:
    shutil.rmtree(folder / LAST)
    assert differences(folder) == [("checkpoints", None, "that of round 6, the last, is missing")]


def test_more_rounds_were_planned(folder: Path) -> None:
    text = (folder / "config.yaml").read_text().rpartition("# SHA-256")[0]
    (folder / "config.yaml").write_text(sealed(text.replace("rounds: 6", "rounds: 7")))
    assert differences(folder) == [("config.yaml", None, "7 rounds planned, and the run ended after 6")]


def test_a_late_option_that_the_proof_leaves_out_is_its_default(folder: Path) -> None:
    text = (folder / "config.yaml").read_text().rpartition("# SHA-256")[0]
    line = "  batchnorm_statistics: averaged\n"
    assert line in text
    (folder / "config.yaml").write_text(sealed(text.replace(line, "")))  # as before there was the option
    assert differences(folder) == []
    (folder / "config.yaml").write_text(sealed(text.replace("statistics: averaged", "statistics: local")))
    assert differences(folder) == [("config.yaml", None, "'local', and 'averaged' in the proof")]


def test_a_method_of_ones_own_may_plan_another_number_of_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "once_method.py").write_text(
        "from dataclasses import replace\n\nfrom raysim.methods.fedavg import METHOD\n\n\nclass Once(METHOD):\n"
        "    traits = replace(METHOD.traits, intervals=lambda epochs, interval, generator: [epochs])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    folder = run(small(tmp_path / "run", method__name="once_method:Once")).folder
    assert len(RunFolder(folder).rounds()) == 1 and not differences(folder)


def test_a_summary_of_another_chain(folder: Path) -> None:
    summary = json.loads((folder / "summary.json").read_text())
    (folder / "summary.json").write_text(json.dumps(summary | {"proof": "0" * 64}))
    what = "its proof is another head than that of the chain"
    assert differences(folder) == [("summary.json", None, what)]


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("method", "fedavg", "'fedavg', and 'local' by settings and tables"),
        ("workload", "mnist", "'mnist', and 'digits' by settings and tables"),
        ("seed", 3, "3, and 0 by settings and tables"),
        ("auc", 0.99, "no run writes it there"),
        ("planned_rounds", 9, "no run writes it there"),
    ],
)
def test_a_summary_of_something_else(folder: Path, name: str, value: object, what: str) -> None:
    summary = json.loads((folder / "summary.json").read_text())
    (folder / "summary.json").write_text(json.dumps(summary | {name: value}))
    assert differences(folder) == [("summary.json", None, what)]


def finish(folder: Path) -> None:
    """Let the summary and the Parquet files fit the tables."""
    made, check = RunFolder(folder), FolderCheck(folder)
    check.read()
    kept = {name: check.summary[name] for name in (*OF_THE_DATA, "proof")}
    made.finish({**kept, **of_settings(check.settings, made.rounds(), 6), **of_rounds(made.rounds(), [])})
