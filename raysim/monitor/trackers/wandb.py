"""A run in Weights & Biases, offline: in the folder ``wandb`` of ``WANDB_DIR`` or the current folder."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from raysim.monitor.tracker import Tracked, Tracker


class Wandb(Tracker):
    """The experiment is W&B's project; nothing is sent unless ``WANDB_MODE`` says online (``wandb sync`` sends it)."""

    package = "wandb"

    def begin(self, run: Tracked, earlier: str) -> str:
        """Begin a folder for the run."""
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # nothing is ever sent that was not asked for
        import wandb

        mode: Any = os.environ.get("WANDB_MODE", "offline")
        place = Path(os.environ.get("WANDB_DIR", "."))
        if earlier:
            for folder in (place / "wandb").glob(f"offline-run-*-{earlier}"):
                shutil.rmtree(folder, ignore_errors=True)
        self._run = wandb.init(
            project=re.sub(r"[/\\#?%:]", "-", run.experiment)[:128],  # as W&B takes it
            name=run.name,
            id=earlier or None,
            dir=str(place),
            mode=mode,
            config=dict(run.settings) | dict(run.tags),
            tags=[run.tags["method"], run.tags["workload"], f"seed {run.tags['seed']}"],
            settings=wandb.Settings(silent=True, console="off", x_disable_stats=True, disable_code=True),
        )
        return str(self._run.id)

    def log(self, number: int, values: Mapping[str, float]) -> None:
        """Keep the round."""
        self._run.log(dict(values), step=number)

    def end(self, status: str, proof: str) -> None:
        """Close the run; its status and the head of its proof join its settings, the head's first digits its tags."""
        import wandb

        self._run.config.update({"status": status} | ({"proof": proof} if proof else {}))
        if proof:
            self._run.tags = (*(self._run.tags or ()), f"proof {proof[:16]}")  # a tag has 64 signs at most
        self._run.finish(exit_code=0 if status == "finished" else 1)
        if wandb.run is None:  # no other run of this process is under way
            wandb.teardown()  # finish() comes back before W&B's own process has written the file


TRACKER = Wandb
