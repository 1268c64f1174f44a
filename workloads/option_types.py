"""Types of options: what a field of a method's, workload's, model's or run's dataclass may hold, and what it means.

``mu: Annotated[NonNegative, Help("weight μ of the proximal term", "Li et al. 2020, Eq. 2")] = 0.01`` is the option
``--mu`` with its range, help text and source. The process that starts a run checks values by pydantic, which knows
more such constraints; nothing here imports it. A note ``OnlyWith("timing.mode", "buffered")`` beside its help says with
which values of another option it is read at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

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


ALLOW_DOWNLOAD = "--download true with a network connection (in a study's file workload.download: true, with --trust)"
"""How to ask for a download, in messages."""


@dataclass(frozen=True)
class Help:
    """The meaning of an option, for ``--help``.

    Args:
        source: where its default comes from: paper and section.
        placement: it says where or how a run is computed and cannot change results, so a resumed run may change it.
        late: it was added when there were proofs of runs without it. At its default it stands in no proof and in no
            checkpoint (raysim/config/late_options.py), so that these runs keep their heads and can go on.
    """

    text: str
    source: str = ""
    placement: bool = False
    late: bool = False


Value = str | float | bool
"""A value of an option that another depends on."""


class Condition(NamedTuple):
    """One option has one of certain values; with no values named, any but its default."""

    path: str
    """Its full name, ``timing.mode``."""
    values: tuple[Value, ...]
    say: Value | None
    """One that is advised where no values are named, and the option's type lists none."""


@dataclass(frozen=True, init=False)
class OnlyWith:
    """With which values of other options an option is read; set where it is not, it is refused before the run begins.

    ``OnlyWith("timing.mode", "async", "buffered")`` needs one of these modes, ``OnlyWith("training.margin", say=0.03)``
    any value but the default, and advises 0.03. Of ``a | b`` one must hold; of several notes on a field all.

    Args:
        path: full name of the other option; it and the values must exist, which is checked on import.
        of: the values of the option itself that depend on it; none: all but its default.
        why: what becomes of it otherwise, between its value and "with timing.mode sync".
    """

    any_of: tuple[Condition, ...]
    of: tuple[Value, ...]
    why: str

    def __init__(
        self,
        path: str,
        *values: Value,
        say: Value | None = None,
        of: tuple[Value, ...] = (),
        why: str = "has no effect",
    ) -> None:
        self._set((Condition(path, values, say),), of, why)

    def __or__(self, other: OnlyWith) -> OnlyWith:
        both = object.__new__(OnlyWith)
        both._set(self.any_of + other.any_of, self.of + other.of, self.why)
        return both

    def _set(self, any_of: tuple[Condition, ...], of: tuple[Value, ...], why: str) -> None:
        for name, value in (("any_of", any_of), ("of", of), ("why", why)):
            object.__setattr__(self, name, value)
