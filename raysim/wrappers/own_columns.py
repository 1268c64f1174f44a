"""A wrapped method's columns, which may not have the names of its wrappers' columns."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from raysim.config.privacy import NEIGHBORS
from raysim.errors import RaysimError
from raysim.method import Context, Report, Updates
from raysim.wrappers.privacy import CUT

MALICIOUS = "malicious"
"""Column of the clients table: 1 for an update that an attack has replaced, or made from changed data."""
TAKEN = frozenset({"epsilon", "noise_multiplier", NEIGHBORS, "clip_bound", CUT, MALICIOUS})
"""The columns of privacy and attacks."""


def check_own(where: str, names: Collection[str]) -> None:
    """RaysimError if a method names a column as one of its wrappers does: one of the two would be lost."""
    if taken := sorted(TAKEN.intersection(names)):
        raise RaysimError(
            f"{where}: {', '.join(taken)} is the name of a column of privacy or attacks, which a method may not report "
            f"in a run with wrappers. Give it another name, own_{taken[0]} say"
        )


def own_step(method: Any, server: Any, updates: Updates, context: Context) -> Any:
    """The server's state after ``method.aggregate``, whose columns are added to those of the wrappers."""
    report, own = context.report, Report()
    after = method.aggregate(server, updates, replace(context, report=own))
    check_own(f"round {context.round}, stage aggregate: report", [*own.round_columns, *own.client_columns])
    report.round_columns.update(own.round_columns)
    report.client_columns.update(own.client_columns)
    return after
