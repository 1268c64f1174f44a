"""A wrapped method's columns stand beside its wrappers', and have other names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from raysim.columns import CLIENT_COLUMNS, COLUMNS, may_be_reported
from raysim.config.privacy import Privacy
from raysim.config.sections import Training
from raysim.config.wrappers import Attack, Compression, Defense
from raysim.errors import RaysimError
from raysim.method import ClientTask, Context, Update, Updates
from raysim.methods.fedavg import FedAvg
from raysim.wrappers.own_columns import MALICIOUS, TAKEN, own_step
from raysim.wrappers.privacy import CUT
from raysim.wrappers.wrapped import Wrapped
from tests.raysim.methods.by_hand import context, linear, updates
from tests.raysim.methods.softmax_by_hand import data_of


@dataclass
class Reporting:
    """A method that reports a number of the round and one of each client."""

    of_round: str
    of_clients: str

    def aggregate(self, server: Any, updates: Updates, context: Context) -> Any:
        context.report.round(self.of_round, 1.5)
        context.report.clients(self.of_clients, np.array([3.0, 4.0]))
        return server + 1


def told() -> Context:
    found = context()
    found.report.round("epsilon", 8.0)
    found.report.clients("malicious", np.array([0.0, 1.0]))
    return found


def test_columns_of_a_method_are_added_to_those_of_its_wrappers() -> None:
    given = told()
    assert own_step(Reporting("spread", "angle"), 1, updates([[0], [1]], [1, 1]), given) == 2
    assert given.report.round_columns == {"epsilon": 8.0, "spread": 1.5}
    assert {name: values.tolist() for name, values in given.report.client_columns.items()} == {
        "malicious": [0, 1],
        "angle": [3, 4],
    }


@pytest.mark.parametrize("taken", sorted(TAKEN))
@pytest.mark.parametrize("of_round", [True, False])
def test_a_server_may_not_report_a_column_of_a_wrapper(taken: str, of_round: bool) -> None:
    method = Reporting(taken, "angle") if of_round else Reporting("spread", taken)
    with pytest.raises(RaysimError, match=f"round 1, stage aggregate: report: {taken} is .* own_{taken} say"):
        own_step(method, 1, updates([[0], [1]], [1, 1]), told())


def test_every_column_of_a_wrapper_is_known_to_be_one() -> None:
    """Wrappers report the columns that the engine lets others report, but for training's and the weight of a client."""
    left = {name for name in (*COLUMNS, *CLIENT_COLUMNS) if may_be_reported(name)}
    assert left - {"steps", "train_loss", "weight"} == TAKEN - {CUT}


@pytest.mark.parametrize("taken", [CUT, MALICIOUS])
def test_a_client_may_not_report_a_column_of_a_wrapper(taken: str) -> None:
    class Own(FedAvg):
        def train(self, *given: Any) -> tuple[Update, None]:
            return Update(np.zeros(2, np.float32), {taken: 0.5}), None

    wrapped = Wrapped(Own(), Attack(), Compression(), Defense(), privacy=Privacy("local"), noise=1.0)
    model = linear(FedAvg())
    task = ClientTask(0, 1, 0, 0, 0.1, Training(), classes=2)
    with pytest.raises(RaysimError, match=rf"Update\.metrics: {taken} is the name of a column of privacy"):
        wrapped.train(model, data_of(0), wrapped.message(model.take_shared(), 0), None, task)
