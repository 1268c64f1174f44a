"""A study's table as a picture: a square for each row and column, colored by one measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from raysim.report.canvas import new_figure, picture_bytes
from raysim.report.picture_entry import PictureEntry
from raysim.storage.atomic_files import write_atomically
from raysim.units import scale

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from raysim.report.measures import Column, Measure
    from raysim.report.study_plot import Found


@dataclass(frozen=True)
class HeatMap:
    """What to draw: ``heat_map`` of a study file."""

    path: Path
    measure: Measure
    label: str
    """What the color is."""


def read(data: object, study: Path, own: Mapping[str, Column]) -> HeatMap:
    """A heat map from a study file's entry; ConfigError for what there is not.

    Args:
        own: columns of the rounds table that the study declares itself.
    """
    entry = PictureEntry(data, study, "heat_map", ("path", "measure", "label"), own)
    return HeatMap(entry.path, entry.measure(entry["measure"]), str(entry["label"]))


def values(heat_map: HeatMap, found: Found, rows: Sequence[str], columns: Sequence[str]) -> NDArray[np.float64]:
    """The mean over seeds of every cell [rows, columns]; nan where none is finished."""
    means = [
        [np.mean(own) if (own := found.get((row, column, heat_map.measure.name))) else np.nan for column in columns]
        for row in rows
    ]
    return np.array(means, np.float64)


def draw(heat_map: HeatMap, found: Found, rows: Sequence[str], columns: Sequence[str], title: str) -> None:
    """Write the picture, with the number in every square; better values are lighter, where some value is better."""
    import matplotlib

    cells = values(heat_map, found, rows, columns)
    if np.isnan(cells).all():
        return
    unit = scale(heat_map.measure.unit, cells[~np.isnan(cells)].tolist())
    with matplotlib.rc_context({"text.parse_math": False}):  # a $ in a name is a $
        figure = new_figure(figsize=(3.2 + 0.9 * len(columns), 1.6 + 0.42 * len(rows)), dpi=110, layout="constrained")
        panel = figure.subplots()
        colors = "cividis_r" if heat_map.measure.best == "smallest" else "cividis"
        image = panel.imshow(unit.factor * cells, cmap=colors, aspect="auto")
        for row, column in np.argwhere(~np.isnan(cells)).tolist():
            red, green, blue, _ = image.cmap(image.norm(unit.factor * cells[row, column]))
            ink = "black" if 0.3 * red + 0.59 * green + 0.11 * blue > 0.5 else "white"
            text = unit.text([cells[row, column]])
            panel.text(column, row, text, ha="center", va="center", color=ink, fontsize=9)
        panel.set_xticks(range(len(columns)), list(columns), rotation=30, ha="right")
        panel.set_yticks(range(len(rows)), list(rows))
        panel.tick_params(length=0)
        panel.spines[:].set_visible(False)
        panel.set_title(title, fontsize=11)
        figure.colorbar(image, label=unit.heading(heat_map.label))
        write_atomically(heat_map.path, picture_bytes(figure))
