"""A study's numbers as a picture: one panel a measure, the study's columns along x, one line a row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raysim import units
from raysim.report.canvas import new_figure, picture_bytes
from raysim.report.measures import Column, Measure
from raysim.report.picture_entry import PictureEntry
from raysim.report.plots import LIGHT
from raysim.storage.atomic_files import write_atomically

Found = Mapping[tuple[str, str, str], Sequence[float]]
"""(row, column, measure) → its values in the finished cells, in the order of seeds."""
SPREAD = 100.0
"""A panel whose largest mean is further than this factor from the middle one has a logarithmic axis."""


@dataclass(frozen=True)
class Picture:
    """What to draw: ``picture`` of a study file."""

    path: Path
    columns: Mapping[str, str]
    """Column of the study -> what stands under it."""
    rows: tuple[str, ...]
    measures: Mapping[Measure, str]
    """Measure -> title of its panel."""
    label: str
    """What the columns are, along x."""


def read(data: object, study: Path, rows: Sequence[str], columns: Sequence[str], own: Mapping[str, Column]) -> Picture:
    """A picture from a study file's entry; ConfigError for what the study does not have.

    Args:
        own: columns of the rounds table that the study declares itself.
    """
    entry = PictureEntry(data, study, "picture", ("path", "columns", "rows", "measures", "label"), own)
    chosen, lines, measures = entry["columns"], entry["rows"], entry["measures"]
    texts = isinstance(chosen, dict) and isinstance(measures, dict) and isinstance(lines, list)
    if not (texts and all(isinstance(text, str) for text in (*chosen.values(), *measures.values(), *lines))):
        raise entry.error("columns and measures map names to texts, rows is a list of names.")
    for kind, wanted, known in (("row", lines, rows), ("column", list(chosen), columns)):
        for name in wanted:
            if name not in known:
                raise entry.error(f"no {kind} {name!r}. There are {', '.join(known)}.")
    panels = {entry.measure(name): text for name, text in measures.items()}
    if not (panels and lines and chosen):
        raise entry.error("columns, rows and measures have at least one entry each.")
    return Picture(entry.path, chosen, tuple(lines), panels, str(entry["label"]))


def scale_of(measure: Measure, found: Found) -> units.Scale:
    """The scale on which all values of a measure are written."""
    return units.scale(measure.unit, [value for key, own in found.items() if key[2] == measure.name for value in own])


def draw(picture: Picture, found: Found, title: str) -> None:
    """Write the picture: means over seeds, bars of one standard deviation; a column without a value has no point."""
    import matplotlib

    with matplotlib.rc_context({"text.parse_math": False}):  # a $ in a name is a $
        write_atomically(picture.path, _png(picture, found, title))


def _scale(panel: Any, sizes: NDArray[np.float64]) -> None:
    """Make the axis of values logarithmic if one of these means is far larger than the middle one."""
    middle = float(np.median(sizes)) if len(sizes) else 0.0
    if not middle or sizes.max() <= SPREAD * middle:
        return
    # Linear up to the first power of ten above the middle mean: terms of both signs and bars across 0 can be drawn.
    first = math.ceil(math.log10(middle))
    panel.set_yscale("symlog", linthresh=10.0**first)
    last = max(first + 1, math.ceil(math.log10(max(map(abs, panel.get_ylim())))))
    powers = range(first, last + 1, max(1, math.ceil((last - first) / 3)))
    ticks = [-(10.0**power) for power in reversed(powers)] + [0.0] + [10.0**power for power in powers]
    shown = [tick for tick in ticks if panel.get_ylim()[0] <= tick <= panel.get_ylim()[1]]
    panel.set_yticks(shown, labels=[f"{tick:,.10g}" for tick in shown])
    panel.minorticks_off()


def _png(picture: Picture, found: Found, title: str) -> bytes:
    figure = new_figure(figsize=(4.2 * len(picture.measures), 3.9), dpi=110, layout="constrained")
    panels = figure.subplots(1, len(picture.measures), squeeze=False)[0]
    for panel, (measure, heading) in zip(panels, picture.measures.items(), strict=True):
        scale, levels = scale_of(measure, found), np.empty(0)
        for rank, row in enumerate(picture.rows):
            values = [
                scale.factor * np.array(found.get((row, column, measure.name), []), dtype=float)
                for column in picture.columns
            ]
            known = [place for place, value in enumerate(values) if len(value)]
            means = [values[place].mean() for place in known]
            levels = np.append(levels, means)
            spread = [values[place].std(ddof=1) if len(values[place]) > 1 else 0.0 for place in known]
            # Side by side, so that bars of neighboring lines can be told apart.
            shifted = [place + 0.05 * (rank - (len(picture.rows) - 1) / 2) for place in known]
            style = {"color": LIGHT[rank % len(LIGHT)], "marker": "osD^v<>p"[rank % 8], "capsize": 3}
            panel.errorbar(shifted, means, spread, label=row, linewidth=1.6, markersize=5, **style)
        _scale(panel, np.abs(levels))
        panel.set_title(scale.heading(heading), fontsize=11)
        panel.set_xticks(range(len(picture.columns)), list(picture.columns.values()))
        panel.set_xlim(-0.4, len(picture.columns) - 0.6)
        panel.grid(alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)), frameon=False)
    figure.suptitle(title, fontsize=12)
    panels[(len(panels) - 1) // 2].set_xlabel(picture.label)  # once: side by side they would run into one another
    return picture_bytes(figure)
