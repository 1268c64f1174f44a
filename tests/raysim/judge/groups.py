"""Small runs of two methods, and folders of a search as one would leave them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

import raysim

OPTIONS: dict[str, Any] = {
    "limit": 200,
    "clients": 4,
    "rounds": 2,
    "validation_share": 0.2,
    "backend": "inline",
    "pictures": False,
}
A, B = {"method": "fedavg"}, {"method": "fedprox", "mu": 0.1}


def run(folder: Path, seed: int, **options: Any) -> Path:
    """A run of digits in this process, 0.1 s."""
    raysim.run(**{"workload": "digits", "model": "logistic", **OPTIONS, **options}, seed=seed, output=str(folder))
    return folder


def copied(folder: Path, place: Path) -> Path:
    """A folder of a group that holds a copy of this run."""
    shutil.copytree(folder, place / folder.name)
    return place / folder.name


def search(folder: Path, of: Path, rates: Sequence[float], measure: str = "validation_accuracy") -> Path:
    """A search of the learning rate whose first trial is the best, with the settings of a run."""
    (folder / "results").mkdir(parents=True)
    request = {"space": ["training.learning_rate=0.1:1.0"], "batch": 4, "seeds": [0], "measure": measure}
    (folder / "search.yaml").write_text(yaml.safe_dump(request), encoding="utf-8")
    settings = yaml.safe_load((of / "config.yaml").read_text(encoding="utf-8"))
    for number, rate in enumerate(rates, start=1):
        settings["training"]["learning_rate"] = rate
        cell = folder / "results" / f"trial-{number}-seed0.yaml"
        cell.write_text(yaml.safe_dump(settings), encoding="utf-8")
        values = {"round": [1], "epochs_total": [2], "accuracy": [0.5], "validation_accuracy": [1 / number]}
        values |= {"validation_loss": [number]}
        pd.DataFrame(values).to_csv(cell.with_suffix(".csv"), index=False)
    return folder
