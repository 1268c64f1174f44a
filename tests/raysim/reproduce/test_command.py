"""``python -m raysim.reproduce`` from its list to a table with verdicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from raysim.reproduce import __main__ as reproduce
from raysim.reproduce import catalog
from raysim.reproduce.catalog import Reproduction

TINY: dict[str, Any] = {
    "title": "FedProx",
    "base": {"workload.name": "digits", "workload.clients": 2, "model.name": "logistic", "schedule.rounds": 1},
    "rows": {
        "FedAvg": {"method.name": "fedavg", "paper": {"accuracy": 50}},
        "FedProx": {"method.name": "fedprox", "paper": {"accuracy": 99}},
    },
    "compare": [{"rows": ["FedProx"], "against": "FedAvg", "measure": "accuracy"}],
    "seeds": [0, 1, 2],
    "measures": {"accuracy": "last round"},
    "reproduces": {"table": "Table 9", "small": {}, "paper": {"base": {"schedule.rounds": 3}}},
}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduce, "reproduction", lambda name: Reproduction(name, "Table 9", TINY))


@pytest.mark.usefixtures("tiny")
def test_a_table_comes_with_verdicts_and_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["tiny", "--output", str(tmp_path), "--workers", "1"]
    assert reproduce.main([*command, "--row", "FedAvg", "--seeds", "0,2"]) == 0
    cells = sorted(path.name for path in tmp_path.rglob("*-seed*.csv"))
    assert cells == ["fedavg-seed0.csv", "fedavg-seed2.csv"]
    assert reproduce.main(command) == 0
    said = capsys.readouterr().out
    # FedProx's small penalty moves two clients' mean by less than 49 points in one round.
    assert "| FedProx − FedAvg | last round | +49.00 |" in said and "| refuted at this size |" in said
    assert "+49.00" in (tmp_path / "table.md").read_text(encoding="utf-8")
    assert reproduce.main([*command, "--json"]) == 0  # nothing is run again
    told = json.loads(capsys.readouterr().out)
    assert told["differences"][0]["verdict"] == "refuted at this size" and told["table"] == "Table 9"
    assert reproduce.main([*command, "--scale", "paper"]) == 2
    assert "is another study; give another --output" in capsys.readouterr().err


def test_a_table_without_its_data_is_refused_and_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("RAYSIM_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    base = {**TINY["base"], "workload.name": "fashion-mnist", "workload.path": "nowhere"}
    monkeypatch.setattr(reproduce, "reproduction", lambda name: Reproduction(name, "9", {**TINY, "base": base}))
    for words in ([], ["--gpus-per-client", "0.3"]):
        assert reproduce.main(["tiny", "--scale", "kept", *words]) == 2
        assert not [*tmp_path.iterdir()]
    assert "FedAvg / seed 0: fashion-mnist is not to be had" in capsys.readouterr().err


def test_without_a_table_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce.main([]) == 0
    assert all(f"\n{name} " in f"\n{capsys.readouterr().out}" for name in [*catalog.reproductions()][:1])
    assert reproduce.main(["fedrad-tabel1"]) == 2
    assert "no such table" in capsys.readouterr().err
