"""One run from its config: prepare the folder, drive the rounds, sum up. The same for Ray and for in-process runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from raysim.config.command_line import CONFIG_NAME, read_config_file
from raysim.config.registry import KINDS, NO_CLASSES, Classes, public_name
from raysim.config.run_config import RunConfig, build, classes_of, differences, to_dict
from raysim.config.stored_config import check_seal, stored_text
from raysim.config.trust import check_names
from raysim.engine.checkpointing import check_rounds
from raysim.engine.observer import Several, Silent, step
from raysim.engine.outcome import Outcome, guarded
from raysim.engine.schedule import planned_intervals
from raysim.errors import ConfigError, RaysimError, ResultsError
from raysim.model_file import save_global_model
from raysim.monitor import status_file
from raysim.monitor.run_view import SYNTHETIC
from raysim.monitor.status_file import Recorder
from raysim.own_run import SOURCE_NAME, check_digests, config_of
from raysim.requirements import check_federation, check_request
from raysim.run_summary import conclude
from raysim.storage import run_folder
from raysim.storage.atomic_files import write_atomically
from raysim.storage.process_lock import driving
from workloads.federated_data import ONE_CLASS, has_one_class
from workloads.naming import data_name
from workloads.parallel_map import Sequential

if TYPE_CHECKING:
    from raysim.engine.backend import Pool
    from raysim.engine.observer import Observer
    from raysim.storage.run_folder import RunResult
    from workloads.federated_data import Federation
    from workloads.objective import Figure
    from workloads.parallel_map import Parallel

Status = Literal["finished", "stopped"]


def run(
    method: str | type[Any] | object | RunConfig | Mapping[str, object] = "fedavg",
    resume: str | Path | None = None,
    *,
    model: object = None,
    clients: object = None,
    test: object = None,
    loss: Figure | None = None,
    metrics: Mapping[str, Figure] | None = None,
    observer: Observer | None = None,
    progress: bool = False,
    **options: object,
) -> RunResult:
    """Run (or, with ``resume``, continue) and return the tables as pandas frames (docs/own-data.md).

    Args:
        method: the name of a method, a class or an instance of one's own, all settings that are not the defaults as a
            mapping (``{"method": "fedavg", "training.momentum": 0.5}``), or a config.
        resume: a run folder to continue; settings that are left out are the folder's, and no other may change results.
        model: the name of a model, a torch module, which keeps its initial values, or what makes one.
        clients: what ``raysim.split`` returns, or a list or a dict name → data of every client, each a pair (x, y) of
            arrays or tensors or a torch Dataset. A number is that of the clients of a workload.
        test: the global test set, or a list or dict of every client's own.
        loss: (outputs, labels) → a loss for each sample, or their mean; None: that of the task.
        metrics: the same by name, for further columns of the tables.
        observer: is told of rounds as they happen (:class:`raysim.engine.observer.Observer`).
        progress: show the progress in the terminal or the notebook.
        options: settings by their short or full names, as on the command line, or by sections (``engine={…}``).

    Raises:
        RaysimError, workloads.errors.WorkloadError: as the command line reports them.
    """
    if isinstance(method, RunConfig):
        objects = {"model": model, "clients": clients, "test": test, "loss": loss, "metrics": metrics}
        if extra := [*options, *(name for name, value in objects.items() if value is not None)]:
            raise ConfigError(f"{extra[0]}: a RunConfig is complete; give its settings as a mapping to add to them.")
        config, source = method, ""
    else:
        config, source = config_of(method, resume, options, model, clients, test, loss, metrics)
    folder = prepare(config, resume)
    if source and resume is None:
        write_atomically(folder / SOURCE_NAME, source.encode())
    with ExitStack() as stack:
        if progress:
            from raysim.monitor.progress import Progress, title_of

            intervals = planned_intervals(config)
            shown: Observer = stack.enter_context(Progress(title_of(to_dict(config)), len(intervals), sum(intervals)))
            observer = Several(shown, observer) if observer is not None else shown
        outcome = execute(config, folder, observer or Silent(), resumed=resume is not None, keep_ray=True)
    if outcome.status == "failed":
        raise RaysimError(outcome.message + (f"\n{outcome.traceback}" if outcome.traceback else ""))
    return replace(run_folder.load_result(folder), settings=config)


def prepare(config: RunConfig, resume: str | Path | None = None) -> Path:
    """The run folder: a new one with config and environment in it, or the one to continue, checked against ``config``.

    Raises:
        ConfigError: its config.yaml is damaged.
        ResultsError: the folder to continue is no run, was made with other settings, or cannot have another number of
            rounds.
        RaysimError, WorkloadError: the run cannot be done as asked (raysim/requirements.py).
    """
    if resume is not None:
        path = Path(resume)
        folder = run_folder.RunFolder.open(path)
        check_seal(path / CONFIG_NAME)
        named = {f"{kind}.name": public_name(kind, getattr(config, kind)) for kind in KINDS}
        stored = stored_config(path, named, classes_of(config))
        check_digests(stored, config, path)
        longer = stored.schedule.rounds != config.schedule.rounds
        # Of a length in epochs, the number of rounds that they make is all that counts.
        length = ("schedule.rounds:", "schedule.epochs:")
        changed = [line for line in differences(stored, config) if not line.startswith(length)]
        if stored.engine.on_client_error == "fail":
            # No client has failed so far, so every round is the same under either rule.
            changed = [line for line in changed if not line.startswith("engine.on_client_error:")]
        if bool(stored.engine.gpus_per_client) != bool(config.engine.gpus_per_client):
            # How many share a GPU changes nothing; whether it is a GPU or a CPU changes how sums are rounded.
            changed.append(
                f"engine.gpus_per_client: {stored.engine.gpus_per_client:g} → {config.engine.gpus_per_client:g}"
            )
        if changed:
            raise ResultsError(
                f"{path} was made with other settings, and going on with these would change its results:\n  "
                + "\n  ".join(changed)
                + "\nLeave them out to resume, or start a new run with --config "
                f"{path / 'config.yaml'} and your changes"
            )
        check_request(config)
        if longer:
            check_rounds(folder, config)
        if longer or stored.engine.on_client_error != config.engine.on_client_error:
            with driving(path):
                write_atomically(path / "config.yaml", stored_text(config).encode())
        return path.resolve()
    check_request(config)
    plain = to_dict(config)
    method, data = plain["method"]["name"], data_name(plain["workload"])
    path = Path(config.output) if config.output else run_folder.new_run_path(Path("runs"), method, data, config.seed)
    run_folder.RunFolder.create(path, stored_text(config), run_folder.environment() | {"seed": config.seed})
    return path.resolve()


def stored_config(path: Path, named: Mapping[str, object], classes: Classes = NO_CLASSES) -> RunConfig:
    """The config that a run folder was made with.

    Args:
        path: the run folder.
        named: the names whose classes are in use already; the folder may name no other code.
        classes: these classes.
    """
    settings = read_config_file(path / CONFIG_NAME, run_folder=True)
    check_names(settings, path / CONFIG_NAME, named)
    known = {kind: cls for kind, cls in classes.items() if settings.get(f"{kind}.name") == named[f"{kind}.name"]}
    return build([settings], known)


def execute(
    config: RunConfig,
    folder: Path,
    observer: Observer,
    *,
    resumed: bool = False,
    verbose: bool = False,
    stopping: Callable[[], bool] = lambda: False,
    keep_ray: bool = False,
) -> Outcome:
    """Drive the run where the config says; how it ended. With ``keep_ray`` the process's next run finds the same Ray.

    A new run without a round is taken back, unless it is finished: its files go, and so does a folder that it made.
    """
    outcome = Outcome("stopped")  # what a KeyboardInterrupt leaves
    try:
        if config.engine.backend == "ray":
            from actors.session import run_on_ray  # late: an in-process run needs no Ray

            outcome = run_on_ray(config, folder, observer, verbose=verbose, stopping=stopping, keep=keep_ray)
        else:
            outcome = guarded(lambda: drive(config, folder, partial(inline_pool, config), observer, stopping))
    finally:
        computed = (folder / "rounds.csv").exists()
        if outcome.status != "finished" and not (resumed or computed):
            # Nothing was computed: a repeat, with a mistake mended perhaps, must find the name free.
            run_folder.take_back(folder)
        else:
            status_file.settle(folder, outcome.status, outcome.message)
    return replace(outcome, refused=False) if computed else outcome


def blocked() -> bool:
    """Whether a call that nobody waits for is still at work, so that this process must end without exit handlers.

    Such are a call of Ray's that never came back, and the partition's picture after a second Ctrl-C.
    """
    thread = sys.modules.get("actors.ray_thread")
    calls_aside = sys.modules.get("raysim.engine.inline_backend")
    return (thread is not None and bool(thread.given_up)) or (calls_aside is not None and calls_aside.aside_at_work())


def inline_pool(config: RunConfig, federation: Federation, useful: int = 1) -> Pool:
    """The pool of an in-process run."""
    from raysim.engine.device import device_of
    from raysim.engine.inline_backend import InlinePool
    from raysim.engine.worker import Worker

    return InlinePool(Worker(config, federation, device_of(config.engine)))


def drive(
    config: RunConfig,
    path: Path,
    make_pool: Callable[[Federation, int], Pool],
    observer: Observer,
    stopping: Callable[[], bool],
    parallel: Parallel | None = None,
) -> Status:
    """All rounds that are left of the run in ``path`` (the process that holds the global state).

    ``parallel`` computes what has to be known of the data before the first round, such as spectra of graphs; in this
    process if it is None.
    """
    from raysim.engine import precision_probe
    from raysim.engine.cohort_run import Stopped
    from raysim.engine.profiler import OFF, Profile
    from raysim.engine.recovery import run_through
    from raysim.engine.rounds import Rounds
    from raysim.engine.worker import Worker, fixed_threads
    from raysim.monitor.chrome_trace import Trace
    from raysim.monitor.partition_plot import PartitionDrawing

    folder = run_folder.RunFolder.open(path)
    with ExitStack() as stack:
        stack.enter_context(driving(path))
        recorder = stack.enter_context(Recorder(path, planned_intervals(config)))
        observer = Several(observer, recorder)
        with step(observer, "loading the data"):
            federation = load_federation(config, parallel or Sequential(observer.preparing))
        check_federation(config, federation)
        useful = max(1, round(config.schedule.sampling_rate * federation.clients))
        stack.enter_context(fixed_threads(config.engine.threads))
        starting = "starting client actors" if config.engine.backend == "ray" else "building the model"
        observer.preparing(starting, 0, 1)
        pool = make_pool(federation, useful)
        try:
            federation = pool.federation
            worker = Worker(config, federation)
            worker.built(0)  # what is wrong with a model is said before anything is timed on it
            resolved = precision_probe.resolve(config, pool, path, observer.note)
            watched = PartitionDrawing(observer, pool, path, config.pictures)
            pool.recorder = Profile(folder, Trace(path / "trace.json")) if config.engine.profile else OFF
            rounds = Rounds(resolved, worker, pool, folder, watched, stopping)
            observer.preparing(starting, 1, 1)
            recorder.begins()
            observer.placed(pool.plan)
            if federation.synthetic:
                observer.note(SYNTHETIC)
            if has_one_class(federation):
                observer.note(ONE_CLASS)
            for found in (*getattr(federation, "notes", ()), *(rounds.clock.notes if rounds.clock else ())):
                folder.log(found)
                observer.note(found)
            rounds.go_back()
            if rounds.state.round:
                observer.note(f"goes on after round {rounds.state.round}")
            try:
                with watched:
                    run_through(rounds, folder, observer)
            except Stopped:
                folder.log(f"stopped after round {rounds.state.round}")
                recorder.ends("stopped")
                return "stopped"
            save_global_model(path, rounds.worker, rounds.state.server, rounds.state.round)
            if rounds.clock is not None:
                from raysim.report.devices_plot import write_devices

                virtual_seconds = rounds.clock.step(rounds.state.round).time
                write_devices(path, rounds.clock.fleet, virtual_seconds, pictured=config.pictures)
            conclude(config, folder, federation, rounds.worker.model(0).buffer.numel())
            recorder.ends("finished")
            return "finished"
        finally:
            pool.close()


def load_federation(config: RunConfig, parallel: Parallel) -> Federation:
    """The clients' data as the run's method and model need it: spectra computed, pooled into one client."""
    from raysim import seeds

    federation: Federation = config.workload.load(lambda purpose: seeds.numpy_generator(config.seed, purpose))
    prepare_data = getattr(federation, "prepare", None)
    if prepare_data is not None:
        federation = prepare_data(getattr(config.model, "needs_spectra", False), parallel)
    return federation.pooled() if config.method.traits.pooled else federation
