"""pFedMe against plain loops over its equations, which share no code with it."""

from __future__ import annotations

import pytest

from raysim.config.run_config import build
from raysim.errors import ConfigError
from raysim.methods.pfedme import PFedMe
from tests.raysim.methods.softmax_by_hand import DATA
from tests.raysim.methods.two_layers import EPOCHS, NEWCOMER, RATE, START, Matrix, check, gradient, rounds_by_hand

ENVELOPE, STEPS, PERSONAL_RATE = 1.5, 3, 0.125


@pytest.mark.parametrize("server_rate", [1.0, 0.5])
def test_two_rounds_of_two_clients_out_of_three(server_rate: float) -> None:
    def client_task(common: Matrix, own: Matrix | None, client: int) -> tuple[Matrix, Matrix]:
        """w_i, moved by the server's share of its change, and θ."""
        local = theta = common
        for sample in DATA[client] * EPOCHS:
            for _ in range(STEPS):
                theta = theta - PERSONAL_RATE * (gradient(theta, sample) + ENVELOPE * (theta - local))
            local = local - RATE * ENVELOPE * (local - theta)
        return (1 - server_rate) * common + server_rate * local, theta

    common, own = rounds_by_hand(START, client_task)
    check(PFedMe(ENVELOPE, STEPS, PERSONAL_RATE, server_rate), common, own | {NEWCOMER: common})


def test_steps_that_diverge_are_refused() -> None:
    build([{"method.name": "pfedme", "method.envelope": 15.0, "method.personal_rate": 0.125}])
    with pytest.raises(ConfigError, match=r"method: personal_rate 0\.125 × envelope 16\.0 must be < 2"):
        build([{"method.name": "pfedme", "method.envelope": 16.0, "method.personal_rate": 0.125}])
