"""The contribution of every client to a run's result, by retraining coalitions of clients.

``python -m raysim.contribution FOLDER --of shapley``. Exit codes: 0 computed; 2 the request cannot be met, and why; 130
stopped by Ctrl-C: the same command goes on.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim import portable, seeds
from raysim.cli.foreign_folder import add_trust, read_config
from raysim.config.answering import Answer, answered
from raysim.errors import ConfigError, ResultsError
from raysim.remote.address import local_path
from raysim.remote.places import run_folder
from raysim.storage.atomic_files import beside, write_atomically
from raysim.studies.command import count_of, sampler_seed_of
from raysim.verification.folder_check import FolderCheck
from raysim.verification.recompute import placed, with_decisions

if TYPE_CHECKING:
    from raysim.contribution.coalitions import Coalitions
    from raysim.contribution.values import Value

EXACT = 10
"""Largest number of clients whose Shapley values are computed from all coalitions."""
ORDERS = 20
"""Random orders of more clients, by default."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    return answered(_parser(), arguments, _computed, "interrupted; the same command goes on")


def _parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog="python -m raysim.contribution",
        description="The contribution of every client to a run's result: coalitions of clients are trained again with "
        "the run's settings and streams, and judged on the same test samples. The run's folder is only read.",
        allow_abbrev=False,
    )
    add = found.add_argument
    add("folder", type=run_folder, metavar="FOLDER", help="a run's folder, or its remote address")
    add("--of", choices=("shapley", "leave-one-out"), default="shapley", help="the kind of value; shapley by default")
    add("--measure", default="", help="a column of rounds.csv that is the utility; by default accuracy, else loss")
    add(
        "--orders",
        type=partial(count_of, "orders", least=2),  # of which an interval can be made
        default=0,
        metavar="N",
        help=f"Shapley values from N random orders of the clients; by default {ORDERS} beyond {EXACT} clients, and up "
        "to that all coalitions",
    )
    add(
        "--tolerance",
        type=_tolerance,
        default=0.0,
        help="an order ends once its utility is this near to all clients'",
    )
    add("--sampler-seed", type=sampler_seed_of, default=0, metavar="N", help="seed of the random orders, 0 by default")
    add(
        "--workers",
        type=partial(count_of, "workers"),
        default=1,
        metavar="N",
        help="coalitions that are computed side by side, each in a process; 1 by default",
    )
    add("--cpu", action="store_true", help="compute on the CPU, also a run that was on a GPU")
    add("--output", type=local_path, help="folder of the utilities; by default one beside the run's")
    add("--json", action="store_true", help="print one JSON object")
    add_trust(found)
    return found


