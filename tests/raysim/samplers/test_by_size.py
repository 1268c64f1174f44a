"""Sampling by size: clients of more samples come more often, in a run of any shape of population."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from raysim.config.sections import Schedule
from raysim.samplers._sampler import Known


@pytest.mark.parametrize("clients", [range(5), [2, 3, 5, 7, 9]])
def test_clients_are_drawn_in_proportion_to_their_samples(clients: Sequence[int]) -> None:
    held = np.array([0, 0, 10, 30, 0, 0, 0, 60, 0, 0])
    known = Known(1, clients, 1, lambda some: held[[*some]])
    sampler = Schedule(sampling="by-size", sampling_rate=0.2).sampler
    drawn = [int(sampler.cohort(known, np.random.default_rng(seed))[0]) for seed in range(400)]
    shares = held[[*clients]] / held[[*clients]].sum()
    assert np.bincount(drawn, minlength=10)[[*clients]] / 400 == pytest.approx(shares, abs=0.08)
