"""Pictures on the cards of studies that draw none themselves: every row's mean and spread over seeds."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from docs.site.studies import study
from raysim.report.canvas import LIGHT, new_figure, picture_bytes, style
from raysim.results.measures import Measure
from raysim.studies import choosing, tables
from raysim.studies.pictures import Found, scale_of
from raysim.studies.study_file import Study

COLUMNS = 4
"""Columns of a study that a card has room for: its first ones."""


@cache
def picture(name: str) -> bytes | None:
    """The first measure of a study as PNG, a line of dots for each row; None: no run of it is kept."""
    asked = study(name)
    measure, heading = next(iter(asked.measures.items()))
    found = _values(asked, measure)
    values = {key[:2]: own for key, own in found.items() if own}
    columns = [one for one in asked.columns if any((row, one) in values for row in asked.shown_rows)][:COLUMNS]
    rows = [row for row in asked.shown_rows if any((row, column) in values for column in columns)]
    if not rows:
        return None
    scale = scale_of(measure, found)
    with style({"font.size": 8}):
        figure = new_figure(figsize=(4.2, 0.9 + 0.17 * len(rows) + 0.2 * (len(columns) > 1)), dpi=160)
        figure.set_layout_engine("constrained")
        panel = figure.subplots()
        for rank, column in enumerate(columns):
            height = 0.16 * (rank - (len(columns) - 1) / 2)  # side by side, so that dots can be told apart
            known = [place for place, row in enumerate(rows) if (row, column) in values]
            scaled = [scale.factor * np.array(values[rows[place], column]) for place in known]
            spread = [own.std(ddof=1) if len(own) > 1 else 0.0 for own in scaled]
            places = [place + height for place in known]
            means = [own.mean() for own in scaled]
            dots: Any = {"fmt": "osD^"[rank], "color": LIGHT[rank], "markersize": 3, "elinewidth": 1}
            panel.errorbar(means, places, xerr=spread, label=column, **dots)
        panel.set_yticks(range(len(rows)), rows)
        panel.invert_yaxis()
        panel.set_xlabel(scale.heading(heading))
        panel.grid(alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
        if len(columns) > 1:
            figure.legend(
                loc="outside lower center", ncols=2 if sum(map(len, columns)) > 40 else COLUMNS, frameon=False
            )
        return picture_bytes(figure)


def _values(asked: Study, measure: Measure) -> Found:
    """The values of a measure that the study's table shows."""
    if asked.choice is None:
        return tables.finished(asked, [measure])
    chosen, _ = choosing.chosen(tables.outcomes(asked, {}), asked.choice, asked.seeds)
    return {key: list(own.values()) for key, own in chosen.values.items() if key[2] == measure.name}
