"""The verdict on a run's folder."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from raysim.units import counted, number


@dataclass(frozen=True)
class Difference:
    """Something in a folder that is not what its proof, or a new computation, says."""

    where: str
    """A file, or a part of one."""
    what: str
    """A sentence on what is wrong with it."""
    round: int | None = None
    client: int | None = None
    item: str = ""
    """Column of a table, or tensor of a state."""
    rounding: bool = True
    """Whether another processor's rounding could have made it, as it cannot another split of the data."""

    def __str__(self) -> str:
        number = f"round {self.round}" if self.round is not None else ""
        client = f"client {self.client}" if self.client is not None else ""
        place = ", ".join(filter(None, (number, client, self.item)))
        return f"{self.where}{f' ({place})' if place else ''}: {self.what}"


@dataclass(frozen=True)
class StateDistance:
    """How far two states of the server are apart, over all floats of their tensors."""

    values: int
    differing: int
    largest: int
    """Units in the last place: floats between the two values."""
    median: float
    """The same, the median over all values."""
    relative: float
    """‖new − old‖₂ / ‖old‖₂, in float64; nan where ‖old‖₂ is 0."""

    def __str__(self) -> str:
        return (
            f"{number(self.differing)} of {counted(self.values, 'value')} differ, by up to {number(self.largest)} "
            f"units in the last place (median {number(self.median)}), relative L2 {self.relative:.1e}"
        )


@dataclass(frozen=True)
class RoundDistance:
    """How far a round is from its new computation."""

    round: int
    cells: int
    """Values of its rows in both tables, without times and digests."""
    equal: int
    """Those that are equal to the last bit."""
    off: tuple[str, ...]
    """Sentences on those that do not agree to the digits that tables print."""
    same_server: bool
    """Whether the server's state is equal to the last bit."""
    server: StateDistance | None
    """None where it is equal, or not both folders have a checkpoint of the round."""

    def __str__(self) -> str:
        cells = f"{self.equal} of {self.cells} table values are equal"
        if rest := self.cells - self.equal - len(self.off):
            cells += f", {rest} more to their printed digits"
        state = "equal" if self.same_server else str(self.server or "another one, of which no checkpoint is kept")
        return "; ".join([f"round {self.round}: {cells}", f"server's state: {state}", *self.off[:3]])


@dataclass
class Verdict:
    """All that was checked, and the differences, the earliest first."""

    checked: list[str] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Sentences on what could not be checked, and why."""
    explanations: list[str] = field(default_factory=list)
    """Differences between this machine and the one that the run was made on."""
    head: str = ""
    """The head of the folder's chain."""
    distances: list[RoundDistance] = field(default_factory=list)
    """How far each round is from its new computation, if asked for (``--tolerance``)."""

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not self.differences

    @property
    def close(self) -> bool:
        """Whether something differs by rounding alone: all values of rounds agree to their printed digits."""
        rounded = all(each.rounding for each in self.differences)
        return not self.equal and bool(self.distances) and rounded and not any(each.off for each in self.distances)

    def plain(self) -> dict[str, Any]:
        """The verdict as JSON has it."""
        return {"equal": self.equal, "close": self.close, **asdict(self)}

    def text(self) -> str:
        """The verdict as it is printed."""
        lines = [f"equal: {', '.join(self.checked)}"] if self.equal else [f"differs: {self.differences[0]}"]
        if self.close:
            lines = [f"close, and not equal: all table values agree to their printed digits; {self.differences[0]}"]
        lines += [f"  also: {difference}" for difference in self.differences[1:10]]
        if len(self.differences) > 10:
            lines.append(f"  and {len(self.differences) - 10} more")
        lines += [f"  {distance}" for distance in self.distances if not self.equal]
        lines += [f"  here is another {text}" for text in self.explanations if not self.equal]
        lines += [f"note: {text}" for text in self.notes]
        return "\n".join([*lines, f"proof {self.head}"] if self.head else lines)
