"""Shows a run's progress from its folder, as the launching process would."""

from __future__ import annotations

import math
from typing import Any

from raysim.progress import Progress, plain_text
from raysim.ui.tables import Tail
from raysim.watching import Watched

EARLIER = 10
"""Rounds that were over before, of which plain lines are printed."""
FAULTS = 10
"""Faults of before that are told."""
_COUNTS = ("round", "local_epochs", "epochs_total", "participants")


class Follower:
    """Tells a display what is new in a run's folder at each :meth:`refresh`."""

    def __init__(self, watched: Watched, progress: Progress) -> None:
        self._watched, self._progress = watched, progress
        self._rounds = Tail(watched.folder / "rounds.csv")
        self._plan = ""
        self._told = 0.0
        self._preparing: Any = None
        self._current: Any = None
        self._done = 0

    def refresh(self) -> dict[str, Any]:
        """Show what is new; the run's status."""
        live = self._watched.live()  # before the table, so that all rounds of a run that is over are in it
        self._notes(live)
        again, rows = self._rounds.read()
        if not self._plan and len(rows) > EARLIER:  # the first look
            self._progress.note(f"{len(rows) - EARLIER} earlier rounds are in {self._watched.folder}/rounds.csv")
        self._plan = self._plan or " "
        for row in rows[-EARLIER:] if again else rows:
            self._progress.round_finished(_as_written(row))
            self._done = int(row["round"])
        self._present(live)
        return live

    def _notes(self, live: dict[str, Any]) -> None:
        plan = live.get("plan") or ""
        if plan and plan != self._plan:
            self._plan = plan
            self._progress.placed(plan)
        new = [fault for fault in live.get("faults", []) if fault["time"] > self._told]
        if len(new) > FAULTS:
            self._progress.note(f"{len(new) - FAULTS} earlier faults are in {self._watched.folder}/run.log")
        for fault in new[-FAULTS:]:
            self._progress.fault(f"round {fault['round']}: {plain_text(fault['text'])}")
            self._told = fault["time"]

    def _present(self, live: dict[str, Any]) -> None:
        preparing, current = live.get("preparing"), live.get("current")
        if preparing != self._preparing:
            label, total = (preparing or self._preparing)["label"], (preparing or self._preparing)["total"]
            self._progress.preparing(label, preparing["done"] if preparing else total, total)
            self._preparing = preparing
        # The status is the older of the two: its round may be in the table by now.
        if current and live["round"] > self._done and (live["round"], current) != self._current:
            self._progress.round_started(live["round"], current["local_epochs"], current["participants"])
            self._progress.clients_done(current["done"], current["participants"])
            self._current = (live["round"], current)


def _as_written(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the table as the round loop told it: whole numbers whole, and what was not measured NaN."""
    plain = {name: math.nan if value is None else value for name, value in row.items()}
    return plain | {name: int(plain[name]) for name in _COUNTS}
