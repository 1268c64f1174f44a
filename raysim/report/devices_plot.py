"""The clients' devices as a table and a picture: what a client task takes, and how many clients are there when."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from raysim.report.canvas import LIGHT, MUTED, new_figure, picture_bytes, style
from raysim.storage.atomic_files import write_atomically
from raysim.units import time_unit

if TYPE_CHECKING:
    from pandas import DataFrame

    from raysim.virtual_time.fleet import Fleet

MOMENTS = 200
"""Times at which the available clients are counted."""
COUNTED = 1000
"""Clients that are looked at for this, about: more would take longer than many a run."""


def write_devices(folder: Path, fleet: Fleet, seconds: float, *, pictured: bool) -> None:
    """Write ``devices.csv`` with a row for each client and, if it is wanted, ``devices.png``.

    Args:
        folder: the run's.
        fleet: the clients' devices, samples and bytes.
        seconds: virtual seconds that the run takes, in which the available clients are counted.
        pictured: whether to draw the picture.
    """
    table = devices_table(fleet)
    write_atomically(folder / "devices.csv", table.to_csv(index=False, float_format="%.9g").encode())
    if pictured:
        write_atomically(folder / "devices.png", picture(table, fleet, seconds))


def devices_table(fleet: Fleet) -> DataFrame:
    """A row for each client: its profile, its samples, and the seconds that one local epoch and the bytes take.

    The bytes are those of a message after the first server step, before other clients' parts are in it.
    """
    import pandas as pd

    profiles = fleet.profiles
    names = ("seconds_per_sample", "bandwidth_down", "bandwidth_up", "latency", "drop_probability", "watts")
    table = pd.DataFrame({"client": np.arange(profiles.clients), "samples": fleet.samples})
    table = table.assign(**{name: getattr(profiles, name) for name in names})
    none = np.zeros(profiles.clients)
    communication = profiles.seconds(none, fleet.bytes_down + fleet.down_later, fleet.bytes_up)
    return table.assign(epoch_seconds=fleet.samples * profiles.seconds_per_sample, communication_seconds=communication)


def picture(table: DataFrame, fleet: Fleet, seconds: float) -> bytes:
    """The picture as PNG; its lower half only where clients are not always available."""
    availability = fleet.profiles.availability
    with style({"axes.spines.top": False, "axes.spines.right": False}):
        figure = new_figure(figsize=(4.6, 5.6 if availability else 3.4), dpi=160, layout="constrained")
        panels = figure.subplots(2 if availability else 1, squeeze=False)[:, 0]
        figure.suptitle(f"Devices of {len(table)} clients", fontsize=13, fontweight="bold")
        _task_seconds(panels[0], table)
        if availability is not None:
            times = np.linspace(0.0, seconds, MOMENTS)
            clients = range(0, len(table), max(1, len(table) // COUNTED))
            there = [
                np.mean([availability.until(client, time) > time for client in clients]) for time in times.tolist()
            ]
            factor, unit = time_unit(seconds)
            panels[1].plot(times / factor, there, color=LIGHT[0])
            panels[1].set(xlabel=f"virtual {unit}", ylabel="share of clients available", ylim=(0, 1.05))
        return picture_bytes(figure)


def _task_seconds(axes: Any, table: DataFrame) -> None:
    """Client tasks of one local epoch, the fastest first."""
    from matplotlib.ticker import MaxNLocator

    total = table["epoch_seconds"] + table["communication_seconds"]
    order = table.loc[total.sort_values(kind="stable").index]
    place, communication = np.arange(len(order)), order["communication_seconds"].to_numpy()
    step = {"step": "mid"} if len(order) > 1 else {}
    axes.fill_between(place, 0, communication, color=LIGHT[1], label="message and update", **step)
    axes.fill_between(place, communication, np.sort(total.to_numpy()), color=LIGHT[0], label="one local epoch", **step)
    axes.axhline(float(total.median()), color=MUTED, linewidth=0.8, linestyle="--", label="median")
    axes.set(xlabel="clients, fastest first", ylabel="virtual seconds of a task", ylim=(0, None))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(frameon=False, loc="upper left")
