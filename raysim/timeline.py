"""Plans a run in virtual time without any training: who is busy when, how stale updates are, how long it takes.

``python -m raysim.timeline OPTIONS`` takes the options of ``python -m raysim.launch`` and writes, into the folder
``--output`` (``timeline`` unless it is given), ``steps.csv`` with a row for each server step, ``tasks.csv`` with a row
for each client task, ``devices.csv`` with a row for each client, ``timeline.png`` and ``devices.png``. A run with the
same options has the same server steps.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from raysim.config.answering import Answer, asks_for_json, concluded, told_of_options
from raysim.config.command_line import parse
from raysim.errors import ConfigError
from raysim.leaving import staying
from raysim.remote.address import local_path
from raysim.storage.atomic_files import check_folder
from raysim.storage.run_folder import is_run
from raysim.units import byte_count, time_unit

if TYPE_CHECKING:
    from pandas import DataFrame

    from raysim.config.run_config import RunConfig
    from raysim.virtual_time.clock import VirtualClock

SHOWN = 12
"""Server steps in the table that is printed, spread evenly."""


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; 0 if the files are there."""
    words = sys.argv[1:] if argv is None else list(argv)
    return concluded("raysim", asks_for_json(words), lambda: _planned(words))


@staying()
def _planned(words: Sequence[str]) -> Answer:
    invocation = parse(words)
    if invocation.action != "run":
        return told_of_options(invocation, __doc__ or "")
    config = invocation.config
    if not config.devices.on:
        raise ConfigError(
            "devices.preset: none has no virtual time to plan. Set --devices.preset to uniform, classes, phones, day "
            "or trace."
        )
    if config.schedule.sampler.adaptive:
        raise ConfigError(
            f"schedule.sampling: {config.schedule.sampling} looks at losses, so that no round is known without the "
            "training of the rounds before. Set it to fixed or by-size, or run it: its tables tell as much."
        )
    folder = local_path(config.output or "timeline")
    if is_run(folder):  # as the config.yaml of a run names its own
        raise ConfigError(f"output: {folder} holds a run, and a plan has a folder of its own. Give one with --output.")
    check_folder(folder)
    return _write(config, folder)


def clock_of(config: RunConfig) -> VirtualClock:
    """The clock of a run with these settings.

    Data and model are loaded: durations follow from the clients' samples and the model's bytes.
    """
    from raysim.client_side.last_batch import with_last_batch
    from raysim.client_side.worker import Worker
    from raysim.driver.federation_checks import check_federation
    from raysim.engine.load_federation import load_federation
    from raysim.virtual_time.clock import VirtualClock
    from raysim.workloads.parallel_map import Sequential

    federation = load_federation(config, Sequential())
    check_federation(config, federation)
    worker = Worker(config, federation)
    message = worker.method.message(worker.method.init_server(worker.model(0)), 0)
    return VirtualClock(with_last_batch(config, worker), worker, message)


def tables(clock: VirtualClock) -> tuple[DataFrame, DataFrame]:
    """A row for each server step, and a row for each client task that has ended by the last one."""
    import pandas as pd

    steps, tasks = [], []
    for step in clock.steps:
        number, staleness = step.number, step.staleness()
        steps.append(
            {
                "round": number,
                **clock.columns(number),
                "updates": len(step.arrivals),
                "staleness_max": max(staleness),
                "bytes_down": sum(flight.bytes_down for flight in step.dispatched),
                "bytes_up": len(step.arrivals) * clock.fleet.bytes_up,
            }
        )
        for fate, flights in (("update", step.arrivals), ("lost", step.lost), ("late", step.canceled)):
            tasks += [{"round": number, "fate": fate, **flight._asdict()} for flight in flights]
    return pd.DataFrame(steps), pd.DataFrame(tasks).drop(columns="lost").sort_values(["start", "client"])


def _write(config: RunConfig, folder: Path) -> Answer:
    from raysim.report.devices_plot import write_devices
    from raysim.report.timeline_plot import picture
    from raysim.storage.atomic_files import write_atomically, writing

    clock = clock_of(config)
    steps, tasks = tables(clock)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    title = f"{config.timing.mode}, devices {config.devices.preset}: {clock.fleet.profiles.clients} clients"
    for name, content in (
        ("steps.csv", steps.to_csv(index=False, float_format="%.9g").encode()),
        ("tasks.csv", tasks.to_csv(index=False, float_format="%.9g").encode()),
        ("timeline.png", picture(steps, tasks, clock.fleet.profiles.clients, title)),
    ):
        write_atomically(folder / name, content)
    write_devices(folder, clock.fleet, float(steps["virtual_seconds"].iloc[-1]), pictured=True)
    seconds, clients = float(steps["virtual_seconds"].iloc[-1]), clock.fleet.profiles.clients
    factor, unit = time_unit(seconds)
    steps[f"virtual {unit}"] = steps["virtual_seconds"] / factor
    for way in ("down", "up"):
        steps[f"{way} so far"] = steps[f"bytes_{way}"].cumsum().map(byte_count)
    shown = steps.iloc[sorted({round(place * (len(steps) - 1) / (SHOWN - 1)) for place in range(SHOWN)})]
    counts = ["updates", "staleness", "staleness_max", "clients_lost", "clients_late"]
    columns = ["round", f"virtual {unit}", *counts, "down so far", "up so far"]
    table = shown[columns].to_string(index=False, float_format=lambda value: f"{value:.4g}")
    busy = float((tasks["end"] - tasks["start"]).sum()) / (seconds * clients)
    sums = (
        f"{seconds / factor:.4g} virtual {unit}; a client is busy {busy:.1%} of the time; "
        f"{byte_count(steps['bytes_down'].sum())} down, {byte_count(steps['bytes_up'].sum())} up, "
        f"{steps['joules'].sum():.4g} J"
    )
    names = ("steps.csv", "tasks.csv", "timeline.png", "devices.csv", "devices.png")
    files = [str(folder / name) for name in names]
    told = {
        "title": title,
        "clients": clients,
        "steps": len(steps),
        "virtual_seconds": seconds,
        "busy": busy,
        **{name: float(steps[name].sum()) for name in ("bytes_down", "bytes_up", "joules")},
        "files": files,
    }
    return Answer("\n".join([title, table, sums, ", ".join(files)]), told)


if __name__ == "__main__":
    sys.exit(main())
