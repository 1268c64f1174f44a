"""The end of a run's tables: their Parquet copies and summary.json."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from raysim import columns
from raysim.config.privacy import NEIGHBORS
from raysim.config.run_config import RunConfig, flatten, to_dict
from raysim.results.costs import costs_to_accuracies
from raysim.schedule import planned_intervals
from raysim.workloads.federated_data import objective_of

if TYPE_CHECKING:
    from pandas import DataFrame

    from raysim.storage.run_folder import RunFolder
    from raysim.workloads.federated_data import Federation

OF_THE_DATA = ("synthetic", "clients", "model_values")
"""Values of the summary that only the data and the model give."""


def conclude(config: RunConfig, folder: RunFolder, federation: Federation, values: int) -> None:
    """Write the Parquet tables and summary.json; curve and page are drawn by the launching process.

    Args:
        folder: its folder, with the tables of all rounds.
    """
    rounds = folder.rounds()
    summary: dict[str, Any] = {
        **of_settings(flatten(to_dict(config)), rounds, len(planned_intervals(config))),
        **dict(zip(OF_THE_DATA, (federation.synthetic, federation.clients, values), strict=True)),
        **of_rounds(rounds, [name for name in objective_of(federation).columns if not columns.is_known(name)]),
    }
    if folder.proof.head:
        summary["proof"] = folder.proof.mark()["head"]
    folder.finish(summary, rounds)


def of_settings(settings: Mapping[str, Any], rounds: DataFrame, planned: int | None) -> dict[str, Any]:
    """The part of the summary that follows from the settings.

    Args:
        settings: by their names, such as ``method.name``.
        rounds: the table of rounds.
        planned: how many rounds they ask for; None: not known.
    """
    found = {"method": settings["method.name"], "workload": settings["workload.name"], "seed": settings["seed"]}
    if planned is not None and len(rounds) < planned:
        found["planned_rounds"] = planned
    if "epsilon" in rounds:
        found |= {"delta": settings["privacy.delta"], NEIGHBORS: rounds[NEIGHBORS].iloc[-1]}
    return found


def of_rounds(rounds: DataFrame, metrics: Iterable[str]) -> dict[str, Any]:
    """The part of the summary that follows from the table of rounds.

    Args:
        metrics: columns of a user's own.
    """
    measure = "accuracy" if "accuracy" in rounds else "loss"
    judged = rounds[rounds[measure].notna()]
    if judged.empty:  # no client of a personal method has a test sample
        judged = rounds.tail(1)
    column = judged[measure].to_numpy()
    best = judged.iloc[int(column.argmax() if measure == "accuracy" else column.argmin())]
    found: dict[str, Any] = {
        "rounds": len(rounds),
        measure: None,  # until a round has measured it
        **_numbers(rounds, metrics),
        f"best_{measure}": float(best[measure]),
        "best_round": int(best["round"]),
    }
    if "validation_accuracy" in judged and judged["validation_accuracy"].notna().any():
        chosen = judged.iloc[int(judged["validation_accuracy"].to_numpy().argmax())]
        found |= {"validated_accuracy": float(chosen["accuracy"]), "validated_round": int(chosen["round"])}
    if costs := costs_to_accuracies(rounds):
        found["costs_to_accuracies"] = costs
    return found


def _numbers(rounds: DataFrame, metrics: Iterable[str]) -> dict[str, float]:
    """The last known value or the sum of every column that belongs into the summary; what was not measured is left out.

    Args:
        metrics: columns of a user's own.
    """
    found: dict[str, float] = {}
    for name, column in (*columns.shown("summary"), *((name, columns.Column(summary="last")) for name in metrics)):
        values = rounds[name].dropna() if name in rounds else None
        if values is not None and not values.empty:
            value = values.sum() if column.summary == "total" else values.iloc[-1]
            found[name] = int(value) if column.unit in ("bytes", "count") else float(value)
    if "seconds_round" in found:
        found["seconds"] = found.pop("seconds_round")  # before and after every resume
    return found
