"""The columns of a run's tables: what each holds and everywhere it is shown. A new column is one entry here.

The entry also makes its values, where they follow from the round's other columns and its clients' rows (``made``).

Read by tables (:mod:`raysim.storage.csv_table`), the terminal, TensorBoard, Ray's metrics and their Grafana dashboard,
``summary.json``, pages, comparisons and studies. Columns that a method reports, and metrics given in Python, have no
entry: they are plain numbers of which neither the larger nor the smaller one is better.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from raysim.columns.column import Best as Best
from raysim.columns.column import Chart as Chart
from raysim.columns.column import Column as Column
from raysim.columns.column import How as How
from raysim.columns.column import Row as Row

CHARTS: Mapping[str, Chart] = {
    "accuracy": Chart("Accuracy", "percent", costs=True),
    "loss": Chart("Loss", "plain", costs=True),
    "phases": Chart("Seconds of a round", "seconds", stacked=True),
    "utilization": Chart("Busy share of slots", "percent", whole=True),
}

_RATE, _LOSS = Column("percent", "largest"), Column("plain", "smallest")
_COUNT, _ALWAYS = Column("count"), Column("count", when="always")
_TIME = Column("seconds", "smallest", timing=True)
_DECOMPOSED = replace(_LOSS, when="evaluation.decompose_every")
_JUDGED: dict[str, Column] = {
    "accuracy": Column(
        "percent",
        "largest",
        help="last measured test accuracy, 0 to 1",
        tiles=("last", "best"),
        chart="accuracy",
        label="test accuracy",
        terminal="accuracy {}",
        summary="last",
        against_costs=True,
        metric="gauge",
    ),
    "balanced_accuracy": replace(_RATE, tiles=("last",), summary="last", help="mean over classes of their accuracy"),
    "loss": Column(
        "plain",
        "smallest",
        help="last measured test loss",
        tiles=("last",),
        chart="loss",
        label="test",
        terminal="loss {}",
        summary="last",
        against_costs=True,
        metric="gauge",
    ),
    "client_accuracy_mean": Column(
        "percent",
        "largest",
        title="mean of clients",
        help="mean accuracy of the clients on their own test sets",
        tiles=("last",),
        chart="accuracy",
        band="client_accuracy_std",
        summary="last",
        against_costs=True,
    ),
    "client_accuracy_std": Column(
        "percent",
        "smallest",
        title="std over clients",
        help="standard deviation of the accuracy over clients",
        tiles=("last",),
        summary="last",
    ),
    "client_accuracy_worst_decile": Column(
        "percent",
        "largest",
        title="worst 10 % of clients",
        help="mean accuracy of the worst tenth of the clients",
        tiles=("last",),
        chart="accuracy",
        summary="last",
        metric="gauge",
    ),
}
SPREAD = ("client_accuracy_mean", "client_accuracy_std", "client_accuracy_worst_decile")
"""How the accuracies of clients on their own test sets are spread."""
VALIDATION, UNSEEN, TUNED = "validation_", "unseen_", "tuned_"
EACH_CLIENT = "client_accuracies"
"""Column with the accuracy of every judged client, ``CLIENT=ACCURACY`` with spaces between, ascending."""
_AGAIN: Mapping[str, tuple[str, ...]] = {
    VALIDATION: ("accuracy", "loss"),
    UNSEEN: ("accuracy", "loss"),
    TUNED: ("accuracy", "loss", *SPREAD),
}
"""Beginning of a name → columns that are measured once more: on validation sets, on clients that never take part, and
after fine-tuning."""


def _again(start: str, name: str) -> Column:
    """A column that is measured once more is shown in tables alone, but for the accuracy of unseen clients."""
    column = _JUDGED[name]
    if f"{start}{name}" != "unseen_accuracy":
        return Column(column.unit, column.best)
    return Column(column.unit, column.best, "unseen clients", summary="last", tiles=("last",))


def _train_loss(row: Row, clients: Sequence[Row]) -> float:
    """The mean of the clients' training losses by their samples; nan where one has none."""
    import numpy as np

    losses = [client.get("train_loss", math.nan) for client in clients]
    return float(np.average(losses, weights=[client["samples"] for client in clients])) if clients else math.nan


