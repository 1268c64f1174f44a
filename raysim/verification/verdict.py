"""The verdict on a run's folder."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


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

    def __str__(self) -> str:
        number = f"round {self.round}" if self.round is not None else ""
        client = f"client {self.client}" if self.client is not None else ""
        place = ", ".join(filter(None, (number, client, self.item)))
        return f"{self.where}{f' ({place})' if place else ''}: {self.what}"


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

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not self.differences

    def plain(self) -> dict[str, Any]:
        """The verdict as JSON has it."""
        return {"equal": self.equal, **asdict(self)}

    def text(self) -> str:
        """The verdict as it is printed."""
        lines = [f"equal: {', '.join(self.checked)}"] if self.equal else [f"differs: {self.differences[0]}"]
        lines += [f"  also: {difference}" for difference in self.differences[1:10]]
        if len(self.differences) > 10:
            lines.append(f"  and {len(self.differences) - 10} more")
        lines += [f"  here is another {text}" for text in self.explanations if not self.equal]
        lines += [f"note: {text}" for text in self.notes]
        return "\n".join([*lines, f"proof {self.head}"] if self.head else lines)
