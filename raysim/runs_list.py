"""The runs in a folder and their states, as a table for people."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from raysim import sitting, status, units
from raysim.errors import ResultsError
from raysim.ui.tables import Tail
from raysim.watching import Watched

ROOT = "runs"
"""Where runs go unless ``--output`` says otherwise."""


def names(root: Path) -> list[str]:
    """The names of the runs in ``root``, the one that was at work last at the end."""
    found = [path.parent for path in root.glob("*/config.yaml")]
    return [folder.name for folder in sorted(found, key=lambda folder: (_last_sign(folder), folder.name))]


def print_runs(root: Path) -> None:
    """One line a run."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("run", overflow="fold")
    for title in ("state", "round", "accuracy", "last sign", "process"):
        table.add_column(title, no_wrap=True, justify="right" if title in ("round", "accuracy") else "left")
    for name in names(root):
        table.add_row(*_row(root / name))
    if table.row_count:
        Console(markup=False, highlight=False, width=None if sys.stdout.isatty() else 160).print(table)
    else:
        print(f"No runs in {root.resolve()}. A run elsewhere is shown by its folder: python -m raysim.attach FOLDER")


def _row(folder: Path) -> tuple[str, ...]:
    try:
        live: dict[str, Any] = Watched(folder).live()
    except ResultsError:
        return (folder.name, "unreadable", "", "", "", "")
    _, rows = Tail(folder / "rounds.csv").read()
    accuracies = [row["accuracy"] for row in rows if row.get("accuracy") is not None]
    done = f"{len(rows)}/{live['rounds']}" if live.get("rounds") else f"{len(rows)}"
    working = sitting.is_held(folder / sitting.NAME)
    return (
        folder.name,
        live["state"],
        done,
        units.percent(accuracies[-1]) if accuracies else "-",
        f"{datetime.fromtimestamp(_last_sign(folder)):%Y-%m-%d %H:%M:%S}",
        str(sitting.holder(folder).get("process", "")) if working and live["state"] in status.LIVE else "",
    )


def _last_sign(folder: Path) -> float:
    """When the run last wrote something, in seconds since 1970."""
    stamps = [path.stat().st_mtime for path in (folder / status.NAME, folder / "config.yaml") if path.exists()]
    return max(stamps, default=0.0)
