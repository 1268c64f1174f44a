"""What runs of the tests of actors have in common."""

from __future__ import annotations

import pytest


@pytest.fixture
def base() -> dict[str, object]:
    """A small run on Ray whose client tasks last long enough to be met at work."""
    return {
        "workload.clients": 6,
        "model.name": "cnn",
        "schedule.rounds": 5,
        "schedule.local_epochs": 2,
        "evaluation.every": 2,
        "engine.backend": "ray",
        "engine.checkpoint_every": 1,
    }
