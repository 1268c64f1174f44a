"""The trained model judged again: the numbers of the run's last row, bit for bit."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import raysim
from raysim.evaluate import evaluate_again, main
from raysim.results.result import RunResult
from raysim.storage import checkpoint
from tests.raysim.conftest import Start
from tests.raysim.results.test_load_model import small

JUDGED = ("accuracy", "loss", "balanced_accuracy", "client_accuracy_mean", "client_accuracy_std", "auc")


def same(found: dict[str, float], result: RunResult) -> bool:
    last = result.rounds.iloc[-1]
    judged = [name for name in JUDGED if name in last]
    assert judged and set(judged) <= found.keys()
    return all(found[name] == last[name] or (math.isnan(found[name]) and math.isnan(last[name])) for name in judged)


@pytest.mark.parametrize("method", ["fedavg", "fedpac", "centralized", "local"])
def test_the_numbers_are_those_of_the_last_row(tmp_path: Path, method: str) -> None:
    auc = method == "fedavg"
    judged = {"evaluation__auc": auc, "workload__validation_share": 0.2 * auc}
    config = small(tmp_path / "run", method__name=method, model__name="mlp", **judged)
    result = raysim.run(config)
    number, found = evaluate_again(config, tmp_path / "run")
    assert number == 2 and same(found, result)
    if auc:
        assert found["validation_accuracy"] == result.rounds["validation_accuracy"].iloc[-1]


def test_data_that_drift_at_a_virtual_time_are_judged_as_the_run_did(tmp_path: Path) -> None:
    drift = {"events__drift": "features", "events__drift_factor": 0.2, "events__drift_at": 0.5}
    config = small(tmp_path / "run", devices__preset="uniform", **drift)
    result = raysim.run(config)
    assert same(evaluate_again(config, tmp_path / "run")[1], result)
    assert result.rounds["loss"].iloc[-1] != raysim.run(small(tmp_path / "still")).rounds["loss"].iloc[-1]


def test_the_accuracies_of_each_client_are_a_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raysim.run(small(tmp_path / "run", evaluation__each_client=True))
    assert main([str(tmp_path / "run")]) == 0
    out = capsys.readouterr().out
    assert "client_accuracies" in out and "0=" in out and "rounds.csv" not in out


def test_the_command_prints_every_number_and_where_the_table_has_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = raysim.run(small(tmp_path / "run"))
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}
    assert main([str(tmp_path / "run")]) == 0
    text = capsys.readouterr().out
    printed = dict(line.split() for line in text.splitlines()[1:])
    assert text.startswith("round 2 of 2\n") and "rounds.csv" not in text
    assert same({name: float(value) for name, value in printed.items()}, result)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")} == before  # only read
    accuracy, table = printed["accuracy"], tmp_path / "run" / "rounds.csv"
    table.write_text(table.read_text().replace(accuracy, "0.123"))
    assert main([str(tmp_path / "run")]) == 0
    text = capsys.readouterr().out
    assert f"{accuracy}  (rounds.csv: 0.123)" in text and "environment.json" in text


def test_what_cannot_be_judged_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    result = raysim.run(small(run))

    def refused(folder: Path = run) -> str:
        assert main([str(folder)]) == 2
        error = capsys.readouterr().err
        assert error.startswith("raysim.evaluate: ") and "Traceback" not in error
        return error

    assert "is no run folder" in refused(tmp_path)
    config = (run / "config.yaml").read_text()
    (run / "config.yaml").write_text(config.replace("seed: 0", "seed: 1"))
    assert "damaged: " in refused()
    (run / "config.yaml").write_text(config)
    newest = checkpoint.newest_first(result.folder / "checkpoints")[0]
    (newest / "server.safetensors").write_bytes(b"torn")
    assert "damaged: " in refused()


def test_own_code_is_imported_only_if_it_is_named_or_trusted(
    start: Start, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _ = start("--method=mine:Waiting", "--pictures=false", "--output=run")
    assert code == 0
    monkeypatch.delitem(sys.modules, "mine")
    assert main(["run"]) == 2 and "--method mine:Waiting, or --trust run" in capsys.readouterr().err
    assert "mine" not in sys.modules
    assert main(["run", "--method", "mine:Waiting"]) == 0
    assert main(["run", "--trust", "run"]) == 0


def test_a_run_of_a_gpu_can_be_judged_without_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import torch

    from raysim.config.config_file import stored_text

    config = small(tmp_path / "run")
    raysim.run(config)
    on_gpu = replace(config, engine=replace(config.engine, gpus_per_client=0.5))
    (tmp_path / "run" / "config.yaml").write_text(stored_text(on_gpu))
    if not torch.cuda.is_available():
        assert main([str(tmp_path / "run")]) == 2 and "finds no GPU" in capsys.readouterr().err
    assert main([str(tmp_path / "run"), "--cpu"]) == 0
