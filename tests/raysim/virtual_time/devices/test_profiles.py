"""Device profiles: presets from a seed, and traces from files."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raysim.config.timing import Devices
from raysim.errors import ConfigError
from raysim.virtual_time.devices.profiles import make_profiles


def test_seconds_of_a_task_by_hand() -> None:
    devices = Devices(preset="uniform", seconds_per_sample=0.5, bandwidth_down=8.0, bandwidth_up=4.0, latency=0.25)
    found = make_profiles(devices, 2, seed=0)
    # 2 · 0.25 + 3 MB / (1 MB/s) + 2 MB / (0.5 MB/s) + 0.5 · samples
    assert found.seconds(np.array([10.0, 20.0]), 3_000_000, 2_000_000).tolist() == [12.5, 17.5]


def test_three_classes_of_devices() -> None:
    found = make_profiles(Devices(preset="classes", seconds_per_sample=1.0), 9, seed=0)
    assert sorted(found.seconds_per_sample) == [1.0] * 3 + [2.0] * 3 + [5.0] * 3


def test_phones_are_log_normal_around_the_median() -> None:
    found = make_profiles(Devices(preset="phones", seconds_per_sample=0.02, spread=0.5), 20_000, seed=0)
    for column, median in (
        (found.seconds_per_sample, 0.02),
        (found.bandwidth_down, 20e6 / 8),
        (found.bandwidth_up, 5e6 / 8),
    ):
        logs = np.log(column / median)
        assert abs(logs.mean()) < 0.02
        assert abs(logs.std() - 0.5) < 0.01


def test_a_day_of_phones_charges_about_seven_hours_in_a_day() -> None:
    found = make_profiles(Devices(preset="day"), 300, seed=0).availability
    assert found is not None
    minutes = range(0, 2 * 1440, 5)
    shares = [np.mean([found.until(client, 60.0 * minute) > 0 for minute in minutes]) for client in range(300)]
    assert abs(np.mean(shares) - 7 / 24) < 0.02


def test_the_seed_decides() -> None:
    one, same, other = (make_profiles(Devices(preset="phones"), 5, seed).bandwidth_down for seed in (1, 1, 2))
    assert (one == same).all()
    assert (one != other).all()


def trace(tmp_path: Path, text: str, suffix: str = ".csv", **options: Any) -> Devices:
    path = tmp_path / f"trace{suffix}"
    path.write_text(text, encoding="utf-8")
    return Devices(preset="trace", trace=str(path), **options)


def test_a_table_of_devices(tmp_path: Path) -> None:
    text = "seconds_per_sample,bandwidth_up,available\n0.1,8,0-10;20-30\n0.2,,\n"
    found = make_profiles(trace(tmp_path, text, bandwidth_down=16.0), 2, seed=0)
    assert found.seconds_per_sample.tolist() == [0.1, 0.2]
    assert found.bandwidth_up.tolist() == [1e6, 5e6 / 8]  # what a row leaves out is the option's
    assert found.bandwidth_down.tolist() == [2e6, 2e6]
    assert found.availability is not None
    assert found.availability.next(0, 11.0) == 20.0
    assert np.isinf(found.availability.next(1, 0.0))


def test_rows_with_the_clients_numbers_may_be_in_any_order(tmp_path: Path) -> None:
    """Rows were taken in the order of the file, whatever the column said: clients got the devices of others."""
    text = "client,seconds_per_sample,available\n3,0.4,\n2,0.3,2-9\n0,0.1,0-9\n1,0.2,1-9\n"
    rows = [{"seconds_per_sample": 0.2, "client": 1.0}, {"client": "7"}, {"client": 0, "seconds_per_sample": 0.1}]
    for devices in (trace(tmp_path, text), trace(tmp_path, json.dumps(rows), ".json")):
        found = make_profiles(devices, 2, seed=0)
        assert found.seconds_per_sample.tolist() == [0.1, 0.2]
    found = make_profiles(trace(tmp_path, text), 3, seed=0)
    assert found.availability is not None
    assert [found.availability.next(client, 0.0) for client in range(3)] == [0.0, 1.0, 2.0]


def test_json_with_windows_and_fedscales_columns(tmp_path: Path) -> None:
    rows = [{"computation": 50, "communication": 8000, "available": [[0, 10]], "period": 20}]
    found = make_profiles(trace(tmp_path, json.dumps(rows), ".json"), 1, seed=0)
    assert found.seconds_per_sample.tolist() == pytest.approx([0.15])  # forward and backward
    assert found.bandwidth_down.tolist() == found.bandwidth_up.tolist() == [1e6]
    assert found.availability is not None
    assert found.availability.next(0, 30.0) == 40.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bandwidth_up\n1\n", "has 1 rows for 2 clients"),
        ("bandwidth_up,speed\n1,2\n1,2\n", "unknown column 'speed'. Allowed: seconds_per_sample"),
        ("bandwidth_up\n1\n0\n", "row 2: bandwidth_up 0 is not allowed. Allowed: a number > 0"),
        ("bandwidth_up\n-1\n1\n", "row 1: bandwidth_up -1 is not allowed"),
        ("bandwidth_up\n1\nfast\n", "row 2: bandwidth_up 'fast' is not allowed"),
        ("drop_probability\n0\n1.5\n", "row 2: drop_probability 1.5 is not allowed. Allowed: a number from 0 to 1"),
        ("bandwidth_up,available\n1,0-5;4-9\n1,\n", "client 0: window 4-9 begins before"),
        ("bandwidth_up,available\n1,0-5\n1,noon\n", "row 2: available 'noon' is not allowed"),
        ("bandwidth_up,available,period\n1,0-5,9\n1,0-5,8\n", "period must be the same number > 0 in every row"),
        ("bandwidth_up,available,period\n1,0-5,a day\n1,0-5,8\n", "period must be the same number > 0 in every row"),
        (
            "client,watts\na,1\nb,1\n",
            "row 1: client 'a' is not allowed. Allowed: a whole number ≥ 0. Or leave",
        ),
        ("client,watts\n0,1\n0.5,1\n", "row 2: client 0.5 is not allowed. Allowed: a whole number ≥ 0."),
        ("client,watts\n0,1\n,1\n", "row 2: client None is not allowed"),
        ("client,watts\n4,1\n1,1\n1,1\n", "has client 1 in the rows 2 and 3. Give each client one row."),
        ("client,watts\n1,1\n2,1\n", "has no row with client 0. Give each of the clients 0 to 1 a row, or leave"),
        ("client,watts\n5,1\n1,1\n0,-1\n", "row 3: watts -1 is not allowed"),
        ("", "cannot be read as CSV"),
    ],
)
def test_what_is_wrong_with_a_trace_is_said(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=r"^devices\.trace") as caught:
        make_profiles(trace(tmp_path, text), 2, seed=0)
    assert message in str(caught.value)


def test_an_empty_line_of_windows_is_a_client_that_is_never_there(tmp_path: Path) -> None:
    found = make_profiles(trace(tmp_path, "available\n0-5\n\n0-7\n"), 3, seed=0)
    assert found.availability is not None
    assert [found.availability.next(client, 0.0) for client in range(3)] == [0.0, math.inf, 0.0]


@pytest.mark.parametrize("text", ["{", "3", '[{"bandwidth_up": 1}, 2]'])
def test_json_that_is_no_table(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="cannot be read as JSON"):
        make_profiles(trace(tmp_path, text, ".json"), 1, seed=0)


def test_a_trace_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no\.csv cannot be read"):
        make_profiles(Devices(preset="trace", trace=str(tmp_path / "no.csv")), 1, seed=0)
