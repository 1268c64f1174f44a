"""A study's numbers as pictures: a panel of lines for each measure, and one measure as colored squares."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from raysim import units
from raysim.report.canvas import LIGHT, new_figure, picture_bytes
from raysim.results.measures import Measure
from raysim.studies.entries import Entry, Measured, Png

Found = Mapping[tuple[str, str, str], Sequence[float]]
"""(row, column, measure) → its values in the finished cells, in the order of seeds."""
SPREAD = 100.0
"""A panel whose largest point is further than this factor from the middle one has a logarithmic axis."""


class Picture(Entry):
    """Lines, one a row, with the study's columns along x: ``picture`` of a study file."""

    path: Png
    columns: Annotated[dict[str, str], Field(min_length=1)]
    """Column of the study → the text under it."""
    rows: Annotated[list[str], Field(min_length=1)]
    measures: Annotated[dict[Measured, str], Field(min_length=1)]
    """Measure → title of its panel."""
    label: str
    """The meaning of the columns, along x."""
    center: Literal["mean", "median"] = "mean"
    """A point is the mean over seeds, in a bar of one standard deviation, or the median, in one from the smallest seed
    to the largest, which a single seed that went astray does not move."""


class HeatMap(Entry):
    """A square for each row and column, colored by one measure: ``heat_map`` of a study file."""

    path: Png
    measure: Measured
    label: str
    """The meaning of the color."""


def scale_of(measure: Measure, found: Found) -> units.Scale:
    """The scale on which all values of a measure are written."""
    return units.scale(measure.unit, [value for key, own in found.items() if key[2] == measure.name for value in own])


def draw(picture: Picture, found: Found, title: str) -> bytes:
    """The lines as PNG; a column without a value, or with an infinite one, has no point."""
    figure = new_figure(figsize=(4.2 * len(picture.measures), 3.9), dpi=110, layout="constrained")
    panels = figure.subplots(1, len(picture.measures), squeeze=False)[0]
    for panel, (measure, heading) in zip(panels, picture.measures.items(), strict=True):
        scale, levels = scale_of(measure, found), np.empty(0)
        for rank, row in enumerate(picture.rows):
            values = [
                scale.factor * np.array(found.get((row, column, measure.name), []), dtype=float)
                for column in picture.columns
            ]
            known = [place for place, value in enumerate(values) if len(value) and np.isfinite(value).all()]
            points = [point(picture.center, values[place]) for place in known]
            middle, below, above = np.array(points).reshape(-1, 3).T
            levels = np.append(levels, middle)
            # Side by side, so that bars of neighboring lines can be told apart.
            shifted = [place + 0.05 * (rank - (len(picture.rows) - 1) / 2) for place in known]
            style = {"color": LIGHT[rank % len(LIGHT)], "marker": "osD^v<>p"[rank % 8], "capsize": 3}
            panel.errorbar(shifted, middle, [below, above], label=row, linewidth=1.6, markersize=5, **style)
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


def point(center: str, values: NDArray[np.float64]) -> tuple[float, float, float]:
    """A point of these seeds' values [seeds], and how far its bar reaches below and above it (:class:`Picture`)."""
    if center == "median":
        middle = float(np.median(values))
        return middle, middle - float(values.min()), float(values.max()) - middle
    spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return float(values.mean()), spread, spread


def _scale(panel: Any, sizes: NDArray[np.float64]) -> None:
    """Make the axis of values logarithmic if one of these points is far larger than the middle one."""
    middle = float(np.median(sizes)) if len(sizes) else 0.0
    if not middle or sizes.max() <= SPREAD * middle:
        return
    # Linear up to the first power of ten above the middle point: terms of both signs and bars across 0 can be drawn.
    first = math.ceil(math.log10(middle))
    panel.set_yscale("symlog", linthresh=10.0**first)
    last = max(first + 1, math.ceil(math.log10(max(map(abs, panel.get_ylim())))))
    powers = range(first, last + 1, max(1, math.ceil((last - first) / 3)))
    ticks = [-(10.0**power) for power in reversed(powers)] + [0.0] + [10.0**power for power in powers]
    shown = [tick for tick in ticks if panel.get_ylim()[0] <= tick <= panel.get_ylim()[1]]
    panel.set_yticks(shown, labels=[f"{tick:,.10g}" for tick in shown])
    panel.minorticks_off()


def cell_means(heat_map: HeatMap, found: Found, rows: Sequence[str], columns: Sequence[str]) -> NDArray[np.float64]:
    """The mean over seeds of every cell [rows, columns]; nan where none is finished."""
    name = heat_map.measure.name
    cells = [[np.mean(found.get((row, column, name), np.nan)) for column in columns] for row in rows]
    return np.array(cells, np.float64)


def draw_heat_map(heat_map: HeatMap, found: Found, rows: Sequence[str], columns: Sequence[str], title: str) -> bytes:
    """The squares as PNG, with the number in each; better values are lighter, where some value is better."""
    cells = cell_means(heat_map, found, rows, columns)
    unit = units.scale(heat_map.measure.unit, cells[~np.isnan(cells)].tolist())
    figure = new_figure(figsize=(3.2 + 0.9 * len(columns), 1.6 + 0.42 * len(rows)), dpi=110, layout="constrained")
    panel = figure.subplots()
    colors = "cividis_r" if heat_map.measure.best == "smallest" else "cividis"
    image = panel.imshow(unit.factor * cells, cmap=colors, aspect="auto")
    for row, column in np.argwhere(~np.isnan(cells)).tolist():
        red, green, blue, _ = image.cmap(image.norm(unit.factor * cells[row, column]))
        bright = 0.3 * red + 0.59 * green + 0.11 * blue > 0.5 or not np.isfinite(cells[row, column])  # has no color
        ink = "black" if bright else "white"
        panel.text(column, row, unit.text([cells[row, column]]), ha="center", va="center", color=ink, fontsize=9)
    panel.set_xticks(range(len(columns)), list(columns), rotation=30, ha="right")
    panel.set_yticks(range(len(rows)), list(rows))
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
    panel.set_title(title, fontsize=11)
    figure.colorbar(image, label=unit.heading(heat_map.label))
    return picture_bytes(figure)
