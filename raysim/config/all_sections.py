"""All sections of a run's config, as the checks between them take it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from raysim.config.privacy import Privacy
from raysim.config.sections import Engine, Evaluation, Schedule, Training
from raysim.config.timing import Devices, Events, Timing
from raysim.config.wrappers import Attack, Compression, Defense

CHOICES_OF_AUTO: Mapping[str, tuple[str, ...]] = {
    "training.precision": ("float32", "bf16"),
    "training.last_batch": ("keep", "merge"),
}
"""Options that may be left to a run (``auto``), and what it may decide; its proof has what it decided."""
DECIDED = ("training.last_batch",)
"""Options that ``auto`` leaves to a run, and on which others depend; a folder may hold what its run has decided."""
LENGTH, ON_CLIENT_ERROR = ("schedule.rounds", "schedule.epochs"), "engine.on_client_error"
"""Options of results with which a run may go on otherwise than it began; of the length, the number of rounds counts."""


@dataclass(frozen=True)
class Sections:
    """The three sections that a name picks, and the fixed ones."""

    method: Any
    workload: Any
    model: Any
    training: Training = field(default_factory=Training)
    schedule: Schedule = field(default_factory=Schedule)
    evaluation: Evaluation = field(default_factory=Evaluation)
    devices: Devices = field(default_factory=Devices)
    timing: Timing = field(default_factory=Timing)
    events: Events = field(default_factory=Events)
    attack: Attack = field(default_factory=Attack)
    privacy: Privacy = field(default_factory=Privacy)
    compression: Compression = field(default_factory=Compression)
    defense: Defense = field(default_factory=Defense)
    engine: Engine = field(default_factory=Engine)
    decided: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """Paths of options whose values are a run's decision: another that has no effect with them is no user's slip."""
