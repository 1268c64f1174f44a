"""Whether code that a user hands over, by name or as an object, takes part in a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raysim.config import registry
from raysim.workloads.given.given_data import GivenModel

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig


def has_own_code(config: RunConfig) -> bool:
    """Whether code of a user's own takes part in a run: a method, model, workload, loss or metric."""
    loss, metrics = getattr(config.workload, "functions", (None, {}))
    own = [kind for kind in registry.KINDS if ":" in registry.public_name(kind, getattr(config, kind))]
    return bool(own or loss is not None or metrics or isinstance(config.model, GivenModel))
