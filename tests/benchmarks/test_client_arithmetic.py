"""Operations of a client task are counted, and laid beside what the processor can do."""

from __future__ import annotations

import pytest

from benchmarks import client_arithmetic


def test_the_products_of_a_network_are_counted() -> None:
    """Forward one product a layer, backward two, but for the first layer, whose input has no gradient."""
    options = {
        "method.name": "fedavg",
        "workload.name": "digits",
        "workload.clients": 2,
        "model.name": "mlp",
        "model.hidden": [10],
        "engine.merge_single_steps": False,
        "schedule.rounds": 2,
    }
    found = client_arithmetic.measured(options)
    assert len(found) == 2
    for own in found.values():
        samples, rest = divmod(own["operations"], 2 * (2 * 64 * 10 + 3 * 10 * 10))
        assert samples > 100 and rest == 0
        assert own["seconds"] > 0 and own["draws"] == 0


def test_the_numbers_of_dropout_are_counted() -> None:
    options = {"method.name": "fedssp", "model.hidden": 8, "model.heads": 2, "schedule.rounds": 2}
    found = client_arithmetic.measured(options)
    assert all(own["draws"] > 0 for own in found.values())
    assert all(own["draws"] == 0 for own in client_arithmetic.measured({**options, "model.dropout": 0}).values())


def test_the_whole_round_is_the_sum_of_its_clients() -> None:
    found = {
        "a": {"seconds": 2.0, "operations": 1e9, "draws": 1e6},
        "b": {"seconds": 4.0, "operations": 2e9, "draws": 0},
    }
    one, other, every = client_arithmetic.rows_of(found, products=1e9, numbers=2e6)
    assert (one["seconds_of_products"], one["seconds_of_draws"], one["share"]) == (1.0, 0.5, 0.75)
    assert (other["seconds_of_products"], other["seconds_of_draws"], other["share"]) == (2.0, 0.0, 0.5)
    assert (every["seconds"], every["gigaflop"], every["million_draws"]) == (6.0, 3.0, 1.0)
    assert every["share"] == pytest.approx(0.58)
