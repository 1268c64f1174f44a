"""Every client by itself: what federation must beat for a client to take part."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from raysim.method import NOTHING, Context, FlatModel, Message, Module, Traits, Updates
from raysim.methods._halves import PartlyShared


@dataclass(frozen=True)
class Local(PartlyShared[None]):
    """Local: no communication; each client goes on with its own model, all from the same initial values.

    Source: the "Local" rows of the papers' tables (share nothing). Judged on each client's own test set.
    """

    traits: ClassVar[Traits] = Traits(personal=True, takes_stale=True)

    def shared_names(self, module: Module) -> Collection[str]:
        return ()

    def init_server(self, model: FlatModel) -> None:
        return None

    def message(self, server: None, client: int) -> Message:
        return Message(NOTHING)

    def aggregate(self, server: None, updates: Updates, context: Context) -> None:
        return None


METHOD = Local
