"""The picture of a run's virtual time: who is busy when and what becomes of it, staleness, server steps and bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from raysim.report.canvas import LIGHT, MUTED, new_figure, picture_bytes, style
from raysim.units import scale, time_unit

if TYPE_CHECKING:
    from numpy.typing import NDArray
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
        steps: a row for each server step, with ``round``, ``virtual_seconds``, ``bytes_down`` and ``bytes_up``.
        tasks: a row for each client task, with ``client``, ``version``, ``start``, ``end``, ``round`` and ``fate``.
        clients: number of clients of the run.
        title: shown above.
    """
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.ticker import MaxNLocator

    rows = min(clients, MAX_CLIENTS)
    staleness = _staleness(tasks)
    right = ["staleness"] * bool(staleness.any()) + ["steps", "bytes"]
    with style({}):
        figure = new_figure(figsize=(12, 2.2 + 0.16 * max(rows, 24)), dpi=130, layout=ConstrainedLayoutEngine())
        panels = figure.subplot_mosaic([["busy", name] for name in right], width_ratios=(4, 1))
        figure.suptitle(title, fontsize=13, fontweight="bold")
        _busy(panels["busy"], steps, tasks, rows, clients)
        figure.legend(loc="outside lower center", ncols=4, frameon=False)
        if "staleness" in panels:
            counts = np.bincount(staleness)
            panels["staleness"].bar(np.arange(len(counts)), counts / counts.sum(), color=COLORS["update"])
            panels["staleness"].set(xlabel="staleness τ (server steps)", ylabel="share of updates", ylim=(0, None))
            panels["staleness"].xaxis.set_major_locator(MaxNLocator(integer=True))
        _totals(panels["steps"], panels["bytes"], steps)
        return picture_bytes(figure)


def _busy(axes: Any, steps: DataFrame, tasks: DataFrame, rows: int, clients: int) -> None:
    shown = steps.head(MAX_STEPS)
    end = float(shown["virtual_seconds"].iloc[-1])
    factor, unit = time_unit(end)
    for fate, color in COLORS.items():
        own = tasks[(tasks["fate"] == fate) & (tasks["client"] < rows) & (tasks["start"] < end)]
        if len(own):
            lengths = (own["end"].clip(upper=end) - own["start"]) / factor
            starts = own["start"] / factor
            bars = {"height": 0.8, "edgecolor": axes.get_facecolor(), "linewidth": 0.3, "zorder": 2}
            axes.barh(own["client"], lengths, left=starts, color=color, label=MEANING[fate], **bars)
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


def _staleness(tasks: DataFrame) -> NDArray[np.int64]:
    """Server steps that each update missed."""
    used = tasks[tasks["fate"] == "update"]
    return (used["round"] - 1 - used["version"]).to_numpy(dtype=np.int64)


def _totals(rounds: Any, sent: Any, steps: DataFrame) -> None:
    """Server steps, and bytes to and from clients, up to each virtual time."""
    from matplotlib.ticker import MaxNLocator

    factor, unit = time_unit(float(steps["virtual_seconds"].iloc[-1]))
    times = np.concatenate([[0.0], steps["virtual_seconds"] / factor])
    rounds.step(times, np.arange(len(times)), where="post", color=LIGHT[0])
    rounds.set(xlim=(0, times[-1]), ylim=(0, None), ylabel="server steps")
    rounds.yaxis.set_major_locator(MaxNLocator(integer=True))
    totals = {way: np.concatenate([[0.0], steps[f"bytes_{way}"].cumsum()]) for way in ("down", "up")}
    scaled = scale("bytes", [*totals["down"], *totals["up"]])
    for (way, total), color in zip(totals.items(), LIGHT, strict=False):
        sent.step(times, total * scaled.factor, where="post", color=color, label=way)
    sent.set(xlim=(0, times[-1]), ylim=(0, None), xlabel=f"virtual {unit}", ylabel=f"sent so far ({scaled.symbol})")
    sent.legend(frameon=False, loc="upper left")