def _tolerance(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found < math.inf:
        raise ConfigError(f"--tolerance {text}: not allowed. Allowed: a number ≥ 0, of the measure.")
    return found


def _computed(options: argparse.Namespace) -> Answer:
    from raysim.client_side.worker import fixed_threads
    from raysim.contribution.coalitions import Coalitions, utility_in
    from raysim.contribution.kept import KeptUtilities
    from raysim.contribution.side_by_side import Workers

    folder: Path = options.folder
    check = FolderCheck.whole(folder)
    if check.taken:
        raise ResultsError(
            f"{folder}: it is a replay, whose first {check.taken} rounds were trained with other settings, so that no "
            "training of some of its clients compares with it. Name a run, or a replay from round 1"
        )
    stored = placed(read_config(folder, options), 0, cpu=options.cpu)
    if stored.engine.portable:
        portable.start_again()
    config = with_decisions(check, stored, stored)
    measure = options.measure or ("accuracy" if "accuracy" in check.summary else "loss")
    place = options.output or beside(folder, "contribution")
    request = {"proof": check.entries[-1].head, "measure": measure}
    if config.engine.gpus_per_client:  # whose sums are rounded otherwise
        request["device"] = "gpu"
    kept = KeptUtilities(place, request)
    with ExitStack() as opened:
        opened.enter_context(fixed_threads(config.engine.threads))
        workers = None
        if options.workers > 1:
            make = partial(utility_in, config, measure)
            workers = opened.enter_context(Workers(options.workers, make, config.engine.threads))
        coalitions = Coalitions(config, measure, kept.known, kept.keep, workers=workers)
        values, facts = _values(options, coalitions)
        everyone = frozenset(coalitions.clients)
        facts |= {"v(all)": coalitions.utility(everyone), "v(none)": coalitions.utility(frozenset())}
    rows = [
        {"client": client, "name": coalitions.federation.client_name(client), **asdict(value)}
        for client, value in values.items()
    ]
    computed, taken = coalitions.tasks
    tasks = {"computed": computed, "taken from the store": taken}
    facts |= {"measure": measure, "coalitions": coalitions.computed, "client tasks": tasks}
    if (own := check.summary.get(coalitions.measure.column)) is not None:
        facts["run"] = coalitions.larger_is_better(own)
    kind = f"{options.of}-{facts['orders']}-orders" if "orders" in facts else options.of
    _write(place / f"{kind}.csv", rows)
    return Answer(_text(options.of, rows, facts, place), {"of": options.of, **facts, "clients": rows})


def _values(options: argparse.Namespace, coalitions: Coalitions) -> tuple[Mapping[int, Value], dict[str, Any]]:
    """Every client's value, and how it was found."""
    from raysim.contribution.values import leave_one_out, sampled_shapley, shapley

    clients, utility, ahead = coalitions.clients, coalitions.utility, coalitions.ahead
    kind = "leave-one-out" if options.of == "leave-one-out" else f"the exact Shapley value of {len(clients)} clients"
    sampled = options.of == "shapley" and (options.orders or len(clients) > EXACT)
    if not sampled and (options.orders or options.tolerance):
        name, more = ("orders", "") if options.orders else ("tolerance", ", or ask for orders, --orders 20")
        raise ConfigError(f"--{name}: {kind} has no random orders. Leave it out{more}.")
    if options.of == "leave-one-out":
        return leave_one_out(clients, utility, ahead), {}
    if not sampled:
        return shapley(clients, utility, ahead), {}
    orders = options.orders or ORDERS
    generator = seeds.numpy_generator(options.sampler_seed, "orders of clients")
    found = sampled_shapley(clients, utility, orders, generator, options.tolerance, ahead)
    return found.values, {"orders": orders, "truncated": found.truncated}


def _write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the table of values."""
    from pandas import DataFrame

    write_atomically(path, DataFrame(rows).to_csv(index=False, lineterminator="\n").encode())


def _text(kind: str, rows: Sequence[Mapping[str, Any]], facts: Mapping[str, Any], place: Path) -> str:
    lines = [f"{'client':>6}  {'value':>9}  {'':21}  name"]
    for row in sorted(rows, key=lambda row: -row["value"]):
        interval = f"[{row['low']:+.4f}, {row['high']:+.4f}]" if row["low"] is not None else ""
        lines.append(f"{row['client']:>6}  {row['value']:>+9.4f}  {interval:21}  {row['name']}")
    whole, nothing = facts["v(all)"], facts["v(none)"]
    lines.append(
        f"{kind} of {facts['measure']}: v(all) {whole:.4f}, v(none) {nothing:.4f}; the values add up to "
        f"{sum(row['value'] for row in rows):+.4f}"
    )
    if facts.get("run", whole) != whole:
        lines.append(
            f"the run itself has {facts['run']:.4f}, not v(all): this device or processor rounds otherwise, or the "
            "program has changed; raysim.verify tells"
        )
    if facts.get("truncated"):
        lines.append(f"{facts['truncated']} marginal contributions were taken as zero: the intervals do not cover that")
    tasks = facts["client tasks"]
    lines.append(
        f"{facts['coalitions']} coalitions; {tasks['computed']} client tasks computed, "
        f"{tasks['taken from the store']} taken from the store; {place}"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
