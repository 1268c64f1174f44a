"""What a finished run leaves beside its tables: summary.json, the curve and the page."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from raysim.config.privacy import NEIGHBORS
from raysim.config.run_config import RunConfig, to_dict
from raysim.results.result import costs_to_accuracies
from raysim.schedule import planned_intervals
from raysim.storage.atomic_files import write_atomically
from raysim.storage.run_record import run_title
from raysim.workloads.objective import objective_of

if TYPE_CHECKING:
    from raysim.storage.run_folder import RunFolder
    from raysim.workloads.federated_data import Federation


def conclude(config: RunConfig, folder: RunFolder, federation: Federation, values: int) -> None:
    """Write summary.json, the Parquet tables and, unless they are not wanted, the curve and the page.

    Args:
        folder: its folder, with the tables of all rounds.
    """
    plain, planned = to_dict(config), len(planned_intervals(config))
    rounds = folder.rounds()
    measure = "accuracy" if "accuracy" in rounds else "loss"
    judged = rounds[rounds[measure].notna()]
    if judged.empty:  # no client of a personal method has a test sample
        judged = rounds.tail(1)
    last = judged.iloc[-1]
    column = judged[measure].to_numpy()
    best = judged.iloc[int(column.argmax() if measure == "accuracy" else column.argmin())]
    summary: dict[str, Any] = {
        "method": plain["method"]["name"],
        "workload": plain["workload"]["name"],
        "synthetic": federation.synthetic,
        "seed": config.seed,
        "clients": federation.clients,
        "model_values": values,
        "rounds": len(rounds),
        **({"planned_rounds": planned} if len(rounds) < planned else {}),
        "local_epochs": int(rounds["local_epochs"].sum()),
        **({"accuracy": float(last["accuracy"])} if measure == "accuracy" else {}),
        "loss": float(last["loss"]),
        f"best_{measure}": float(best[measure]),
        "best_round": int(best["round"]),
        "bytes_down": int(rounds["bytes_down"].sum()),
        "bytes_up": int(rounds["bytes_up"].sum()),
        "seconds": float(rounds["seconds_round"].sum()),  # before and after every resume
    }
    if "validation_accuracy" in judged and judged["validation_accuracy"].notna().any():
        chosen = judged.iloc[int(judged["validation_accuracy"].to_numpy().argmax())]
        summary |= {"validated_accuracy": float(chosen["accuracy"]), "validated_round": int(chosen["round"])}
    further = [name for name in objective_of(federation).columns if name not in ("accuracy", "loss")]
    of_clients = ("client_accuracy_mean", "client_accuracy_std", "client_accuracy_worst_decile", "unseen_accuracy")
    for name in (*of_clients, *further):
        if name in last and not math.isnan(last[name]):
            summary[name] = float(last[name])
    if "virtual_seconds" in rounds:
        summary |= {
            "virtual_seconds": float(rounds["virtual_seconds"].iloc[-1]),
            "joules": float(rounds["joules"].sum()),
        }
    if "epsilon" in rounds:
        spent = rounds.iloc[-1]
        summary |= {"epsilon": float(spent["epsilon"]), "delta": config.privacy.delta, NEIGHBORS: spent[NEIGHBORS]}
        summary["noise_multiplier"] = float(spent["noise_multiplier"])
    costs = costs_to_accuracies(rounds)
    if costs:
        summary["costs_to_accuracies"] = costs
    folder.finish(summary)
    if not config.pictures:
        return  # loading and using the plotting library is most of a short run's time
    from raysim.report import plots, run_page

    write_atomically(folder.path / "curve.png", plots.run_picture(rounds, run_title(plain, summary)))
    run_page.page(folder.path)
