"""The picture of a run's virtual time: who is busy when and what becomes of it, and how stale updates are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from raysim.report.canvas import MUTED, new_figure, picture_bytes, style
from raysim.report.plots import LIGHT

if TYPE_CHECKING:
    from pandas import DataFrame

MAX_CLIENTS = 40
"""Clients with a row of their own, the first of them."""
MAX_STEPS = 60
"""Server steps that the left part shows, the first of them: more would leave no room between their lines."""
COLORS = {"update": LIGHT[0], "lost": LIGHT[1], "late": LIGHT[4]}
MEANING = {"update": "update is used", "lost": "client is lost", "late": "too late, stopped"}


def picture(steps: DataFrame, tasks: DataFrame, clients: int, title: str) -> bytes:
    """The picture as PNG.

    Args:
        steps: a row for each server step, with ``round`` and ``virtual_seconds``.
        tasks: a row for each client task, with ``client``, ``version``, ``start``, ``end``, ``round`` and ``fate``.
        clients: number of clients of the run.
        title: shown above.
    """
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    rows = min(clients, MAX_CLIENTS)
    with style({}):
        figure = new_figure(figsize=(12, 2.2 + 0.16 * max(rows, 14)), dpi=130, layout=ConstrainedLayoutEngine())
        left, right = figure.subplots(1, 2, width_ratios=(4, 1))
        figure.suptitle(title, fontsize=13, fontweight="bold")
        _busy(left, steps, tasks, rows, clients)
        _staleness(right, tasks)
        figure.legend(loc="outside lower center", ncols=4, frameon=False)
        return picture_bytes(figure)


def _busy(axes: Any, steps: DataFrame, tasks: DataFrame, rows: int, clients: int) -> None:
    shown = steps.head(MAX_STEPS)
    end = float(shown["virtual_seconds"].iloc[-1])
    factor, unit = next(
        (f, u)
        for f, u in ((86400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds"))
        if (end >= 3 * f or f == 1)
    )
    for fate, color in COLORS.items():
        own = tasks[(tasks["fate"] == fate) & (tasks["client"] < rows) & (tasks["start"] < end)]
        if len(own):
            lengths = (own["end"].clip(upper=end) - own["start"]) / factor
            starts = own["start"] / factor
            axes.barh(own["client"], lengths, left=starts, height=0.8, color=color, label=MEANING[fate], zorder=2)
    lines = {"color": MUTED, "linewidth": 0.7, "alpha": 0.6, "zorder": 1, "label": "server step"}
    axes.vlines(shown["virtual_seconds"] / factor, -0.6, rows - 0.4, **lines)
    steps_text = f", first {MAX_STEPS} of {len(steps)} server steps" if len(steps) > MAX_STEPS else ""
    clients_text = f" (first {rows} of {clients})" if clients > rows else ""
    axes.set(
        xlim=(0, end / factor),
        ylim=(rows - 0.4, -0.6),
        xlabel=f"virtual {unit}{steps_text}",
        ylabel=f"client{clients_text}",
    )


def _staleness(axes: Any, tasks: DataFrame) -> None:
    used = tasks[tasks["fate"] == "update"]
    staleness = (used["round"] - 1 - used["version"]).to_numpy(dtype=np.int64)
    counts = np.bincount(staleness)
    axes.bar(np.arange(len(counts)), counts / counts.sum(), color=COLORS["update"])
    axes.set(xlabel="staleness τ (server steps)", ylabel="share of the updates", ylim=(0, None))
    axes.xaxis.get_major_locator().set_params(integer=True)
