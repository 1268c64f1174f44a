"""What a run is called wherever it is shown: its method and its data, with a mark where the data is synthetic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from workloads.naming import data_name, synthetic_mark

Part = Literal["method", "workload", "model"]


def part_name(part: Part, config: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    """The name of a run's method, workload or model, from its ``summary.json`` or, before its end, its config."""
    section = config.get(part)
    fallback = section.get("name", "?") if isinstance(section, Mapping) else section
    return str(summary.get(part, fallback or "?"))


def is_synthetic(config: Mapping[str, Any], summary: Mapping[str, Any]) -> bool:
    """Whether the data is made up: as the summary says; before there is one, by the workload's name."""
    return bool(summary.get("synthetic", "synthetic" in part_name("workload", config, summary)))


def run_title(config: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    """Method and data of a run.

    Args:
        summary: its ``summary.json``; empty before its end.
    """
    section, data = config.get("workload"), part_name("workload", config, summary)
    if isinstance(section, Mapping) and (named := data_name(section)) not in ("?", section.get("name")):
        data = named
    method = part_name("method", config, summary)
    return f"{method} on {data}{synthetic_mark(is_synthetic(config, summary))}"
