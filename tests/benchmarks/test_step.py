"""The benchmark of a step: that both sides train the same clients, and its arithmetic; nothing here is timed."""

from __future__ import annotations

import numpy as np

from benchmarks import step
from raysim.client_side.worker import Worker, fixed_threads
from raysim.config.run_config import RunConfig
from tests.small_runs import worker_of


def test_both_sides_do_their_work_on_the_same_samples() -> None:
    with fixed_threads(1):
        timed = step.sides("mlp", 4, "float32")
        assert list(timed) == ["bare step", "raysim step", "bare client", "raysim client"]
        for work in timed.values():
            work()
    config: RunConfig = step.config_of("mlp", 4, "float32")
    worker: Worker = worker_of(config)
    arrays = step.plain_arrays(worker, step.STEPS * 4)
    (batch,) = worker.federation.client(1, "cpu").train.batches(step.STEPS * 4)
    np.testing.assert_array_equal(arrays.client(1)[0], batch.x.numpy())


def test_a_row_has_medians_and_the_median_of_the_ratios_of_neighbors() -> None:
    found = {
        "bare step": [5.0, 10.0, 15.0],
        "raysim step": [10.0, 10.0, 15.0],
        "bare client": [2.0, 2.0, 2.0],
        "raysim client": [1.0, 1.0, 1.0],
    }
    row = step.row("mlp", 4, "float32", found)
    assert [*row.values()] == ["mlp", 4, "float32", "2", "2", "1.00", "2", "1", "0.50"]
