"""Small runs as tests make them: one way to write their settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from raysim.client_side.worker import Worker
from raysim.config.run_config import RunConfig, build
from raysim.engine.load_federation import load_federation
from raysim.workloads.parallel_map import sequential

MakeConfig = Callable[..., RunConfig]
IN_PROCESS = {"method.name": "fedavg", "engine.backend": "inline", "pictures": False}
"""In this process, and without pictures: to draw them takes longer than such a run."""
LOGISTIC = {
    "model.name": "logistic",
    "workload.clients": 4,
    "workload.limit": 200,
    "schedule.rounds": 3,
    "schedule.local_epochs": 1,
}
"""A run of less than a second."""
ON_RAY = LOGISTIC | {"method.name": "fedavg", "pictures": False, "engine.dashboard": False}
"""The same on Ray."""


def small_run(output: Path, base: Mapping[str, object], /, **options: object) -> RunConfig:
    """The settings of a run.

    Args:
        output: its folder.
        base: what a file of tests has in common, over ``IN_PROCESS``.
        options: what one test wants else, as paths with __ for a dot; None: as if ``base`` had not named it.
    """
    chosen = IN_PROCESS | {"output": str(output)} | dict(base) | dotted(options)
    return build([{path: value for path, value in chosen.items() if value is not None}])


def dotted(options: Mapping[str, object]) -> dict[str, object]:
    """Options whose paths have __ for a dot, by their paths."""
    return {name.replace("__", "."): value for name, value in options.items()}


def with_engine(**engine: object) -> RunConfig:
    """The settings of a run of which only the engine's matter."""
    settings = {"model.name": "logistic", "workload.clients": 100}
    return build([settings | {f"engine.{name}": value for name, value in engine.items()}])


def worker_of(config: RunConfig) -> Worker:
    """A worker of this process, with the run's data."""
    return Worker(config, load_federation(config, sequential))


def words(settings: Mapping[str, Any]) -> list[str]:
    """The command line for settings by their paths."""

    def text(value: Any) -> str:
        if isinstance(value, tuple):
            return f"[{','.join(map(str, value))}]"
        return str(value).lower() if isinstance(value, bool) else str(value)

    return [f"--{path}={text(value)}" for path, value in settings.items()]
