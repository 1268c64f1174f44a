from __future__ import annotations

import io
import math
from typing import Any

import pytest
from rich.console import Console

from raysim.engine.observer import step
from raysim.monitor import progress
from raysim.monitor.progress import Progress


class Clock:
    """Stands in for the time module, so that time left is a number to be checked."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def row(round: int, **changes: Any) -> dict[str, Any]:
    values = {
        "round": round,
        "local_epochs": 5,
        "epochs_total": 5 * round,
        "participants": 10,
        "accuracy": 0.6871,
        "loss": 0.9,
        "train_loss": 0.8,
        "clients_per_second": 2.5,
        "bytes_down": 12_340_000,
        "bytes_up": 999.7,
        "seconds_round": 4.0,
    }
    return values | changes


def shown(display: Progress, width: int = 80, styles: bool = False) -> str:
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(display.display())
    return console.export_text(styles=styles)


def test_plain_lines_are_aligned_and_without_escapes() -> None:
    stream = io.StringIO()
    with Progress("toy", 100, 500, stream=stream) as display:
        display.note("client 3 [node a]: \x1b[36mactor died\x1b[0m")
        display.round_started(1, 5, 10)
        display.clients_done(10, 10)
        display.round_finished(row(1))
        display.round_finished(row(100, accuracy=math.nan, loss=math.nan, loss_of_others=1, seconds_round=3600))
    lines = stream.getvalue().splitlines()
    assert lines[:2] == ["toy", "client 3 [node a]: actor died"]
    assert lines[2] == (
        "round   1/100  epochs   5/500  clients   10  accuracy  68.71 %  loss   0.9000  train loss   0.8000"
        "      2.50 clients/s  down  12.3 MB  up     1 kB      4.00 s  left  0:06:36"
    )
    assert len(lines) == 4
    assert len(lines[3]) == len(lines[2])
    assert "accuracy        -" in lines[3]
    assert lines[3].endswith("left  0:00:00")


def test_a_row_without_accuracy_and_with_virtual_time() -> None:
    stream, values = io.StringIO(), row(1, virtual_seconds=12.34)
    del values["accuracy"]
    with Progress("toy", 100, 500, stream=stream) as display:
        display.round_started(1, 5, 10)
        display.round_finished(values)
        assert "virtual 12.34 s" in shown(display)
        assert "accuracy" not in shown(display)
    assert "accuracy" not in stream.getvalue()
    assert "virtual    12.34 s" in stream.getvalue()


def test_time_left_is_the_median_epoch_and_counts_down(clock: Clock) -> None:
    display = Progress("toy", 10, 50, stream=io.StringIO(), interactive=False)
    assert "? left" in shown(display)
    display.round_finished(row(1, seconds_round=500))  # a slow start must not spoil the estimate
    display.round_finished(row(2, seconds_round=10))
    display.round_finished(row(3, seconds_round=5))  # 100, 2 and 1 s an epoch; 35 epochs remain
    clock.now += 8
    assert "0:00:08 elapsed, 0:01:02 left" in shown(display)
    clock.now += 3600
    assert "1:00:08 elapsed, 0:00:00 left" in shown(display)


def test_display_of_a_running_round() -> None:
    display = Progress("toy [run]", 10, 50, stream=io.StringIO(), interactive=False)
    display.round_finished(row(3))
    display.round_started(4, 1, 8)
    display.clients_done(6, 8)
    text = shown(display)
    lines = text.splitlines()
    assert lines[0].strip() == "toy [run]"
    assert lines[1].startswith("round    4/10  ")
    assert lines[2].startswith("clients   6/8  ")
    assert "for 1 local epoch " in lines[2]
    for part in ("epochs 15/50", "accuracy 68.71 %", "loss 0.9000", "2.50 clients/s", "down 12.3 MB", "4.00 s"):
        assert part in text
    assert all(len(line) <= 80 for line in lines)


def test_values_not_measured_are_the_last_known_dimmed() -> None:
    display = Progress("toy", 10, 50, stream=io.StringIO(), interactive=False)
    display.round_finished(row(1, accuracy=math.nan))
    assert "accuracy -" in shown(display)
    display.round_finished(row(2))
    assert "accuracy \x1b[1m68.71 %" in shown(display, styles=True)
    display.round_finished(row(3, accuracy=math.nan))
    assert "accuracy \x1b[2m68.71 %" in shown(display, styles=True)


def test_live_display_draws_notes_and_its_last_state_and_ends_after_an_error() -> None:
    stream = io.StringIO()
    with pytest.raises(KeyboardInterrupt), Progress("toy", 2, 10, stream=stream, interactive=True) as display:
        display.note("placed [on] 4 \x1b[36mactors")
        display.round_started(1, 5, 10)
        display.round_finished(row(1))
        raise KeyboardInterrupt
    text = stream.getvalue()
    assert "placed [on] 4 actors\n" in text
    assert "accuracy" in text
    assert text.rindex("\x1b[?25h") > text.rindex("toy")  # the cursor is shown again, after the last drawing


def test_a_step_of_the_start_is_shown_while_it_goes_on() -> None:
    stream = io.StringIO()
    with Progress("toy", 2, 10, stream=stream) as display:
        with step(display, "starting Ray"):
            assert stream.getvalue().splitlines() == ["toy", "starting Ray …"]
            assert "starting Ray" in shown(display) and "0/1" not in shown(display)
        assert "starting Ray" not in shown(display)
        display.preparing("eigendecompositions", 1, 3)
        assert "eigendecompositions" in shown(display) and "1/3" in shown(display)
        display.preparing("eigendecompositions", 3, 3)
    assert stream.getvalue().splitlines() == ["toy", "starting Ray …", "eigendecompositions: done"]


def test_the_time_of_a_run_is_its_start_its_rounds_and_all(clock: Clock) -> None:
    display = Progress("toy", 2, 10, stream=io.StringIO(), elapsed=1.5)
    clock.now += 4.5
    for number in (1, 2):
        display.round_started(number, 5, 10)
        clock.now += 10
        display.round_finished(row(number, seconds_round=9.5))
    clock.now += 1
    assert display.times() == "6.0 s to start, 19.0 s in rounds, 27.0 s in all"
