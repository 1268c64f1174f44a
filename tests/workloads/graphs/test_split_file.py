"""The file of a split: kept with a run, and given to another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from raysim.running.simulation import run
from raysim.workloads.errors import WorkloadError
from raysim.workloads.graphs.nodes import Nodes
from tests.made_subgraphs import rings
from tests.small_runs import small_run
from tests.workloads.conftest import Stream


def test_the_split_of_a_run_can_be_given_again(tmp_path: Path, stream: Stream) -> None:
    base = {"workload.name": "nodes", "workload.path": rings(tmp_path), "workload.clients": 3, "model.name": "gcn"}
    drawn = {"workload.split": "random", "workload.partition": "louvain", "schedule.rounds": 1}
    first = run(small_run(tmp_path / "drawn", base | drawn))
    table = str(tmp_path / "drawn" / "split.csv")
    given = {"workload.split": "file", "workload.partition": "file", "workload.owners": table, "schedule.rounds": 1}
    second = run(small_run(tmp_path / "given", base | given, seed=0))
    assert (tmp_path / "given" / "split.csv").read_text() == Path(table).read_text()
    assert second.rounds["train_loss"].tolist() == first.rounds["train_loss"].tolist()
    lines = Path(table).read_text().splitlines()
    assert lines[0] == "node,client,part" and len(lines) == 61
    options: Any = {"path": rings(tmp_path), "partition": "file", "owners": table, "split": "file", "clients": 3}
    for damaged, words in (
        ([*lines[:1], *lines[2:]], "its rows are not node,client,part of node 0, 1"),
        ([*lines[:-1], "59,0,tested"], "a part is none of unused, train, validation, test"),
        (lines[:-1], "it has 59 lines, and the graph 60 nodes"),
    ):
        Path(table).write_text("\n".join(damaged))
        with pytest.raises(WorkloadError, match=words):
            Nodes(**options).load(stream)
    with pytest.raises(WorkloadError, match="split file takes the parts of --owners, which is not set"):
        Nodes(split="file")
