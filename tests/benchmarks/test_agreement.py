"""Comparisons with other programs: what they are made of, and that the page has what was measured."""

from __future__ import annotations

import csv
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch

from benchmarks.agreement import adafgl, dgl_parts, float64, float64_stale, problem, subgraphs
from benchmarks.agreement.__main__ import LIMIT, table
from benchmarks.agreement.case import Case, Change, compared, largest
from benchmarks.agreement.problem import Values

DOCS = Path(__file__).parents[2] / "docs"
PARTS = (float64_stale, float64, subgraphs, adafgl)


def averaged(rate: Callable[[], float], momentum: float = 0.0) -> Values:
    """Federated averaging in a few lines."""
    model = problem.network()
    for _ in range(problem.ROUNDS):
        start, total = [value.detach().clone() for value in model.parameters()], torch.zeros(())
        for client, size in enumerate(problem.SIZES):
            for value, first in zip(model.parameters(), start, strict=True):
                value.data.copy_(first)
            optimizer = torch.optim.SGD(model.parameters(), rate(), momentum)
            for inputs, labels in problem.EPOCHS * problem.batches(client):
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(inputs), labels).backward()
                optimizer.step()
            total = total + problem.vector(model.parameters()) * size / sum(problem.SIZES)
        torch.nn.utils.vector_to_parameters(total, model.parameters())
    return {"server": problem.vector(model.parameters())}


def test_a_loop_of_ones_own_agrees_once_it_is_the_same() -> None:
    rates = {"its": 0.05}

    def mended() -> AbstractContextManager[Any]:
        return mock.patch.dict(rates, its=problem.RATE)

    found = compared(Case("fedavg", lambda: averaged(lambda: rates["its"]), changes=(Change("defect: rate", mended),)))
    assert found.changed < 1e-6 < 0.01 < found.unchanged
    with_momentum = partial(averaged, lambda: problem.RATE, 0.9)
    assert compared(Case("fedavg", with_momentum, {"training.momentum": 0.9})).changed < 1e-6


def test_the_softmax_over_edges_and_the_mean_over_nodes_are_those_of_each_node_and_graph() -> None:
    edges = torch.tensor([[0, 1, 2, 3], [1, 0, 1, 4]])  # a path of three nodes, and one of two
    graph = dgl_parts.Graph(edges, torch.tensor([3, 2]))
    values = torch.tensor([[1.0], [5.0], [2.0], [-3.0]])
    expected = torch.tensor([torch.tensor([1.0, 2.0]).softmax(0)[0], 1, torch.tensor([1.0, 2.0]).softmax(0)[1], 1])
    torch.testing.assert_close(dgl_parts.edge_softmax(graph, values)[:, 0], expected)
    nodes = torch.tensor([[1.0], [2.0], [6.0], [0.0], [4.0]])
    assert dgl_parts.AvgPooling()(graph, nodes).tolist() == [[3.0], [2.0]]


def test_the_page_has_the_rows_that_were_measured_and_they_agree() -> None:
    with (DOCS / "results" / "agreement.csv").open(encoding="utf-8") as file:
        rows = [*csv.DictReader(file)]
    assert "\n".join(table(rows)) in (DOCS / "agreement.md").read_text(encoding="utf-8")
    assert max(float(row["changed"]) for row in rows) < LIMIT
    assert all(row["changes"] or row["as_it_is"] == row["changed"] for row in rows)
    kinds = {part.partition(":")[0] for row in rows if row["changes"] for part in row["changes"].split("; ")}
    assert kinds == {"defect", "decision", "start"}
    methods = {row["method"] for row in rows}
    foreign = {row["method"] for row in rows if not row["program"].startswith("float64")}
    assert f"{len(methods)} of them, {len(foreign)} beside" in (DOCS / "methods.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("words", ["ALIE", "margin and principal rule", "left-over samples merged"])
def test_float64_code_agrees(words: str) -> None:
    """One of each kind; all have rows, and tests/raysim/virtual_time/test_stale_methods.py more of virtual time."""
    case = next(case for name, case in float64.cases() if name == words)
    assert compared(case).unchanged < 1e-6


def test_every_case_of_float64_has_a_row_and_computes_something_of_its_own() -> None:
    with (DOCS / "results" / "agreement.csv").open(encoding="utf-8") as file:
        rows = [(row["method"], row["program"]) for row in csv.DictReader(file)]
    of_float64 = [row for row in rows if row[1].startswith("float64")]
    assert of_float64 == [(case.method, f"float64: {words}") for part in PARTS for words, case in part.cases()]
    plain = float64.rounds(lambda clients, changes: float64.SHARES @ changes)
    others = [float64.rounds(rule) for rule in (float64.alie, float64.principal)]
    assert min(largest(plain, other) for other in others) > 1e-3
    assert largest(float64_stale.fedbuff(uniform=True), float64_stale.fedbuff(uniform=False)) > 1e-3


def test_a_buffer_s_updates_are_of_the_clients_who_are_back_first() -> None:
    """A task takes 0.1 s and 0.02 s a sample: clients 0, 1 and 2 take 0.58, 0.42 and 0.26 s."""
    steps = [[(each.client, each.version) for each in taken] for taken in float64_stale.arrivals(2)]
    assert steps[:3] == [[(1, 0), (2, 0)], [(0, 0), (2, 1)], [(1, 1), (2, 2)]]


@pytest.mark.parametrize("batch", [8, 24])
def test_every_sample_is_in_one_mini_batch(batch: int) -> None:
    with mock.patch.object(problem, "BATCH", batch):
        assert [sum(map(len, next(zip(*problem.batches(client), strict=True)))) for client in range(3)] == [24, 16, 8]
