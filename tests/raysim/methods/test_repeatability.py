"""Every method on digits with sampling and late joiners: the same config gives the same bits, stopped or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from raysim.config.run_config import RunConfig
from raysim.engine.observer import Silent
from raysim.simulation import execute, prepare, run
from raysim.storage.run_folder import load_result
from tests.fingerprint import fingerprint

BATCH_NORM = {"model__name": "mobilenet", "model__width": 0.1}
METHODS: dict[str, dict[str, Any]] = {
    "apple": BATCH_NORM,
    "fedbn": BATCH_NORM,
    "fedcp": {"method__noise": "gumbel"},
    "fedgh": {},
    "fedld": {"method__granularity": "layer", "method__conflict": "drop", **BATCH_NORM},
    "fedpac": {},
    "scaffold": {"training__momentum": 0.5, **BATCH_NORM},
}


class StopAfter(Silent):
    def __init__(self, round: int) -> None:
        self.round = round
        self.now = 0

    def round_started(self, round: int, local_epochs: int, participants: int) -> None:
        self.now = round

    def reached(self) -> bool:
        return self.now > self.round


@pytest.mark.parametrize("method", METHODS)
def test_three_rounds_stopped_and_resumed_give_the_same_bits(
    make_config: Callable[..., RunConfig], method: str
) -> None:
    options = {
        "method__name": method,
        "schedule__sampling_rate": 0.7,
        "schedule__joins": (2, 2, 1),
        "schedule__join_every": 1,
        **METHODS[method],
    }
    whole = run(make_config("whole", **options))
    assert whole.rounds["participants"].tolist()[0] < whole.rounds["participants"].tolist()[-1]
    assert whole.rounds["loss"].notna().all()
    config = make_config("parts", **options)
    folder = prepare(config)
    watch = StopAfter(2)
    assert execute(config, folder, watch, stopping=watch.reached).status == "stopped"
    assert len(load_result(folder).rounds) == 2
    assert fingerprint(run(config, resume=folder).folder) == fingerprint(whole.folder)
