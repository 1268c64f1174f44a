"""Progress of a run in the terminal: a live display, or one plain line per round where there is no terminal.

It is fed by plain numbers and texts, so the rounds may run in another process. Nothing here changes a result.
"""

from __future__ import annotations

import math
import re
import statistics
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TextIO

from raysim import columns, units
from raysim.engine.observer import Observer
from raysim.monitor.live_display import LiveDisplay
from raysim.workloads.naming import data_name, model_name

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

# Tracebacks from other processes arrive colored for a terminal that is not this one.
_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


def title_of(config: Mapping[str, Any]) -> str:
    """One line that names the run, from its config as plain data."""
    method, data, model = config["method"]["name"], data_name(config["workload"]), model_name(config["model"])
    return f"{method} on {data} with {model}, seed {config['seed']}"


def plain_text(text: str) -> str:
    """A text without a terminal's color codes."""
    return _ESCAPE.sub("", text)


class Progress(LiveDisplay, Observer):
    """Context manager that shows a run's progress.

    Args:
        total_epochs: local epochs of all rounds together.
        stream: where to write; standard error by default.
        interactive: live display or plain lines; by default live if the stream is a terminal.
        elapsed: seconds since the run began.

    Rounds are counted from 1. A resumed run simply starts with a later one.
    """

    def __init__(
        self,
        title: str,
        rounds: int,
        total_epochs: int,
        stream: TextIO | None = None,
        interactive: bool | None = None,
        elapsed: float = 0.0,
    ) -> None:
        super().__init__(stream, interactive)
        self._title = title
        self._rounds = rounds
        self._total_epochs = total_epochs
        self._start = time.monotonic() - elapsed
        self._first_round: float | None = None
        self._round_seconds = 0.0
        self._rounds_done = 0
        self._round: int | None = None
        self._local_epochs = 0
        self._clients = (0, 0)
        self._preparation: tuple[str, int, int] | None = None
        self._row: Mapping[str, Any] = {}
        self._known: dict[str, float] = {}
        self._seconds_per_epoch: list[float] = []
        self._seconds_left = math.nan
        self._left_since = time.monotonic()

    def __enter__(self) -> Self:
        if not self._interactive:
            self._print(self._title)
        return super().__enter__()

    def note(self, text: str) -> None:
        """Print a message (placement plan, fault, warning); on a terminal above the live display."""
        plain = plain_text(text)
        if not self._printed_above(plain):
            self._print(plain)

    def preparing(self, label: str, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` parts of the work before the first round are done."""
        self._preparation = (label, done, total) if done < total else None
        if self._live is None and total > 1 and done == total:
            self._print(f"{label}: done")
        elif self._live is None and total == 1 and done == 0:
            self._print(f"{label} …")

    def round_started(self, round: int, local_epochs: int, participants: int) -> None:
        """Show that a round (from 1) begins, with its numbers of participants and local epochs."""
        if self._first_round is None:
            self._first_round = time.monotonic()
        self._round = round
        self._rounds_done = round - 1
        self._local_epochs = local_epochs
        self._clients = (0, participants)

    def clients_done(self, done: int, participants: int) -> None:
        """Show that ``done`` of the round's participants have returned."""
        self._clients = (done, participants)

    def round_finished(self, row: Mapping[str, Any]) -> None:
        """Show a finished round.

        Args:
            row: round, local_epochs, epochs_total (up to and with this round), participants, seconds_round, and of the
                columns with words for the terminal (:mod:`raysim.columns`) those that the run has; NaN: not measured
                in this round. Further keys are ignored.
        """
        self._row = row
        self._round_seconds += row["seconds_round"]
        self._round = None
        self._rounds_done = row["round"]
        self._known |= {name: row[name] for name in _shown(row) if not math.isnan(row[name])}
        self._seconds_per_epoch.append(row["seconds_round"] / row["local_epochs"])
        # The median, so that a slow first round (start-up, compilation) or a lost worker does not spoil the estimate.
        remaining = self._total_epochs - row["epochs_total"]
        self._seconds_left = remaining * statistics.median(self._seconds_per_epoch)
        self._left_since = time.monotonic()
        if self._live is None:
            self._print(self._line(row))
        else:
            self._live.refresh()

    def times(self) -> str:
        """Seconds until the first round, in all rounds, and from the start until now."""
        now = time.monotonic()
        before = (self._first_round or now) - self._start
        return f"{before:.1f} s to start, {self._round_seconds:.1f} s in rounds, {now - self._start:.1f} s in all"

    def display(self) -> Group:
        """The live display in its present state, as a rich renderable."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        now = time.monotonic()
        left = "?" if math.isnan(self._seconds_left) else _duration(self._seconds_left - (now - self._left_since))
        bars = Table.grid(padding=(0, 2), expand=True)
        bars.add_column(no_wrap=True)
        bars.add_column(no_wrap=True, justify="right")
        bars.add_column(ratio=1)
        bars.add_column(no_wrap=True)
        current = self._rounds_done if self._round is None else self._round
        bars.add_row(
            "round",
            f"{current}/{self._rounds}",
            ProgressBar(total=self._rounds, completed=self._rounds_done),
            f"{_duration(now - self._start)} elapsed, {left} left",
        )
        if self._preparation is not None:
            label, done, total = self._preparation
            single = total == 1
            bar = ProgressBar(total=total, completed=done, pulse=single)
            bars.add_row(label, "" if single else f"{done}/{total}", bar, "")
        if self._round is not None:
            done, participants = self._clients
            bar = ProgressBar(total=participants, completed=done)
            epochs = units.counted(self._local_epochs, "local epoch")
            bars.add_row("clients", f"{done}/{participants}", bar, f"for {epochs}")
        title = Text(self._title, style="bold", no_wrap=True, overflow="ellipsis")
        return Group(title, bars, self._values())

    def _values(self) -> Table:
        """The latest values in fixed places; those the last round did not measure are the last known, dimmed."""
        from rich.table import Table
        from rich.text import Text

        row = self._row
        values = Table.grid(padding=(0, 3))
        if not row:
            return values
        measures: list[Text] = []
        rates: list[Text] = []
        for name, column in _shown(row).items():
            text = _text(column, self._known.get(name, math.nan))
            before, _, after = column.terminal.partition("{}")
            words = Text.assemble(before, (text, "dim" if math.isnan(row[name]) else "bold"), after)
            (measures if column.unit in ("percent", "plain") else rates).append(words)
        values.add_row(Text.assemble("epochs ", (f"{row['epochs_total']}/{self._total_epochs}", "bold")), *measures)
        values.add_row(*rates)
        return values

    def _line(self, row: Mapping[str, Any]) -> str:
        rounds, epochs = len(str(self._rounds)), len(str(self._total_epochs))
        return "  ".join(
            [
                f"round {row['round']:>{rounds}}/{self._rounds}",
                f"epochs {row['epochs_total']:>{epochs}}/{self._total_epochs}",
                f"clients {row['participants']:>4}",
                *(column.terminal.format(f"{_text(column, row[name]):>8}") for name, column in _shown(row).items()),
                f"left {_duration(self._seconds_left):>8}",
            ]
        )

    def _print(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


def _shown(row: Mapping[str, Any]) -> dict[str, columns.Column]:
    """The columns of a row that belong into the terminal, by name."""
    return {name: column for name, column in columns.shown("terminal") if name in row}


def _text(column: columns.Column, value: float) -> str:
    """A value in few and always as many signs, so that lines stay aligned."""
    if math.isnan(value):
        return "-"
    if column.unit == "percent":
        return units.percent(value)
    if column.unit == "bytes":
        return units.byte_count(value)
    if column.unit == "plain":
        return f"{value:.4f}" if abs(value) < 1000 else f"{value:.2e}"
    return f"{value:.2f}"


def _duration(seconds: float) -> str:
    """A duration as h:mm:ss; a negative time left (the estimate was short) is 0."""
    whole = max(0, round(seconds))
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
