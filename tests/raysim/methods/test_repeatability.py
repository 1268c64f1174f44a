"""Every method on digits with sampling and late joiners: the same config gives the same bits, stopped or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from raysim.config.run_config import RunConfig
from raysim.results.result import load_result
from raysim.running.simulation import run
from tests.fingerprint import fingerprint
from tests.watch import stopped

BATCH_NORM = {"model__name": "tests.raysim.user_code:WithBatchNorm"}
METHODS: dict[str, dict[str, Any]] = {
    "apple": BATCH_NORM,
    "ditto": BATCH_NORM,
    "fedala": BATCH_NORM,
    "fedavg": {},
    "fedbabu": {},
    "pfedme": {},
    "fedbn": BATCH_NORM,
    "fedcp": {"method__noise": "gumbel"},
    "fedgh": {},
    "fedld": {"method__granularity": "layer", "method__conflict": "drop", **BATCH_NORM},
    "fedpac": {},
    "fedrad": {},
    "feddyn": BATCH_NORM,
    "ifca": BATCH_NORM,
    "local": {"evaluation__decompose_every": 1},
    "fedproto": {},
    "moon": {},
    "perfedavg": BATCH_NORM,
    "scaffold": {"training__momentum": 0.5, **BATCH_NORM},
}


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_three_rounds_stopped_and_resumed_give_the_same_bits(
    make_config: Callable[..., RunConfig], method: str
) -> None:
    # No checkpoint is due before the end: it is the stop that must save the last whole round.
    options = {
        "method__name": method,
        "engine__checkpoint_every": 100,
        "schedule__sampling_rate": 0.7,
        "schedule__joins": (2, 2, 1),
        "schedule__join_every": 1,
        **METHODS[method],
    }
    whole = run(make_config("whole", **options))
    assert whole.rounds["participants"].tolist()[0] < whole.rounds["participants"].tolist()[-1]
    assert whole.rounds["loss"].notna().all()
    config = make_config("parts", **options)
    folder = stopped(config, rounds=2)
    assert len(load_result(folder).rounds) == 2 and not (folder / "summary.json").exists()
    assert fingerprint(run(config, resume=folder).folder) == fingerprint(whole.folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"method__name": "apple", "method__relation_learning_rate": 0.01}, {"method__name": "fedcp"}]
)
def test_personal_models_learn_on_digits(make_config: Callable[..., RunConfig], options: dict[str, Any]) -> None:
    longer = {"workload__alpha": 0.3, "schedule__rounds": 6, "training__steps_per_epoch": 0}
    result = run(make_config("run", **options, **longer))
    accuracy = result.rounds["accuracy"].tolist()
    assert accuracy[-1] > 0.8 and accuracy[-1] > accuracy[0]
    assert "own_weight" not in result.clients or result.clients["own_weight"].nunique() > 5
