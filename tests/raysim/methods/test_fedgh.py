from __future__ import annotations

import numpy as np

from raysim.methods.fedavg import FedAvg
from raysim.methods.fedgh import FedGH
from tests.raysim.methods.by_hand import context, updates


def test_conflicting_parameters_are_harmonized_and_buffers_averaged() -> None:
    found = context()
    start = np.array([10, 20, 30], np.float32)
    # The buffers (last entry) agree strongly: were they projected too, there would be no conflict.
    server = FedGH().aggregate(start, updates([[1, 0, 8], [-1, 1, 16]], [1, 3]), found)
    # (½, ½) and (0, 1) by samples 1 : 3
    np.testing.assert_allclose(server, [10 + 1 / 8, 20 + 7 / 8, 30 + 14], rtol=1e-6)
    np.testing.assert_allclose(found.report.client_columns["weight"], [1 / 4 + 3 / 4, 1 / 8 + 3 / 4])
    assert found.report.round_columns == {"conflicting_pairs": 1.0}


def test_without_a_conflict_it_is_fedavg_bit_for_bit() -> None:
    start = np.array([0.1, 0.2, 0.3], np.float32)
    given = updates([[1.1, 2.3, -1], [0.7, 0.1, 5]], [1, 3])
    assert np.array_equal(FedGH().aggregate(start, given, context()), FedAvg().aggregate(start, given, context()))
