from __future__ import annotations

from pathlib import Path

import pytest

from raysim.running.simulation import run
from raysim.workloads.errors import WorkloadError
from raysim.workloads.tables.uci import Adult, HeartDisease
from tests.small_runs import small_run
from tests.workloads.conftest import needs_data
from tests.workloads.conftest import seeded as stream


@needs_data
def test_the_four_hospitals_are_clients() -> None:
    federation = HeartDisease(global_test_share=0.0).load(stream)
    table = federation.manifest()
    assert table["name"].tolist() == ["cleveland", "hungarian", "switzerland", "va"]
    assert (table["samples"] + table["test_samples"]).tolist() == [303, 294, 123, 200]
    ill = federation.labels[federation.train.pooled().of(0)].sum()
    ill += federation.labels[federation.local_test.pooled().of(0)].sum()
    assert ill == 139 + 106 + 115 + 149  # as heart-disease.names has them
    assert federation.input_spec(0).input_shape == (13,) and len(federation.input_spec(0).categories) == 7


@needs_data
def test_adult_as_published() -> None:
    federation = Adult(clients=5).load(stream)
    table = federation.manifest()
    assert (int((table["samples"] + table["test_samples"]).sum()), federation.global_test_size) == (32_561, 16_281)
    assert federation.class_names == ("<=50K", ">50K")
    assert int(federation.test_labels.sum()) == 3_846
    assert "numeric columns: age, fnlwgt, education_num, capital_gain" in federation.notes[0]
    assert len(federation.input_spec(0).categories) == 8


@pytest.mark.slow
@needs_data
@pytest.mark.parametrize(("name", "least"), [("heart-disease", 0.7), ("adult", 0.78)])
def test_one_command_each(name: str, least: float, tmp_path: Path) -> None:
    options = {"workload.name": name, "schedule.rounds": 3, "workload.clients": 4, "schedule.local_epochs": 1}
    result = run(small_run(tmp_path / "run", options, training__batch_size=64))
    assert result.rounds["accuracy"].iloc[-1] > least


def test_files_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WorkloadError, match=rf"no adult\.data, adult\.test in {tmp_path}; .*raysim\.data fetch adult"):
        Adult(path=str(tmp_path)).load(stream)
    monkeypatch.delenv("RAYSIM_DATA", raising=False)
    with pytest.raises(WorkloadError, match=r"RAYSIM_DATA is not set; set path to the folder of processed\.clevel"):
        HeartDisease().load(stream)
