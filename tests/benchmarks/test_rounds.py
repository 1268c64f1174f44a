"""The benchmark of a round: that it still fits raysim's options, and its arithmetic; nothing here is timed."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.rounds import __main__ as rounds
from benchmarks.rounds import bare, data, models, report, running
from benchmarks.rounds.raysim_models import MODELS
from benchmarks.rounds.raysim_run import command_line, given
from benchmarks.rounds.running import Run
from benchmarks.rounds.task import WORKLOADS, Result, Task, Workload, read_result, write_result
from raysim.config.command_line import parse

SMALL = Workload("small", "mlp", clients=3, samples=4, warm_up=1, timed=2, checked=3, noise=1.0, about="a test's")
CHARACTERS = replace(SMALL, model="lstm", kind="characters", cohort=2, batch_size=2)
ROWS = Path(__file__).parents[2] / "docs" / "results" / "rounds.csv"
OF_IMAGES = [name for name, workload in WORKLOADS.items() if workload.kind == "images"]


@pytest.mark.parametrize("name", OF_IMAGES)
def test_raysims_command_line_is_accepted(name: str, tmp_path: Path) -> None:
    task = Task(name, "data.npz", 7, "result.json", ["--engine.dashboard", "false"])
    config = parse(command_line(task, tmp_path)).config
    assert config.model == MODELS[WORKLOADS[name].model]
    assert (config.schedule.rounds, config.schedule.local_epochs) == (7, 1)
    expected = (0.1, 10, 0.05) if name == "P2" else (0.05, 50, 1.0)
    training = config.training
    assert (training.learning_rate, training.batch_size, config.schedule.sampling_rate) == expected
    assert (config.engine.actors, config.engine.threads, config.engine.dashboard) == (2, 1, False)


def test_raysim_reads_the_same_clients_as_all_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WORKLOADS, "small", SMALL)
    path = tmp_path / "small.npz"
    data.make(SMALL, path)
    arrays = data.load(str(path), "small")
    config = parse(command_line(Task("small", str(path), 1, ""), tmp_path)).config
    federation = config.workload.load(lambda purpose: np.random.default_rng(0))
    assert federation.clients == 3
    assert federation.global_test_size == len(arrays.test_labels) == data.TEST_SAMPLES
    for client in range(3):
        images, labels = arrays.client(client)
        whole = next(iter(federation.client(client, "cpu").train.batches(4)))
        np.testing.assert_array_equal(whole.y.numpy(), labels)
        np.testing.assert_allclose(whole.x.numpy(), images, atol=1e-5)


def test_characters_are_given_as_a_program_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WORKLOADS, "small", CHARACTERS)
    path = tmp_path / "small.npz"
    data.make(CHARACTERS, path)
    arrays = data.load(str(path), "small")
    config = given(Task("small", str(path), 5, "", ["--engine.backend", "inline"]), tmp_path)
    assert (config.schedule.rounds, config.schedule.sampling_rate, config.engine.backend) == (5, 2 / 3, "inline")
    federation = config.workload.load(lambda purpose: np.random.default_rng(0))
    whole = next(iter(federation.client(1, "cpu").train.batches(4)))
    np.testing.assert_array_equal(whole.x.numpy(), arrays.client(1)[0])
    np.testing.assert_array_equal(whole.y.numpy(), arrays.client(1)[1])


def test_the_bare_loop_draws_as_many_clients_as_take_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WORKLOADS, "small", replace(SMALL, clients=50, cohort=7))
    drawn = list(bare.cohorts(Task("small", "", 3, "")))
    assert [len(set(clients)) for clients in drawn] == [7, 7, 7]
    assert drawn[0] != drawn[1]
    monkeypatch.setitem(WORKLOADS, "small", SMALL)
    assert list(bare.cohorts(Task("small", "", 1, ""))) == [[0, 1, 2]]


def test_models_start_from_the_same_values_wherever_they_are_built() -> None:
    one, other = models.build("mlp"), models.build("mlp")
    assert one.get_parameter("head.weight").tolist() == other.get_parameter("head.weight").tolist()


def test_a_result_comes_back_with_the_seconds_between_starts(tmp_path: Path) -> None:
    task = Task("W2", "", 2, str(tmp_path / "result.json"))
    write_result(task, [10.0, 12.0], 15.0, 0.5, "numpy")
    result = read_result(tmp_path / "result.json")
    assert (result.starts, result.seconds, result.accuracy) == ([10.0, 12.0], [2.0, 3.0], 0.5)
    assert result.versions == {"numpy": np.__version__}
    with pytest.raises(RuntimeError, match="3 began"):
        write_result(task, [10.0, 12.0, 15.0], 16.0, 0.5)


def a_run(seconds: list[float], accuracy: float, memory: list[tuple[float, int]] | None = None) -> Run:
    starts = [100.0 + sum(seconds[:index]) for index in range(len(seconds))]
    return Run(Result(starts, seconds, accuracy, {}), 4.0, memory or [])


def test_peak_and_growth_of_memory_are_those_of_the_rounds() -> None:
    # Rounds start at 100, 110, 120 and 130 and the last ends at 140; 7 bytes a second are 70 a round.
    memory = [(float(when), 1000 + 7 * (when - 100)) for when in range(90, 140, 5)] + [(150.0, 10**6)]
    run = a_run([10.0, 10.0, 10.0, 10.0], 0.9, memory)
    assert running.peak(run) == 1000 + 7 * 35
    assert running.growth(run) == pytest.approx(70.0)


def test_the_table_has_medians_without_the_warm_up_and_names_who_does_not_train() -> None:
    runs = {"bare": [a_run([9.0, 2.0, 4.0], 0.9), a_run([9.0, 6.0, 3.0], 0.9)], "other": [a_run([9.0, 7.0, 7.0], 0.3)]}
    table = report.table(SMALL, runs, {}, tolerance=0.05)
    # 7 against the median 3.5 of 2, 4, 6 and 3
    assert "| other | 7 (7, 7) | 2.00x | 4.0 |  |  | 0.300 DIFFERS |" in table.text
    assert not table.trains
    assert report.table(SMALL, {"bare": runs["bare"]}, {}, tolerance=0.05).trains


def test_the_run_that_was_looked_at_decides_on_accuracy_but_not_on_seconds() -> None:
    runs = {name: [a_run([9.0, 2.0, 2.0], 0.1)] for name in ("bare", "other")}
    watched = {name: a_run([9.0, 5.0, 5.0], 0.9, [(101.0, 2**30)]) for name in runs}
    table = report.table(SMALL, runs, watched, tolerance=0.05)
    assert "| other | 2 (2, 2) | 1.00x | 4.0 | 1.00 | 0 | 0.900 |" in table.text
    assert table.trains
    assert not report.table(SMALL, runs, {}, tolerance=0.05).trains  # alike, but neither has learned


def test_a_start_that_fails_is_counted_and_the_next_one_has_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(system: running.System, *_: object, watch_memory: bool) -> Run:
        if system.name == "pfl":
            raise running.RunError("pfl on small ended with code 1")
        return a_run([9.0, 2.0], 0.9, [(101.0, 2**20)])

    monkeypatch.setattr(rounds, "run", run)
    starts = rounds.Starts(SMALL, tmp_path / "data.npz", {"pfl": "python", "bare": "python"}, tmp_path / "rows.csv")
    assert starts.run(running.System("pfl", "pfl_app"), 2, "1/1", watched=False) == []
    assert len(starts.run(running.System("bare", "bare"), 2, "1/1", watched=True)) == 1
    assert starts.failed == 1
    assert "pfl on small ended with code 1" in capsys.readouterr().err
    with (tmp_path / "rows.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["workload"], row["system"], row["seconds"], row["peak_mib"]) == ("small", "bare", "9 2", "1")


def test_the_page_has_the_table_of_the_rows() -> None:
    page = (Path(__file__).parents[2] / "benchmarks" / "README.md").read_text(encoding="utf-8")
    for rows in (ROWS, *ROWS.parent.glob("rounds-*.csv")):
        assert report.of_rows(rows) in page, f"python -m benchmarks.rounds --rows {rows} --table"
    table = report.of_rows(ROWS)
    assert "| W1, seconds a round |" in table
