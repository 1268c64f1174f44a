"""The table and the picture of a split."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from raysim.workloads.federated_data import Federation, objective_of
from raysim.workloads.naming import synthetic_mark
from raysim.workloads.splits.partition import Integers

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

BARS = 120  # with more clients than this, single bars would be thinner than a pixel: areas are drawn instead


def client_table(federation: Federation, labels: Integers, copies: Sequence[int] | None = None) -> pandas.DataFrame:
    """Make a federation's manifest from the labels of all training samples; with classes where it has them.

    Args:
        federation: knows how many samples each client has.
        labels: int64 [samples], those of one client after those of another, copies included.
        copies: how many of each client's samples are copies, [clients]; None: none are.
    """
    import pandas

    clients = range(federation.clients)
    samples = [federation.samples(client) for client in clients]
    classes = len(federation.class_names) if objective_of(federation).kind == "classification" else 0
    owners = np.repeat(clients, samples)
    counts = np.bincount(owners * classes + labels, minlength=len(clients) * classes) if classes else labels[:0]
    table = {
        "client": clients,
        "name": [federation.client_name(client) for client in clients],
        "samples": samples,
        "test_samples": [federation.test_samples(client) for client in clients],
        **{f"class_{label}": counts[label::classes] for label in range(classes)},
        "filled": copies or 0,
    }
    manifest = pandas.DataFrame(table)
    manifest.attrs = {
        "workload": federation.name,
        "synthetic": federation.synthetic,
        "class_names": list(federation.class_names),
    }
    return manifest


def draw_partition(manifest: pandas.DataFrame, target: Path | IO[bytes], title: str) -> None:
    """Write a PNG of the training samples of each client, stacked by class.

    Args:
        manifest: Federation.manifest(), from whose ``attrs`` come the class names and whether the data is synthetic,
            which the title then says.
        target: a path that ends in .png, or an open file.
    """
    import matplotlib

    with matplotlib.rc_context({"text.parse_math": False}):  # a $ in a name is a $
        _figure(manifest, title).savefig(target)


def _figure(manifest: pandas.DataFrame, title: str) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    columns = [column for column in manifest.columns if column.startswith("class_")] or ["samples"]
    names = (manifest.attrs.get("class_names") if columns != ["samples"] else None) or [
        column.removeprefix("class_") for column in columns
    ]
    clients = len(manifest)
    positions = np.arange(clients)
    figure = Figure(figsize=(min(14.0, 5.5 + 0.22 * clients), 4.5), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    below = np.zeros(clients)
    for number, (column, name) in enumerate(zip(columns, names, strict=True)):
        counts = manifest[column].to_numpy(dtype=float)
        color = _color(number, len(columns))
        if clients <= BARS:
            axes.bar(positions, counts, bottom=below, width=0.85, color=color, label=name)
        else:
            axes.fill_between(positions, below, below + counts, step="mid", color=color, linewidth=0, label=name)
        below += counts
    if manifest["filled"].any():
        own = (manifest["samples"] - manifest["filled"]).to_numpy(dtype=float)
        axes.hlines(own, positions - 0.43, positions + 0.43, color="black", linewidth=1.2, label="own, without copies")
    real_names = not manifest["name"].str.fullmatch(r"client \d+").all()
    if real_names and clients <= 40:
        axes.set_xticks(positions, manifest["name"], rotation=30 if clients <= 12 else 90, ha="right")
        axes.set_xlabel("client")
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=20, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))
        axes.set_xlabel("client number")
    axes.set_xlim(-0.6, clients - 0.4)
    axes.set_ylim(0, 1.04 * max(1.0, below.max()))
    axes.set_ylabel("training samples")
    axes.spines[["top", "right"]].set_visible(False)
    if manifest.attrs.get("synthetic") and "synthetic" not in title:
        title += synthetic_mark(True)
    axes.set_title(title, wrap=True)
    if len(columns) <= 30:  # reversed, so that the legend reads like the stack
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(handles[::-1], labels[::-1], loc="outside right center", frameon=False, fontsize="small")
    return figure


def _color(number: int, count: int) -> tuple[float, float, float, float]:
    from matplotlib import colormaps

    if count <= 10:
        return colormaps["tab10"](number)
    return colormaps["turbo"](number / (count - 1))
