"""Types of options: what a field of a method's, workload's, model's or run's dataclass may hold, and what it means.

``mu: Annotated[NonNegative, Help("weight μ of the proximal term", "Li et al. 2020, Eq. 2")] = 0.01`` is the option
``--mu`` with its range, help text and source. The process that starts a run checks values by pydantic, which knows
more such constraints; nothing here imports it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge as Ge
from annotated_types import Gt as Gt
from annotated_types import Le as Le
from annotated_types import Lt as Lt

Positive = Annotated[float, Gt(0)]
NonNegative = Annotated[float, Ge(0)]
PositiveInt = Annotated[int, Ge(1)]
NonNegativeInt = Annotated[int, Ge(0)]
Share = Annotated[float, Ge(0), Le(1)]
PositiveShare = Annotated[float, Gt(0), Le(1)]
ShareBelowOne = Annotated[float, Ge(0), Lt(1)]
OpenShare = Annotated[float, Gt(0), Lt(1)]


@dataclass(frozen=True)
class Help:
    """What an option means, for ``--help``.

    Args:
        source: where its default comes from: paper and section.
        placement: it says where or how a run is computed and cannot change results, so a resumed run may change it.
    """

    text: str
    source: str = ""
    placement: bool = False
