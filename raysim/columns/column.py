"""The entry of a column, and of a chart of columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from raysim.units import Unit

Best = Literal["largest", "smallest", ""]
"""Which value is the better one; empty: neither (a number of participants)."""
Row = Mapping[str, Any]
Made = Callable[[Row, Sequence[Row]], float]
"""Makes a column's value from the round's other columns and the rows of its clients, which may be none."""
How = Literal["last", "best", "total"]
"""How the values of all rounds become one number: the last known one, the best one, or their sum."""


@dataclass(frozen=True)
class Column:
    """One column of a table of rounds or clients."""

    unit: Unit = "plain"
    best: Best = ""
    title: str = ""
    """Name in tiles, comparisons and the terminal; empty: the column's own name with spaces."""
    help: str = ""
    """Meaning, a sentence of reference for Ray's metrics and tooltips."""
    when: str = ""
    """Option that asks for the column (``devices.on``), or ``always``; empty: it depends on the data, the method or a
    wrapper (see :mod:`raysim.engine.round_columns`)."""
    timing: bool = False
    """Whether it measures the real machine, so that no two runs share its values."""
    tiles: tuple[How, ...] = ()
    """The numbers that a page and a comparison sum up a run by."""
    chart: str = ""
    """Chart of a run's page that it is a curve of (:data:`CHARTS`)."""
    label: str = ""
    """Name in the legend of its chart; empty: the title."""
    band: str = ""
    """Column whose values are drawn as a band around the curve."""
    terminal: str = ""
    """Words around its value in the terminal, as in ``loss {}``; empty: not there."""
    summary: How | Literal[""] = ""
    """Its number in ``summary.json``; empty: not there."""
    against_costs: bool = False
    """Whether TensorBoard draws it against traffic and virtual time too."""
    metric: Literal["gauge", "counter", "phase", ""] = ""
    """Its kind among Ray's metrics; ``phase``: one of the labels of ``raysim_phase_seconds``."""
    reported: bool = False
    """Whether methods and wrappers report it; no method may report another column that the engine measures."""
    made: Made | None = None
    """Makes its value of a round; None: the engine measures it."""
    cost: str = ""
    """Beginning of the measures that say how much of it an accuracy cost (``rounds`` of ``rounds_to_0.8``)."""
    parts: tuple[str, ...] = ()
    """Columns that it is the sum of; such a column stands in no table of rounds."""


@dataclass(frozen=True)
class Chart:
    """One chart of a run's page and of its Grafana dashboard."""

    title: str
    unit: Unit
    stacked: bool = False
    """Bars on each other in the place of lines."""
    costs: bool = False
    """Whether it can be drawn against costs instead of rounds."""
    whole: bool = False
    """Whether its axis reaches from 0 to 1, whatever the values."""
