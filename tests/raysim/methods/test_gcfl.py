from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from raysim.config.run_config import RunConfig
from raysim.flat_model import FlatModel
from raysim.method import Updates
from raysim.methods._splitting_clusters import Server
from raysim.methods.gcfl import GCFL
from raysim.running.simulation import run
from raysim.storage import pytree, tree_template
from tests.raysim.methods.by_hand import context, updates
from tests.state_equality import equal

RIGHT, LEFT = [1.0, 0.1, 7.0], [-1.0, -0.1, 3.0]
"""Two parameters and a buffer; without the buffer they cancel."""


def start() -> Server:
    return Server(np.array([10, 20, 30], np.float32), {}, {})


PLANTED = updates([RIGHT, LEFT, RIGHT, LEFT, [-0.1, 0.0, 5.0]], [1, 2, 3, 4, 4], [0, 2, 3, 5, 8])
"""Clients 0 and 3 go right, 2, 5 and 8 left; the mean of the parameters is (-0.02, 0)."""


def test_a_planted_pair_of_clusters_splits_in_round_21_and_is_averaged_apart() -> None:
    found = context(round=21)
    server = GCFL().aggregate(start(), PLANTED, found)
    # The larger side stays cluster 0: (2·LEFT + 4·LEFT + 4·(-0.1, 0, 5)) / 10; the other is RIGHT whatever the samples.
    np.testing.assert_allclose(server.parameters, [10 - 0.64, 20 - 0.06, 30 + 3.8], rtol=1e-6)
    assert list(server.split_off) == [1] and server.cluster_of == {0: 1, 3: 1}
    np.testing.assert_allclose(server.split_off[1], [11, 20.1, 37], rtol=1e-6)
    assert found.report.round_columns == {"clusters": 2.0}
    assert found.report.client_columns["cluster"].tolist() == [1, 0, 1, 0, 0]
    # Each client gets its cluster's model, one object for all of them; who was never here belongs to cluster 0.
    models = [GCFL().message(server, client).parameters for client in (0, 3, 2, 99)]
    assert models[0] is models[1] is server.split_off[1] and models[2] is models[3] is server.parameters
    # Next round: only client 3 of cluster 1 takes part; the clusters no longer meet, and client 0 stays where it is.
    later = GCFL().aggregate(server, updates([[1, 1, 1], [2, 2, 2]], [5, 1], [3, 5]), context(round=22))
    np.testing.assert_allclose(later.split_off[1], [12, 21.1, 38], rtol=1e-6)
    np.testing.assert_allclose(later.parameters, [11.36, 21.94, 35.8], rtol=1e-6)
    assert later.cluster_of == {0: 1, 3: 1}
    # A cluster without participants keeps its model.
    assert GCFL().aggregate(later, updates([LEFT], [1], [2]), context(round=23)).split_off[1] is later.split_off[1]


@pytest.mark.parametrize(
    ("method", "round", "given"),
    [
        (GCFL(), 20, PLANTED),
        (GCFL(quiet_rounds=21), 21, PLANTED),
        (GCFL(), 21, updates([RIGHT, LEFT], [1, 1])),  # never under three clients
        (GCFL(small_mean=0.019), 21, PLANTED),
        (GCFL(small_mean=0.25), 21, updates([[1, 0, 5], [-1, 0, 5], [0.75, 0, 5]], [1, 1, 1])),  # ‖mean‖ = 1/4
        (GCFL(large_update=1.01), 21, PLANTED),
        (GCFL(large_update=1.0), 21, updates([[1, 0, 5], [-1, 0, 5], [0, 0, 5]], [1, 1, 1])),  # the longest are 1
        (GCFL(), 21, updates([LEFT], [1])),
        (GCFL(), 21, updates([RIGHT, LEFT, RIGHT], [1, 1, 1])),  # ‖mean‖ = 0.33
    ],
)
def test_no_split_is_fedavg(method: GCFL, round: int, given: Updates) -> None:
    found = context(round=round)
    server = method.aggregate(start(), given, found)
    assert np.array_equal(server.parameters, start().parameters + given.mean())
    assert server.split_off == {} and server.cluster_of == {} and found.report.round_columns == {"clusters": 1.0}
    assert not found.report.client_columns["cluster"].any()


def test_norms_are_over_parameters_and_not_over_buffers() -> None:
    # With the buffer in it the mean would be long; without it client 8 alone could not make an update long.
    calm = updates([[0.05, 0, 9], [-0.05, 0, 9], [0, 0, 9]], [1, 1, 1])
    assert not GCFL().aggregate(start(), calm, context(round=21)).split_off
    assert GCFL(large_update=0.04).aggregate(start(), calm, context(round=21)).split_off


def test_a_later_split_takes_the_next_number_and_leaves_the_absent_behind() -> None:
    server = Server(np.zeros(3, np.float32), {1: np.ones(3, np.float32)}, {4: 1, 5: 1, 6: 1, 7: 1, 9: 1})
    given = updates([RIGHT, LEFT, RIGHT, LEFT], [1, 1, 1, 1], [4, 5, 6, 7])
    found = context(round=30)
    after = GCFL().aggregate(server, given, found)
    # Sides of equal size: that of client 4 keeps the number, and client 9 with it.
    assert after.cluster_of == {4: 1, 5: 2, 6: 1, 7: 2, 9: 1} and not after.parameters.any()
    np.testing.assert_allclose(after.split_off[1], [2, 1.1, 8], rtol=1e-6)
    np.testing.assert_allclose(after.split_off[2], [0, 0.9, 4], rtol=1e-6)
    assert found.report.round_columns == {"clusters": 3.0}
    assert found.report.client_columns["cluster"].tolist() == [1, 2, 1, 2]


def test_its_state_comes_back_from_a_checkpoint() -> None:
    module = torch.nn.Linear(1, 2, bias=True)
    method = GCFL()
    template = method.init_server(FlatModel(module, method.shared_names(module)))
    server = Server(np.zeros(4, np.float32), {1: np.ones(4, np.float32)}, {3: 1})
    found = tree_template.unpack(*pytree.pack(server, "server"), template, "server")
    assert equal(found, server)


def test_a_run_that_splits(make_config: Callable[..., RunConfig]) -> None:
    options: dict[str, Any] = {"method__name": "gcfl", "method__quiet_rounds": 1, "method__small_mean": 1e9}
    options |= {"schedule__rounds": 2, "workload__name": "digits"}
    result = run(make_config("split", **options))
    assert result.rounds["clusters"].tolist() == [1, 2]
    assert result.clients.groupby("round")["cluster"].nunique().tolist() == [1, 2]
