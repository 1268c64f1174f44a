"""Features of neighbors that clients exchange before training: exact, and counted in bytes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from raysim.errors import ConfigError
from raysim.running.simulation import run
from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import InputSpec, exchanged_before_training
from raysim.workloads.graphs.feature_exchange import spread_features, surroundings
from raysim.workloads.graphs.node_batch import NodeBatch, Subgraph
from raysim.workloads.models.node_specs import Gat, Gcn
from tests.made_subgraphs import by_hand, node_options, rings
from tests.small_runs import small_run, worker_of


def test_an_exchange_is_counted_and_makes_a_gcn_exact_on_a_clients_own_nodes() -> None:
    """Nodes 0 and 4 of client 0 have neighbors outside, which are 1 and 3; a row of two features is 8 bytes."""
    graph, hops = by_hand().graph, {1: (16, 16), 2: (32, 32)}
    spread = replace(graph, features=spread_features(graph))
    torch.manual_seed(0)  # with one in twenty seeds no hidden unit is alive, and one exchange is as good as two
    model = Gcn(hidden=4, dropout=0.0).build(InputSpec((2,), 2, "nodes")).eval()
    whole = Subgraph(torch.from_numpy(graph.features), torch.from_numpy(np.hstack([graph.edges, graph.edges[::-1]])))
    expected = model(NodeBatch(whole, torch.arange(5)))
    for number, exchanged in hops.items():
        federation = replace(by_hand(), graph=spread, exchange=number)
        assert [federation.exchanged_bytes(client) for client in range(2)] == [exchanged, exchanged]
        data = federation.client(0, "cpu")
        batches = [next(iter(part.batches(9))) for part in (data.train, data.validation, data.test)]
        found = torch.cat([model(batch.x) for batch in batches])
        assert [int(batch.y[0]) for batch in batches] == [0, 1, 1]
        assert torch.allclose(found, expected[[0, 4, 2]], atol=1e-6) == (number == 2)
        assert exchanged_before_training(federation) == (2 * exchanged[0], 2 * exchanged[1])
    assert exchanged_before_training(by_hand()) == (0, 0)
    with pytest.raises(WorkloadError, match="Model 'gat' needs the features of neighbors"):
        Gat().check(federation.input_spec(0))


def test_an_exchange_before_training_is_in_the_first_round_alone(tmp_path: Path) -> None:
    base = {"workload.name": "nodes", "workload.path": rings(tmp_path), "workload.clients": 3, "model.name": "gcn"}
    base |= {"schedule.rounds": 2, "workload.exchange": "two_hops", "method.name": "fedgcn"}
    result = run(small_run(tmp_path / "run", base))
    first, second = result.rounds["bytes_up"]
    edges, owners = node_edges(tmp_path, 3)
    around = [surroundings(edges, owners, client) for client in range(3)]
    assert first - second == sum(8 * (len(part.border) + len(part.outside)) for part in around)
    with pytest.raises(ConfigError, match="the clock of virtual time does not know of bytes"):
        run(small_run(tmp_path / "timed", base, devices__preset="uniform"))


def node_edges(folder: Path, clients: int) -> tuple[Any, Any]:
    """Edges and clients of the rings that a run of seed 0 has."""
    config = small_run(
        folder / "none",
        {"workload.name": "nodes", "workload.path": rings(folder), "model.name": "gcn"},
        workload__clients=clients,
    )
    federation: Any = worker_of(config).federation
    return federation.graph.edges, federation.owners


def test_sums_of_features_do_not_depend_on_how_many_are_taken_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = spread_features(by_hand().graph)
    monkeypatch.setattr("raysim.workloads.graphs.feature_exchange.BLOCK", 1)
    assert spread_features(by_hand().graph).tobytes() == whole.tobytes()


def test_one_hop_sends_sums_of_nodes_outside_and_receives_those_of_the_border() -> None:
    """Client 0's node 0 has the neighbors 1, 2 and 3 of client 1; a row of five features is 20 bytes."""
    edges, owners = np.array([[0, 0, 0], [1, 2, 3]]), np.array([0, 1, 1, 1])
    one, other = (surroundings(edges, owners, client) for client in range(2))
    assert one.exchanged_bytes(1, 5) == (60, 20) and other.exchanged_bytes(1, 5) == (20, 60)
    assert one.exchanged_bytes(2, 5) == other.exchanged_bytes(2, 5) == (80, 80)


@pytest.mark.parametrize("exchange", ["one_hop", "samples"])
@pytest.mark.parametrize(
    "left_out",
    [
        {"schedule__unseen_clients": 1},
        {"schedule__without": (1,)},
        {"schedule__joins": (1, 1), "schedule__join_every": 5, "schedule__rounds": 2},
    ],
)
def test_who_takes_no_part_sends_no_features(left_out: dict[str, Any], exchange: str, tmp_path: Path) -> None:
    """The others would train on them."""
    options: dict[str, Any] = node_options() | {"workload__clients": 2, "schedule__rounds": 1, **left_out}
    run(small_run(tmp_path / "none", {}, **options))
    with pytest.raises(ConfigError, match=r": clients of rings send one another features .* workload.exchange to none"):
        run(small_run(tmp_path / "run", {}, **{**options, "workload__exchange": exchange}))
