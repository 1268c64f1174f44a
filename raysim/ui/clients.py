"""The clients of a run as the page shows them: who is late, lost, or served worse than the others."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from raysim.ui.tables import thinned

LATE = 2.0
"""A client task that took more than this many times the median of its round is late."""
UNFAIR = 0.05
"""A client of the worst tenth is marked if its accuracy is further than this below the median of the clients."""
SHOWN = 40
"""Rows of each kind that are sent; with more clients than that the middle is left out."""


@dataclass
class _Client:
    """What is known of one client so far."""

    client: int
    name: str = ""
    samples: float | None = None
    rounds: int = 0
    round: float = 0
    accuracy: float | None = None
    loss: float | None = None
    seconds: float | None = None
    ratio: float | None = None
    """Seconds of its last task over the median of that round."""


class Clients:
    """Grows with the rows of ``clients.csv``; holds one entry for each client that ever took part."""

    def __init__(self) -> None:
        self._known: dict[int, _Client] = {}

    def clear(self) -> None:
        """Forget all rows."""
        self._known.clear()

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """The rows of whole rounds."""
        by_round: dict[float, list[Mapping[str, Any]]] = {}
        for row in rows:
            by_round.setdefault(row["round"], []).append(row)
        for number, members in by_round.items():
            spent = [row["seconds_task"] for row in members if row.get("seconds_task") is not None]
            median = statistics.median(spent) if spent else 0.0
            for row in members:
                known = self._known.setdefault(int(row["client"]), _Client(int(row["client"])))
                known.name, known.samples = str(row.get("name") or ""), row.get("samples")
                known.rounds, known.round = known.rounds + 1, number
                known.seconds = row.get("seconds_task")
                known.ratio = known.seconds / median if known.seconds is not None and median > 0 else None
                if row.get("accuracy") is not None:
                    known.accuracy = row["accuracy"]
                loss = row.get("loss", row.get("train_loss"))
                known.loss = loss if loss is not None else known.loss

    def view(self, lost: Mapping[str, int]) -> dict[str, Any]:
        """What the page shows.

        Args:
            lost: client → tasks of it that failed or were sent again.
        """
        everyone = list(self._known.values())
        judged = sorted((c for c in everyone if c.accuracy is not None), key=lambda c: (c.accuracy or 0.0, c.client))
        accuracies = [client.accuracy or 0.0 for client in judged]
        median = statistics.median(accuracies) if accuracies else 0.0
        tenth = judged[: max(1, len(judged) // 10)] if len(judged) > 1 else []
        unfair = {client.client for client in tenth if (client.accuracy or 0.0) < median - UNFAIR}
        late = sorted(
            (c for c in everyone if c.ratio is not None and c.ratio > LATE), key=lambda c: (-(c.ratio or 0.0), c.client)
        )
        losers = sorted((int(client) for client in lost), key=lambda client: (-lost[str(client)], client))
        chosen = judged if len(judged) <= 2 * SHOWN else judged[:SHOWN] + judged[-SHOWN:]
        unjudged = [client for client in everyone if client.accuracy is None][:SHOWN]
        picked = {c.client: c for c in (*chosen, *late[:SHOWN], *unjudged)}
        picked |= {number: self._known.get(number, _Client(number)) for number in losers[:SHOWN]}
        # As for the report: worst accuracy first.
        order = sorted(picked.values(), key=lambda c: (c.accuracy is None, c.accuracy or 0.0, c.client))
        slow = {client.client for client in late}
        rows = [
            {
                **vars(client),
                "late": client.client in slow,
                "lost": int(lost.get(str(client.client), 0)),
                "unfair": client.client in unfair,
            }
            for client in order
        ]
        spread = [value for _, value in thinned([(0.0, value) for value in accuracies], 240)]
        counts = {"all": len(everyone), "late": len(late), "lost": len(losers), "unfair": len(unfair)}
        low, high = (accuracies[0], accuracies[-1]) if accuracies else (None, None)
        return {
            "rows": rows,
            "counts": counts,
            "spread": spread,
            "lowest": low,
            "median": median if accuracies else None,
            "highest": high,
        }
