"""The driver's work: load the clients' data, train the rounds that are left, keep the results.

It imports torch and all that a run needs, and is therefore imported late.
"""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Literal

from raysim.client_side.device import device_of
from raysim.client_side.model_notes import (
    check_gradients_of_samples,
    check_outputs,
    decays_untrained,
    outputs_probabilities,
)
from raysim.client_side.model_parts import check_head_of_body
from raysim.client_side.worker import Worker, fixed_threads
from raysim.config.all_sections import LENGTH, ON_CLIENT_ERROR
from raysim.config.config_file import CONFIG_NAME, read_config_file, stored_text
from raysim.config.run_config import flatten, to_dict
from raysim.driver.federation_checks import (
    attacks_too_late,
    check_federation,
    moments_kept_over_missed_rounds,
    only_first_rounds,
    options_unread,
)
from raysim.driver.repeat_check import check_repeats
from raysim.driver.summary import conclude
from raysim.engine import precision_probe
from raysim.engine.cohort_run import Stopped
from raysim.engine.inline_backend import InlinePool
from raysim.engine.load_federation import load_federation
from raysim.engine.loss_decomposition import without_aggregation
from raysim.engine.observer import RunNotes, Several, step
from raysim.engine.recovery import run_through
from raysim.engine.rounds import Rounds
from raysim.errors import DamagedError
from raysim.exchange.pool_protocol import OFF
from raysim.monitor.chrome_trace import Trace
from raysim.monitor.partition_plot import PartitionDrawing
from raysim.monitor.profiler import Profile
from raysim.monitor.status_file import Recorder
from raysim.results.model_file import MODEL_NAME, save_global_model
from raysim.schedule import at_once, planned_intervals, trainable, updates_a_step
from raysim.storage.atomic_files import write_atomically
from raysim.storage.origin import read_origin
from raysim.storage.process_lock import driving
from raysim.storage.run_folder import RunFolder
from raysim.workloads.federated_data import ONE_CLASS, has_one_class
from raysim.workloads.parallel_map import Sequential
from raysim.wrappers import attack

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from raysim.config.run_config import RunConfig
    from raysim.engine.observer import Observer
    from raysim.exchange.pool_protocol import Pool
    from raysim.workloads.federated_data import Federation
    from raysim.workloads.parallel_map import Parallel

Status = Literal["finished", "stopped"]
SYNTHETIC = "the data is synthetic: made up for tests, its accuracy says nothing about real data"


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
    folder = RunFolder.open(path)
    with ExitStack() as stack:
        stack.enter_context(driving(path))
        recorder = stack.enter_context(Recorder(path, planned_intervals(config)))
        observer = Several(observer, recorder)
        with step(observer, "loading the data"):
            federation = load_federation(config, parallel or Sequential(observer.preparing))
        check_federation(config, federation)
        stack.enter_context(fixed_threads(config.engine.threads))
        with step(observer, "starting client actors" if config.engine.backend == "ray" else "building the model"):
            pool = stack.enter_context(closing(make_pool(federation, at_once(config, federation.clients))))
            del federation  # on Ray the pool's lies in the object store: no second copy for the whole run
            drawing = PartitionDrawing(observer.note, pool, path, config.pictures)
            notes = RunNotes(folder, Several(observer, drawing))
            rounds = _rounds(config, pool, notes, stopping)
        recorder.begins()
        observer.placed(pool.plan)
        _tell(config, rounds, notes)
        _begin(rounds, notes)
        _keep_settings(config, folder)
        try:
            with drawing:
                run_through(rounds, notes)
                _keep(config, rounds)
        except Stopped:
            folder.log(f"stopped after round {rounds.state.round}")
            recorder.ends("stopped")
            return "stopped"
        recorder.ends("finished")
        return "finished"


def inline_pool(config: RunConfig, federation: Federation, useful: int = 1) -> Pool:
    """The pool of an in-process run."""
    return InlinePool(Worker(config, federation, device_of(config.engine)))


