"""A run's proof: what its lines hold, and that no disturbance, backend or length changes them."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from raysim.config.late_options import late_defaults
from raysim.launch import main
from raysim.results.result import load_result
from raysim.running.simulation import run
from raysim.storage.csv_table import Table
from raysim.storage.proof_file import ProofFile, read_proof
from raysim.storage.row_digest import cells_digest
from tests.attack.folders import small
from tests.watch import Watch, stopped

VIRTUAL = {"method__name": "fedavg", "devices__preset": "classes", "timing__mode": "buffered", "timing__buffer": 2}


def texts(table: Path) -> list[dict[str, str]]:
    """The rows of a table as they stand in the file."""
    with table.open(newline="") as file:
        return list(csv.DictReader(file))


def proof(folder: Path) -> list[dict[str, Any]]:
    return [dict(entry.content) for entry in read_proof(folder / "proof.jsonl")]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(small(tmp_path_factory.mktemp("whole") / "run")).folder


def test_lines_are_the_settings_the_rounds_and_the_end(whole: Path) -> None:
    first, *rounds, last = proof(whole)
    assert first["settings"]["training.learning_rate"] == 0.1 and first["settings"]["training.last_batch"] == "keep"
    assert "schedule.rounds" not in first["settings"] and "engine.backend" not in first["settings"]
    assert not late_defaults(first["settings"]).keys() & first["settings"].keys()
    assert [line["round"] for line in rounds] == [1, 2, 3, 4, 5, 6]
    assert last["end"] == 6
    assert load_result(whole).summary["proof"] == ProofFile(whole / "proof.jsonl").head


def test_digests_are_those_of_the_tables_in_the_folder(whole: Path) -> None:
    for name in ("rounds", "clients"):
        for line in proof(whole)[1:-1]:
            rows = [row for row in texts(whole / f"{name}.csv") if row["round"] == str(line["round"])]
            assert rows and cells_digest(rows) == line[name]


def test_a_model_has_its_digest_at_the_end(tmp_path: Path) -> None:
    folder = run(small(tmp_path / "run", method__name="fedavg", schedule__rounds=1)).folder
    assert len(proof(folder)[-1]["model"]) == 64


@pytest.mark.parametrize("options", [{}, VIRTUAL], ids=["local", "virtual time"])
def test_stopped_and_resumed_the_chain_is_the_same(tmp_path: Path, whole: Path, options: dict[str, Any]) -> None:
    if options:
        whole = run(small(tmp_path / "whole", **options)).folder
    config = small(tmp_path / "stopped", **options)
    run(config, resume=stopped(config, 3))
    assert (tmp_path / "stopped" / "proof.jsonl").read_bytes() == (whole / "proof.jsonl").read_bytes()


def test_extended_the_chain_is_the_same(tmp_path: Path, whole: Path) -> None:
    short = run(small(tmp_path / "short", schedule__rounds=4)).folder
    assert proof(short)[-1]["end"] == 4
    run(small(tmp_path / "short"), resume=short)
    assert (short / "proof.jsonl").read_bytes() == (whole / "proof.jsonl").read_bytes()


def test_what_a_kill_left_behind_the_checkpoint_is_cut(tmp_path: Path, whole: Path) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / "run"))
    shutil.rmtree(folder / "checkpoints" / "round-000006")
    lines = (folder / "proof.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "proof.jsonl").write_bytes(b"".join(lines[:6]) + lines[6][:40])
    run(small(folder), resume=folder)
    assert (folder / "proof.jsonl").read_bytes() == (whole / "proof.jsonl").read_bytes()


def test_a_damaged_chain_is_said_and_the_checkpoint_before_it_serves(tmp_path: Path, whole: Path) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / "run"))
    lines = (folder / "proof.jsonl").read_text().splitlines(keepends=True)
    lines[6] = lines[6].replace('"round":6', '"round":7')
    (folder / "proof.jsonl").write_text("".join(lines))
    watch = Watch()
    run(small(folder), resume=folder, observer=watch)
    (said,) = (note for note in watch.notes if note.startswith("damaged: "))
    assert "proof.jsonl: line 7 does not follow" in said and said.endswith("from the checkpoint of round 4")
    assert (folder / "proof.jsonl").read_bytes() == (whole / "proof.jsonl").read_bytes()


def test_a_run_goes_on_as_it_began(tmp_path: Path, whole: Path) -> None:
    without = small(tmp_path / "without", engine__proof="none")
    path = stopped(without, 3)
    run(small(path), resume=path)
    assert not (path / "proof.jsonl").exists() and "proof" not in json.loads((path / "summary.json").read_text())
    config = small(tmp_path / "with")
    path = stopped(config, 3)
    run(small(path, engine__proof="none"), resume=path)
    assert (path / "proof.jsonl").read_bytes() == (whole / "proof.jsonl").read_bytes()


def test_the_command_line_ends_with_the_head(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--method=fedavg", "--model=logistic", "--limit=80", "--clients=2", "--rounds=1", "--backend=inline"]
    folder = tmp_path / "run"
    assert main([*words, f"--output={folder}"]) == 0
    head = ProofFile(folder / "proof.jsonl").head
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"proof {head} ")
    assert head in (folder / "report.html").read_text()


def test_columns_of_a_table_may_come_in_any_order_and_late(tmp_path: Path) -> None:
    table = Table(tmp_path / "rounds.csv")
    table.append([{"round": 1, "loss": 0.5}, {"round": 2, "loss": 0.25, "auc": 1.0}])
    assert cells_digest(texts(tmp_path / "rounds.csv")[:1]) == cells_digest(
        [{"loss": "0.5", "round": "1", "seconds_train": "3"}]
    )
