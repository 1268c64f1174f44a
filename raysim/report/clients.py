"""The clients of a run as its page shows them: who is late, lost, served worse than the others, or an attacker."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from raysim import units
from raysim.report.figures import cell
from raysim.report.html import MARKS, Bar, Cell, Marks, Table

if TYPE_CHECKING:
    from pandas import DataFrame

LATE = 2.0
"""A client task that took more than this many times the median of its round is late."""
UNFAIR = 0.05
"""A client of the worst tenth is marked if its accuracy is further than this below the median of the clients."""
BLOCK = 10_000
"""Rows of a whole table that are read at a time, rounded up to whole rounds."""
SHOWN = 40
"""Rows of each kind that are sent; with more clients than that the middle is left out."""


@dataclass
class _Client:
    """Figures of one client so far."""

    client: int
    name: str = ""
    samples: float | None = None
    rounds: int = 0
    round: float = 0
    accuracy: float | None = None
    loss: float | None = None
    weight: float | None = None
    malicious: bool = False
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
                known.seconds, known.weight = row.get("seconds_task"), row.get("weight")
                known.malicious = bool(row.get("malicious"))
                known.ratio = known.seconds / median if known.seconds is not None and median > 0 else None
                if row.get("accuracy") is not None:
                    known.accuracy = row["accuracy"]
                loss = row.get("loss", row.get("train_loss"))
                known.loss = loss if loss is not None else known.loss

    def add_frame(self, clients: DataFrame) -> None:
        """The rows of a whole table of clients, some thousands at a time: each takes more room than in the table."""
        blocks = clients.groupby("round").size().cumsum() // BLOCK
        ordered = clients.sort_values("round", kind="stable")
        for _, members in ordered.groupby(ordered["round"].map(blocks)):
            known = members.astype(object).where(members.notna(), None)
            rows: list[Any] = known.to_dict("records")
            self.add(rows)

    def view(self, lost: Mapping[str, int] | None = None) -> dict[str, Any] | None:
        """The table and what it says in words and numbers; None before the first client.

        Args:
            lost: client → tasks of it that failed or were sent again; known of a run that goes on, by its status.

        Returns:
            ``table``; ``note``; ``marks``, the name, meaning and number of clients of each; ``spread``, all accuracies
            from the worst to the best.
        """
        lost = lost or {}
        everyone = list(self._known.values())
        judged = sorted((c for c in everyone if c.accuracy is not None), key=lambda c: (c.accuracy or 0.0, c.client))
        accuracies = [client.accuracy or 0.0 for client in judged]
        median = statistics.median(accuracies) if accuracies else 0.0
        tenth = judged[: max(1, len(judged) // 10)] if len(judged) > 1 else []
        late = sorted(
            (c for c in everyone if c.ratio is not None and c.ratio > LATE), key=lambda c: (-(c.ratio or 0.0), c.client)
        )
        marked = {
            "late": [client.client for client in late],
            "lost": sorted((int(client) for client in lost), key=lambda client: (-lost[str(client)], client)),
            "unfair": [client.client for client in tenth if (client.accuracy or 0.0) < median - UNFAIR],
            "malicious": [client.client for client in everyone if client.malicious],
        }
        chosen = judged if len(judged) <= 2 * SHOWN else judged[:SHOWN] + judged[-SHOWN:]
        unjudged = [client for client in everyone if client.accuracy is None][:SHOWN]
        picked = {client.client: client for client in (*chosen, *unjudged)}
        for numbers in marked.values():
            picked |= {number: self._known.get(number, _Client(number)) for number in numbers[:SHOWN]}
        if not picked:
            return None
        rows = sorted(picked.values(), key=lambda c: (c.accuracy is None, c.accuracy or 0.0, c.client))
        counts = {"all": len(everyone)} | {name: len(numbers) for name, numbers in marked.items()}
        meanings = {"all": "worst accuracy first", **MARKS}
        return {
            "table": _table(rows, {name: set(numbers) for name, numbers in marked.items()}, lost),
            "note": _note(len(everyone), accuracies, median, hidden=len({*self._known} - {*picked})),
            "marks": [{"name": name, "meaning": meanings[name], "count": count} for name, count in counts.items()],
            "spread": accuracies,
        }


def _note(count: int, accuracies: Sequence[float], median: float, hidden: int) -> str:
    """How many clients took part, and the range of their accuracies."""
    judged = "not judged yet"
    if accuracies:
        low, middle, high = (units.percent(value, units.THIN) for value in (accuracies[0], median, accuracies[-1]))
        judged = f"{low} to {high}, median {middle}"
    note = f"{units.counted(count, 'client')} took part; accuracy on their own test sets: {judged}"
    return f"{note}; {hidden} in the middle are not shown" if hidden else note


def _table(rows: Sequence[_Client], marked: Mapping[str, set[int]], lost: Mapping[str, int]) -> Table:
    """One row a client."""
    named = any(client.name and client.name != f"client {client.client}" for client in rows)
    weighed = any(client.weight is not None for client in rows)
    lines = []
    for client in rows:
        words = {"late": f"late {client.ratio or 0:.1f}×", "lost": f"lost {lost.get(str(client.client), 0)}×"}
        marks = [(name, words.get(name, name)) for name, members in marked.items() if client.client in members]
        accuracy = client.accuracy
        line: list[Cell] = [str(client.client)]
        line += [client.name] if named else []
        line += ["–" if accuracy is None else Bar(cell("accuracy", accuracy), min(1.0, max(0.0, accuracy)))]
        line += [Marks(marks), cell("loss", client.loss), cell("samples", client.samples)]
        line += [cell("weight", client.weight)] if weighed else []
        line += [str(client.rounds), cell("round", client.round), cell("seconds_task", client.seconds)]
        lines.append(line)
    headings = ["client", *(["name"] if named else []), "accuracy", "marks", "loss", "samples"]
    return Table([*headings, *(["weight"] if weighed else []), "rounds", "last round", "last task"], lines)
