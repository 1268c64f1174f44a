"""The time that the arithmetic of a client task takes at this processor's rate, beside the time of the whole task.

    RAYSIM_DATA=... python -m benchmarks.client_arithmetic method.name=fedssp workload.name=tudataset model.hidden=128

Options are those of a config file, as KEY=VALUE. One thread, processor time. Counted are the matrix products of a round
of every client, forward and backward (torch's counter), and the random numbers of its dropout. Their time is that of as
many operations in a large product of square matrices, and of as many numbers drawn in one call: what a task cannot go
below with these operations, whatever is done between them. Seconds are medians over the rounds behind the first.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
import yaml

SIDE = 2048
"""Rows and columns of the matrices whose product gives the rate."""
DRAWS = 1 << 20
"""Numbers that are drawn in one call."""
TIMES = 7


def rates() -> tuple[float, float]:
    """Operations a second of a product of matrices, and random numbers a second of torch's generator."""
    import torch

    matrix, numbers = torch.ones(SIDE, SIDE), torch.empty(DRAWS, dtype=torch.int64)
    return 2 * SIDE**3 / seconds(lambda: matrix @ matrix), DRAWS / seconds(lambda: numbers.random_(-(2**63), None))


def seconds(call: Callable[[], object]) -> float:
    """Median processor time of a call."""
    found = []
    for _ in range(TIMES):
        started = time.process_time()
        call()
        found.append(time.process_time() - started)
    return statistics.median(found)


def measured(options: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Seconds of a client task, operations of its products and numbers that its dropout draws, by client."""
    from torch.utils.flop_counter import FlopCounterMode

    from raysim.client_side.worker import Worker
    from raysim.config.run_config import build
    from raysim.engine.observer import Silent
    from raysim.running.open_run import prepare
    from raysim.running.simulation import execute
    from raysim.workloads.models.dropout import GeneratorDropout

    train, forward = Worker.train, GeneratorDropout.forward
    spent: dict[str, list[float]] = defaultdict(list)
    counted: dict[str, dict[str, float]] = {}
    drawn = 0

    def counting_forward(layer: Any, values: Any) -> Any:
        nonlocal drawn
        drawn += values.numel() if layer.training and layer.p else 0
        return forward(layer, values)

    def timed(worker: Any, order: Any, *given: Any, **named: Any) -> Any:
        nonlocal drawn
        name = worker.federation.client_name(order.client)
        if name in counted:
            started = time.process_time()
            done = train(worker, order, *given, **named)
            spent[name].append(time.process_time() - started)
            return done
        drawn = 0
        with (
            mock.patch.object(GeneratorDropout, "forward", counting_forward),
            FlopCounterMode(display=False) as counter,
        ):
            done = train(worker, order, *given, **named)
        counted[name] = {"operations": counter.get_total_flops(), "draws": drawn}
        return done

    with tempfile.TemporaryDirectory() as folder, mock.patch.object(Worker, "train", timed):
        config = build([{"engine.backend": "inline", "output": f"{folder}/run", "pictures": False, **options}])
        outcome = execute(config, prepare(config), Silent())
        assert outcome.status == "finished", outcome.message
    return {name: {"seconds": statistics.median(spent[name]), **own} for name, own in counted.items()}


def rows_of(found: Mapping[str, Mapping[str, float]], products: float, numbers: float) -> list[dict[str, Any]]:
    """A row for each client, and one for the whole round."""
    every = {part: sum(own[part] for own in found.values()) for part in ("seconds", "operations", "draws")}
    rows = []
    for name, own in {**found, "all": every}.items():
        least = own["operations"] / products, own["draws"] / numbers
        rows.append(
            {
                "client": name,
                "seconds": round(own["seconds"], 2),
                "gigaflop": round(own["operations"] / 1e9, 1),
                "million_draws": round(own["draws"] / 1e6, 1),
                "seconds_of_products": round(least[0], 2),
                "seconds_of_draws": round(least[1], 2),
                "share": round(sum(least) / own["seconds"], 2),
                "gigaflop_a_second": round(products / 1e9),
                "million_draws_a_second": round(numbers / 1e6),
            }
        )
    return rows


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("options", nargs="*", metavar="KEY=VALUE")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=Path, help="CSV file that the results are added to")
    asked = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    given = {key: yaml.safe_load(value) for key, value in (option.split("=", 1) for option in asked.options)}
    found = measured({"schedule.rounds": asked.rounds, "evaluation.every": asked.rounds, **given})
    rows = rows_of(found, *rates())
    print(pd.DataFrame(rows).to_string(index=False))
    if asked.rows:
        from benchmarks.published import add, machine

        for row in rows:
            add(asked.rows, row | {"options": " ".join(asked.options), "rounds": asked.rounds} | machine())


if __name__ == "__main__":
    main()
