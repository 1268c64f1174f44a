"""What a trait makes of a run, on methods that declare it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

import raysim
from raysim import Context, Traits, Updates
from raysim.aggregators.means import plain_mean
from raysim.methods.fedavg import FedAvg
from raysim.results.result import RunResult
from tests.small_runs import LOGISTIC, small_run

UNEQUAL = LOGISTIC | {"workload.partition": "lognormal", "workload.sigma": 0.8}


@dataclass(frozen=True)
class Plain(FedAvg):
    """Updates are added up where clients are trained."""

    traits: ClassVar[Traits] = Traits(weighted_mean=True, plain_mean=True)


@dataclass(frozen=True)
class ByHand(FedAvg):
    """The same from every client's own update."""

    traits: ClassVar[Traits] = Traits(takes_stale=True)

    def aggregate(self, server: Any, updates: Updates, context: Context) -> Any:
        return server + plain_mean(updates.deltas)


def played(folder: Path, method: str, **options: Any) -> RunResult:
    return raysim.run(small_run(folder / method, UNEQUAL, method__name=f"{__name__}:{method}", **options))


@pytest.mark.parametrize(
    "options", [{}, {"timing__mode": "buffered", "timing__buffer": 2, "devices__preset": "phones"}]
)
def test_with_plain_mean_every_client_counts_once(tmp_path: Path, options: dict[str, Any]) -> None:
    """In rounds and where updates are stale, but for the order of sums; the table has the samples themselves."""
    one, other = played(tmp_path, "Plain", **options), played(tmp_path, "ByHand", **options)
    assert one.rounds["loss"].to_numpy() == pytest.approx(other.rounds["loss"].to_numpy(), rel=1e-5)
    samples = one.clients["samples"].to_numpy()
    assert samples.max() > 2 * samples.min() and (samples == other.clients["samples"].to_numpy()).all()
    share = 1 / one.clients.groupby("round")["client"].transform("count")
    assert one.clients["weight"].to_numpy() == pytest.approx(share.to_numpy())


def test_a_mean_of_a_robust_rule_counts_every_client_once(tmp_path: Path) -> None:
    """Bounds that no update reaches leave the mean, which is plain as without them."""
    bounded = {"defense__rule": "norm-bound", "defense__radius": 1e6}
    one, other = played(tmp_path / "rule", "Plain", **bounded), played(tmp_path, "Plain")
    assert one.rounds["loss"].to_numpy() == pytest.approx(other.rounds["loss"].to_numpy(), rel=1e-5)


def test_tables_say_the_plain_weights(tmp_path: Path) -> None:
    clients = pd.read_csv(Path(played(tmp_path, "Plain").folder) / "clients.csv")
    assert np.unique(clients["weight"]).tolist() == [0.25]
