"""One entry in the table of columns shows a new column everywhere."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pandas as pd
import pytest

import raysim
from raysim import columns
from raysim.columns import CLIENT_COLUMNS, COLUMNS, Column
from raysim.engine.round_columns import measurable
from raysim.errors import ConfigError
from raysim.monitor.progress import Progress
from raysim.report.figures import figures
from raysim.report.plots import run_picture
from raysim.results import measures
from raysim.results.result import comparable
from raysim.running.given_checks import check_functions
from raysim.ui.reading import Reading
from tests.small_runs import small_run, worker_of

MADE_UP = Column(
    "percent",
    "largest",
    title="gold",
    help="share of gold",
    when="devices.on",
    tiles=("last", "best"),
    chart="accuracy",
    label="gold found",
    terminal="gold {}",
    summary="last",
    metric="gauge",
    made=lambda row, clients: row["participants"] / 2 / len(clients),
)


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COLUMNS, "gold", MADE_UP)


def test_pages_pictures_terminal_and_studies() -> None:
    rounds = pd.DataFrame({"round": [1, 2], "gold": [0.5, 0.25], "accuracy": [0.1, 0.2]})
    found = {figure.name: figure.value for figure in figures(rounds)}
    assert found["gold"] == 0.25 and found["best gold"] == 0.5
    assert measures.find("best_gold").of(rounds) == 0.5
    assert run_picture(rounds, "title") != run_picture(rounds.drop(columns="gold"), "title")
    stream = io.StringIO()
    with Progress("toy", 2, 2, stream=stream) as display:
        row = {"round": 1, "local_epochs": 1, "epochs_total": 1, "participants": 1, "seconds_round": 1.0, "gold": 0.5}
        display.round_finished(row)
    assert "gold  50.00 %" in stream.getvalue()


def test_summary_live_page_and_what_may_be_watched(tmp_path: Path) -> None:
    options = {"model.name": "logistic", "workload.clients": 2, "workload.limit": 60, "devices.preset": "phones"}
    config = small_run(tmp_path / "run", options, schedule__rounds=1)
    assert raysim.run(config).summary["gold"] == 0.5
    assert "gold" in measurable(worker_of(config))
    parts = Reading(tmp_path / "run").refresh()
    assert "gold found" in json.dumps(parts["charts"]) and parts["charts"]["series"]["gold"] == [(1.0, 0.5)]
    assert "best gold" in parts["tiles"]["html"]
    with pytest.raises(ConfigError, match="gold"):
        check_functions(None, {"gold": len})


def test_metrics_and_dashboard(monkeypatch: pytest.MonkeyPatch) -> None:
    from monitoring.dashboard import dashboard
    from raysim.actors import metrics
    from tests.actors.test_metrics import Fake

    told: dict[str, object] = {}
    for kind in ("Gauge", "Counter"):
        monkeypatch.setattr(metrics, kind, lambda name, text, keys: Fake(told, name, keys))
    metrics.Metrics("run")
    assert "raysim_gold" in told
    assert len(re.findall(r"ray_raysim_gold\b", json.dumps(dashboard()))) == 2  # a number and a curve


def test_times_of_two_runs_are_not_compared() -> None:
    frame = pd.DataFrame({name: [1] for name in ("seconds_task", "seconds_of_a_method", "clients_per_second", "gold")})
    assert list(comparable(frame)) == ["gold"]


def test_every_entry_is_sound() -> None:
    for name, column in COLUMNS.items():
        assert column.best or "best" not in column.tiles, name
        assert not column.chart or column.chart in columns.CHARTS, name
        assert not column.metric or column.metric == "phase" or column.help, name
        assert column.terminal.count("{}") == bool(column.terminal), name


def test_of_the_engines_columns_methods_may_report_those_that_it_leaves_to_them() -> None:
    """A method may report its own columns, those of training, its weights, and those of wrappers; no others."""
    left = {name for name in (*COLUMNS, *CLIENT_COLUMNS) if columns.may_be_reported(name)}
    wrappers = {"malicious", "clip_bound", "epsilon", "noise_multiplier", "neighbors"}
    assert left == {"steps", "train_loss", "weight"} | wrappers
    assert columns.may_be_reported("principal_axes")
