from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raysim.running.simulation import run
from raysim.workloads.errors import WorkloadError
from raysim.workloads.images.digit_domains import DigitDomains
from tests.small_runs import small_run
from tests.workloads.conftest import Stream

needs_data = pytest.mark.skipif("RAYSIM_DATA" not in os.environ, reason="RAYSIM_DATA is not set")


@pytest.fixture
def colored(put_images: Callable[..., Path]) -> None:
    """A domain of 30 + 10 images 6x6 in color, (90, 120, 150) everywhere."""
    pixels = np.broadcast_to(np.array([90, 120, 150], np.uint8), (30, 6, 6, 3))
    put_images("svhn", pixels, np.arange(30) % 10, tests=10)


def test_domains_are_clients_of_one_size_in_gray(colored: None, stream: Stream) -> None:
    federation = DigitDomains(domains=("svhn", "optdigits"), size=8, domain_limit=20).load(stream)
    table = federation.manifest()
    assert table["name"].tolist() == ["optdigits", "svhn"]
    assert table["samples"].tolist() == [20, 20] and table["test_samples"].tolist() == [359, 10]
    assert federation.input_spec(0).input_shape == (1, 8, 8)
    assert set(np.unique(federation.inputs[:20])) == {120}


def test_several_clients_share_a_domain(colored: None, stream: Stream) -> None:
    table = DigitDomains(domains=("svhn",), domain_clients=3).load(stream).manifest()
    assert table["name"].tolist() == ["svhn 1", "svhn 2", "svhn 3"]
    assert table["samples"].tolist() == [10, 10, 10] and sum(table["test_samples"]) == 10


def test_domains_that_cannot_be(colored: None, stream: Stream) -> None:
    with pytest.raises(WorkloadError, match="domains must be different names, not svhn,svhn"):
        DigitDomains(domains=("svhn", "svhn")).sketch(stream)
    with pytest.raises(WorkloadError, match=r"no \.npz file mnist-m; looked in"):
        DigitDomains(domains=("mnist-m",)).sketch(stream)


@pytest.mark.slow
@needs_data
def test_one_command_on_three_domains(tmp_path: Path) -> None:
    base = {"workload.name": "digit-domains", "workload.domain_limit": 300, "workload.size": 16, "schedule.rounds": 4}
    options: dict[str, Any] = {"workload__local_test": "cut", "model__name": "mlp", "schedule__local_epochs": 3}
    result = run(small_run(tmp_path / "run", base, training__learning_rate=0.1, **options))
    assert result.rounds["accuracy"].iloc[-1] > 0.6