COLUMNS: dict[str, Column] = {
    **_JUDGED,
    "train_loss": Column(
        "plain",
        "smallest",
        help="mean training loss of the last round",
        when="always",
        chart="loss",
        label="training",
        terminal="train loss {}",
        metric="gauge",
        reported=True,
        made=_train_loss,
    ),
    EACH_CLIENT: Column("text"),
    TUNED + EACH_CLIENT: Column("text"),
    "label_accuracy": replace(_RATE, summary="last"),
    "absolute_error": replace(_LOSS, summary="last"),
    "auc": _RATE,
    "attack_success": _RATE,
    **{start + name: _again(start, name) for start, names in _AGAIN.items() for name in names},
    "local_loss": _DECOMPOSED,
    "distribution_shift_loss": _DECOMPOSED,
    "aggregation_loss": _DECOMPOSED,
    "distribution_shift_term": _DECOMPOSED,
    "aggregation_term": _DECOMPOSED,
    "global_loss": _DECOMPOSED,
    "virtual_seconds": Column(
        "seconds",
        "smallest",
        when="devices.on",
        terminal="virtual {} s",
        summary="last",
        title="virtual time",
        cost="virtual_seconds",
    ),
    "joules": replace(_LOSS, when="devices.on", summary="total", cost="joules"),
    "clients_lost": replace(_COUNT, when="devices.on"),
    "clients_late": replace(
        _COUNT, help="clients whose tasks the step ended; none with timing.late carry", when="devices.on"
    ),
    "staleness": Column(when="devices.on"),
    "epsilon": Column(
        "plain", "smallest", title="ε", when="privacy.counted", tiles=("last",), summary="last", reported=True
    ),
    "neighbors": Column("text", reported=True),
    "noise_multiplier": Column(when="privacy.counted", summary="last", reported=True),
    "clip_bound": Column(when="privacy.clip_quantile", reported=True),
    "round": replace(_COUNT, title="rounds", help="last whole round", tiles=("last",), metric="gauge", cost="rounds"),
    "local_epochs": replace(_ALWAYS, summary="total"),
    "epochs_total": replace(_ALWAYS, title="local epochs", tiles=("last",)),
    "participants": _ALWAYS,
    "clients_per_second": replace(_COUNT, title="clients/s", timing=True, tiles=("last",), terminal="{} clients/s"),
    "bytes_down": Column(
        "bytes",
        "smallest",
        help="bytes of messages to clients",
        when="always",
        terminal="down {}",
        summary="total",
        metric="counter",
    ),
    "bytes_up": Column(
        "bytes",
        "smallest",
        help="bytes of updates from clients",
        when="always",
        terminal="up {}",
        summary="total",
        metric="counter",
    ),
    "bytes": Column(
        "bytes", "smallest", title="sent and received", tiles=("total",), parts=("bytes_down", "bytes_up"), cost="bytes"
    ),
    "seconds_train": replace(_TIME, chart="phases", label="training", metric="phase"),
    "seconds_aggregate": replace(_TIME, chart="phases", label="aggregation", metric="phase"),
    "seconds_evaluate": replace(_TIME, chart="phases", label="evaluation", metric="phase"),
    "seconds_round": replace(_TIME, title="time of rounds", tiles=("total",), terminal="{} s", summary="total"),
    "slot_utilization": Column(
        "percent",
        title="busy slots",
        help="share of the last round's training time in which slots were busy, 0 to 1",
        timing=True,
        tiles=("last",),
        chart="utilization",
        label="busy share",
        metric="gauge",
    ),
}
"""Columns of a table of rounds, in the order in which they are shown."""
CLIENT_COLUMNS: Mapping[str, Column] = {
    "client": _COUNT,
    "name": Column("text"),
    **dict.fromkeys(("message_digest", "update_digest", "state_digest"), Column("text")),
    "samples": _COUNT,
    "steps": replace(_COUNT, reported=True),
    "weight": Column(help="share of an update in its server step, before it is weighted for staleness", reported=True),
    "malicious": replace(_COUNT, reported=True),
    "dispatched": Column("seconds"),
    "arrived": Column("seconds"),
    "seconds_task": _TIME,
    "started": replace(_TIME, unit="plain"),
    **dict.fromkeys(("lane", "stage", "phase"), Column("text")),
}
"""Further columns of a table of clients, and of a profile."""


def column_of(name: str) -> Column:
    """The column of that name; one of a method's or a user's own is a time if its name says so, else a plain number."""
    other = _TIME if name.startswith("seconds") else Column()
    return COLUMNS.get(name) or CLIENT_COLUMNS.get(name) or other


def is_known(name: str) -> bool:
    """Whether the engine measures a column of that name, so that no metric of a user's own may have it."""
    return name in COLUMNS or name in CLIENT_COLUMNS


def may_be_reported(name: str) -> bool:
    """Whether a method may report a column of that name: its own, or one that the engine leaves to methods."""
    return column_of(name).reported or not is_known(name)


def shown(place: str) -> Iterator[tuple[str, Column]]:
    """Names and columns that have an entry in a field of :class:`Column` (``terminal``, say), in their order."""
    return ((name, column) for name, column in COLUMNS.items() if getattr(column, place))


def curves(chart: str) -> dict[str, Column]:
    """The columns that a chart draws, by name."""
    return {name: column for name, column in shown("chart") if column.chart == chart}


def title_of(name: str) -> str:
    """A column's name as people read it."""
    return column_of(name).title or name.replace("_", " ")


def label_of(name: str) -> str:
    """A column's name in the legend of its chart."""
    return column_of(name).label or title_of(name)


def is_text(name: str) -> bool:
    """Whether a column holds text."""
    return column_of(name).unit == "text"


def texts() -> tuple[str, ...]:
    """The columns that hold text."""
    return tuple(name for name, column in {**COLUMNS, **CLIENT_COLUMNS}.items() if column.unit == "text")


def is_timing(name: str) -> bool:
    """Whether a column measures the real machine, so that two runs of one config differ in it."""
    return column_of(name).timing


def made(row: Row, clients: Sequence[Row]) -> dict[str, float]:
    """The columns of a round that follow from others.

    Args:
        row: the round's columns so far.
        clients: the rows of its clients.
    """
    return {name: column.made(row, clients) for name, column in COLUMNS.items() if column.made is not None}


def asked(config: Any) -> Iterator[str]:
    """The columns that every run has, and those that options of this config ask for."""
    for name, column in shown("when"):
        if column.when == "always" or attrgetter(column.when)(config):
            yield name
