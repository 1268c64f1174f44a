"""One run, in this process or on Ray: ``raysim.run`` and how a run ends."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim.config.run_config import RunConfig, to_dict
from raysim.driver.outcome import Outcome, guarded
from raysim.engine.observer import Hints, Named, RunNotes, Several, Silent
from raysim.errors import ConfigError, RaysimError, warn
from raysim.leaving import staying
from raysim.monitor import status_file
from raysim.monitor.observers import opened
from raysim.remote.address import checked, is_remote, typed_path
from raysim.remote.places import resumed_folder
from raysim.results.result import load_result
from raysim.running.given_checks import check_observer
from raysim.running.mirrored import mirrored, remote_output
from raysim.running.open_run import prepare
from raysim.running.own_sources import record_changes
from raysim.running.pictures import THREAD, Pictures
from raysim.running.python_objects import SOURCE_NAME, config_of
from raysim.schedule import planned_intervals
from raysim.storage import run_folder
from raysim.storage.atomic_files import write_atomically
from raysim.storage.process_lock import launching

if TYPE_CHECKING:
    from raysim.driver.drive import Status
    from raysim.engine.observer import Observer
    from raysim.results.result import RunResult
    from raysim.workloads.objective import Figure


@staying()
def run(  # noqa: PLR0913 - the public call: data, modules and functions by name
    method: str | type[Any] | object | RunConfig | Mapping[str, object] | None = None,
    resume: str | Path | None = None,
    *,
    model: object = None,
    clients: object = None,
    test: object = None,
    loss: Figure | None = None,
    metrics: Mapping[str, Figure] | None = None,
    observer: Observer | str | None = None,
    progress: bool = False,
    **options: object,
) -> RunResult:
    """Run (or, with ``resume``, continue) and return the tables as pandas frames (docs/own-data.md).

    Args:
        method: the name of a method, a class or an instance of one's own, all settings that are not the defaults as a
            mapping (``{"method": "fedavg", "training.momentum": 0.5}``), or a config; None: FedAvg, or, with
            ``resume``, the folder's.
        resume: a run folder to continue, or its remote address; settings that are left out are the folder's, and no
            other may change results.
        model: the name of a model, a torch module, which keeps its initial values, or what makes one.
        clients: what ``raysim.split`` returns, or a list or a dict name → data of every client, each a pair (x, y) of
            arrays or tensors or a torch Dataset. A number is that of the clients of a workload.
        test: the global test set, or a list or dict of every client's own.
        loss: (outputs, labels) → a loss for each sample, or their mean; None: that of the task.
        metrics: the same by name, for further columns of the tables.
        observer: is told of rounds as they happen (:class:`raysim.engine.observer.Observer`); or names, ``"mlflow"``,
            as ``--observer`` takes them.
        progress: show the progress in the terminal or the notebook.
        options: settings by their short or full names, as on the command line, or by sections (``engine={…}``). They
            win over a mapping's and over the fields of an instance.

    Raises:
        RaysimError: as the command line reports it; every error of a user's making is one.
    """
    if isinstance(observer, str):
        options, observer = options | {"engine.observer": observer}, None
    check_observer(observer)
    address = checked(resume) if isinstance(resume, str) and is_remote(resume) else ""
    resume = resumed_folder(address) if address else typed_path(resume) if isinstance(resume, str | Path) else resume
    if isinstance(method, RunConfig):
        objects = {"model": model, "clients": clients, "test": test, "loss": loss, "metrics": metrics}
        if extra := [*options, *(name for name, value in objects.items() if value is not None)]:
            raise ConfigError(f"{extra[0]}: a RunConfig is complete; give its settings as a mapping to add to them.")
        config, source = method, ""
    else:
        config, source = config_of(method, resume, options, model, clients, test, loss, metrics)
    watcher: Observer = Named(observer) if observer is not None else Silent() if progress else Hints()
    folder = prepare(config, resume)
    if source and resume is None:
        write_atomically(folder / SOURCE_NAME, source.encode())
    with ExitStack() as stack:
        stack.enter_context(launching(folder))  # before a mirror, which would send what this process is refused
        if progress:
            from raysim.monitor.progress import Progress, title_of

            intervals = planned_intervals(config)
            shown: Observer = stack.enter_context(Progress(title_of(to_dict(config)), len(intervals), sum(intervals)))
            watcher = Several(shown, watcher)
        address = address or remote_output(config, resume)
        mirror = stack.enter_context(mirrored(address, folder, watcher, resumed=resume is not None))
        outcome = execute(config, folder, mirror.observer, resumed=resume is not None, keep_ray=True)
    if incomplete := mirror.incomplete():
        warn(incomplete)
    if outcome.status == "failed":
        raise RaysimError(outcome.message + (f"\n{outcome.traceback}" if outcome.traceback else ""))
    return replace(load_result(folder), settings=config)


def execute(  # noqa: PLR0913 - what the two ways to run, and their callers, differ in
    config: RunConfig,
    folder: Path,
    observer: Observer,
    *,
    resumed: bool = False,
    verbose: bool = False,
    stopping: Callable[[], bool] = lambda: False,
    interrupted: Callable[[], bool] = lambda: False,
    keep_ray: bool = False,
) -> Outcome:
    """Drive the run where the config says; how it ended. With ``keep_ray`` the process's next run finds the same Ray.

    ``stopping`` asks for the end after a round; ``interrupted`` tells of a KeyboardInterrupt: what fails after it is
    stopped, whatever error came of it.
    A new run without a round is taken back, unless it is finished: its files go, and so does a folder that it made.
    The config's own observers are told after ``observer``, and closed when all is in the folder.
    """
    try:
        with opened(config.engine.observer, folder) as named:
            told = Several(observer, *named) if named else observer
            if resumed:
                for sentence in record_changes(config, folder):
                    RunNotes(run_folder.RunFolder(folder), told).hint(sentence)
            return _driven(
                config,
                folder,
                told,
                resumed=resumed,
                verbose=verbose,
                stopping=stopping,
                interrupted=interrupted,
                keep_ray=keep_ray,
            )
    except (RaysimError, KeyboardInterrupt) as error:
        if not resumed and not (folder / "rounds.csv").exists():
            run_folder.take_back(folder)  # an observer could not be made
        if isinstance(error, KeyboardInterrupt) or interrupted() or not error.traceback:
            raise
        return Outcome("failed", str(error), error.traceback)


def _driven(  # noqa: PLR0913 - as execute
    config: RunConfig,
    folder: Path,
    observer: Observer,
    *,
    resumed: bool,
    verbose: bool,
    stopping: Callable[[], bool],
    interrupted: Callable[[], bool],
    keep_ray: bool,
) -> Outcome:
    outcome = Outcome("stopped")  # what a KeyboardInterrupt leaves
    pictures = Pictures(config, folder)
    if config.pictures:
        observer = Several(observer, pictures)
    try:
        if config.engine.backend == "ray":
            from raysim.actors.session import run_on_ray  # late: an in-process run needs no Ray

            outcome = run_on_ray(
                config, folder, observer, pictures.ended, verbose=verbose, stopping=stopping, keep=keep_ray
            )
        else:
            outcome = guarded(lambda: _drive(config, folder, observer, stopping))
        if outcome.status == "failed" and interrupted():
            outcome = Outcome("stopped", outcome.message)
        pictures.ended(outcome.status)
        if config.pictures and outcome.status == "finished":
            outcome = guarded(pictures.finish)
    except RaysimError as error:  # of an observer
        outcome = Outcome("failed", str(error), error.traceback)
        raise
    finally:
        pictures.ended(outcome.status)
        computed = (folder / "rounds.csv").exists()
        if outcome.status != "finished" and not (resumed or computed):
            # Nothing was computed: a repeat, with a mistake mended perhaps, must find the name free.
            run_folder.take_back(folder)
        else:
            status_file.settle(folder, outcome.status, outcome.message)
    return replace(outcome, refused=False) if computed else outcome


def _drive(config: RunConfig, folder: Path, observer: Observer, stopping: Callable[[], bool]) -> Status:
    """Drive the run in this process."""
    from raysim.driver.drive import drive, inline_pool

    return drive(config, folder, partial(inline_pool, config), observer, stopping)


def blocked() -> bool:
    """Whether a call is still at work whose answer is not wanted, so that this process must end without exit handlers.

    Such are a call of Ray's that never came back, and a picture after a second Ctrl-C.
    """
    shared_ray = sys.modules.get("raysim.actors.shared_ray")
    calls_aside = sys.modules.get("raysim.engine.inline_backend")
    ray_blocks = shared_ray is not None and bool(shared_ray.given_up)
    draws = any(thread.name == THREAD for thread in threading.enumerate())
    return ray_blocks or draws or (calls_aside is not None and calls_aside.aside_at_work())