def _rounds(config: RunConfig, pool: Pool, notes: RunNotes, stopping: Callable[[], bool]) -> Rounds:
    """The round loop before its first round, with everything decided that was left to the run."""
    check_head_of_body(config, pool.federation)
    worker = Worker(config, pool.federation)
    worker.built(0)  # what is wrong with a model is said before anything is timed on it
    check_outputs(worker)
    check_gradients_of_samples(worker)
    resolved = precision_probe.resolve(config, pool, notes.folder.path, notes.observer.note)
    pool.recorder = Profile(notes.folder, Trace(notes.folder.path / "trace.json")) if config.engine.profile else OFF
    return Rounds(resolved, worker, pool, notes, stopping)


def _tell(config: RunConfig, rounds: Rounds, notes: RunNotes) -> None:
    """Say what a user should know of data, model and devices before the first round."""
    federation, worker = rounds.pool.federation, rounds.worker
    if federation.synthetic:
        notes.observer.note(SYNTHETIC)
    slips = (decays_untrained(worker), outputs_probabilities(worker))
    one_class = ONE_CLASS if has_one_class(federation) else ""
    moments = moments_kept_over_missed_rounds(config, federation)
    unread = (clients_ignored(config, federation), *options_unread(config, federation))
    for found in filter(None, (one_class, *unread, moments, attacks_too_late(config), *slips)):
        notes.hint(found)
    of_clock = rounds.clock.notes if rounds.clock else ()
    told = (only_first_rounds(config), without_aggregation(worker), *getattr(federation, "notes", ()), *of_clock)
    for found in filter(None, (*told, attack_note(config, federation))):
        notes.note(found)


def _begin(rounds: Rounds, notes: RunNotes) -> None:
    """Take up the last checkpoint, or try code that was given before the first round."""
    rounds.go_back()
    if rounds.state.round < (taken := read_origin(notes.folder.path).get("rounds", 0)):
        raise DamagedError(
            f"{notes.folder.path} is a replay that was ended before it had the {taken} rounds that it takes from "
            "another run. Remove it, and replay again"
        )
    if rounds.state.round:
        notes.observer.note(f"goes on after round {rounds.state.round}")
    else:
        check_repeats(rounds, notes.note)


def _keep_settings(config: RunConfig, folder: RunFolder) -> None:
    """Write the settings by which a run goes on, where they may be others than before.

    Only now: until it goes on, a finished run is what its settings say, whatever else may refuse to go on.
    """
    file = folder.path / CONFIG_NAME
    stored, asked = read_config_file(file, run_folder=True), flatten(to_dict(config))
    if any(stored.get(name) != asked.get(name) for name in (*LENGTH, ON_CLIENT_ERROR)):
        write_atomically(file, stored_text(config).encode())


def _keep(config: RunConfig, rounds: Rounds) -> None:
    """Write what a finished run leaves beside its tables: the model, the end of its proof, devices, the summary."""
    folder, last = rounds.folder, rounds.state.round
    save_global_model(folder.path, rounds.worker, rounds.state.server, last)
    rounds.proof.end(last, folder.path / MODEL_NAME)
    if rounds.clock is not None:
        from raysim.report.devices_plot import write_devices

        # By the table: where no round was left, the clock of a sampler that looks at losses has planned no step.
        seconds = float(folder.rounds()["virtual_seconds"].iloc[-1])
        write_devices(folder.path, rounds.clock.fleet, seconds, pictured=config.pictures)
    conclude(config, folder, rounds.pool.federation, rounds.worker.model(0).buffer.numel())


def clients_ignored(config: RunConfig, federation: Federation) -> str:
    """A sentence where a number of clients was asked for and the data's own sites are the clients; else empty."""
    asked, default = (getattr(owner, "clients", None) for owner in (config.workload, type(config.workload)))
    if config.method.traits.pooled or asked in (default, federation.clients):
        return ""
    return (
        f"workload.clients {asked} has no effect: the {federation.clients} clients are those that the data names. For "
        "another number set workload.partition, to dirichlet say."
    )


def attack_note(config: RunConfig, federation: Federation) -> str:
    """A sentence on an attack that works out from the run what it does; else empty."""
    clients = trainable(config, federation.clients)
    return attack.note(config.attack, config.seed, clients, updates_a_step(config, clients))
