"""Loads the clients' data as the run's method and model need them."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from raysim import seeds
from raysim.config.given_code import has_own_code

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig
    from raysim.workloads.federated_data import Federation
    from raysim.workloads.parallel_map import Parallel


def load_federation(config: RunConfig, parallel: Parallel) -> Federation:
    """The clients' data as the run's method and model need it: spectra computed, pooled into one client."""
    with seeds.kept_streams(seeds.number(config.seed, "load")) if has_own_code(config) else nullcontext():
        federation: Federation = config.workload.load(seeds.data_streams(config.seed))
    prepare_data = getattr(federation, "prepare", None)
    if prepare_data is not None:
        federation = prepare_data(getattr(config.model, "needs_spectra", False), parallel)
    return federation.pooled() if config.method.traits.pooled else federation
