"""Data and models that are given to a run in Python once more: read, and compared with what the run was made with."""

from __future__ import annotations

from pathlib import Path

from raysim import seeds
from raysim.config.run_config import RunConfig
from raysim.errors import ResultsError
from raysim.workloads.given.arrays import GatheredArrays
from raysim.workloads.graphs.given_graphs import GatheredGraphs, gather_graphs, hold_graphs


def gathered(clients: object, test: object = None) -> GatheredArrays | GatheredGraphs:
    """The data of all clients, read and checked: graphs, or arrays of whatever else.

    Raises:
        WorkloadError: as :func:`raysim.workloads.given.arrays.gather` and
            :func:`raysim.workloads.graphs.given_graphs.gather_graphs`.
    """
    from raysim.workloads.given.arrays import gather

    with seeds.kept_streams(seeds.number(0, "data")):  # a Dataset may draw from them; the data is not the run's seed's
        return gather_graphs(clients, test) if hold_graphs(clients) else gather(clients, test)


def check_digests(stored: RunConfig, config: RunConfig, path: Path) -> None:
    """ResultsError unless data and model that were given in Python are those that a run was made with."""
    for kind, what in (("workload", "data"), ("model", "model")):
        before, now = (getattr(getattr(each, kind), "digest", "") for each in (stored, config))
        if before and now:
            advice = f"give the same {what} to go on, or start a new run without resume"
            check_digest(what, before, now, path, advice)


def check_digest(what: str, before: str, now: str, path: Path, advice: str) -> None:
    """ResultsError unless data or a model has the digest that the config of the run in ``path`` names."""
    if before != now:
        raise ResultsError(
            f"the {what} is not the one that {path} was made with (SHA-256 {now[:12]}…, and {before[:12]}… in its "
            f"config.yaml); {advice}"
        )
