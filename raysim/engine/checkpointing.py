"""Writes a run's checkpoints, and restores the newest one that the run can continue from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim.config.late_options import in_full, recorded
from raysim.config.run_config import settings
from raysim.engine.round_plan import Selection, first_selection
from raysim.errors import CheckpointError, DamagedError, DiskFullError, ResultsError
from raysim.schedule import common_rounds
from raysim.storage import checkpoint
from raysim.storage.client_shards import ClientFiles
from raysim.storage.state_digest import digest_of_digests, state_digest
from raysim.units import counted
from raysim.virtual_time.devices import traces

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from raysim.client_side.worker import Worker
    from raysim.config.run_config import RunConfig
    from raysim.exchange.pool_protocol import Pool
    from raysim.storage.run_folder import RunFolder
    from raysim.workloads.federated_data import InputSpec

ROUNDS = "schedule.rounds"
NOISE = "noise multiplier found"
TRACE_DIGEST = "SHA-256 of devices.trace"
"""Name, among the settings that a checkpoint remembers, of the digest of a trace file's content."""
MAY_CHANGE = (ROUNDS, "schedule.epochs", "engine.on_client_error")
"""Settings that a run can be resumed with other values of, as ``raysim.running.open_run.prepare`` checks."""


@dataclass
class State:
    """All that a run is between two rounds."""

    server: Any
    round: int = 0
    clients: MutableMapping[int, Any] = field(default_factory=dict)
    """Handle of each client's state, by client."""
    earlier: Mapping[int, Any] = field(default_factory=dict)
    """The server's state after each earlier round that a client task under way started from."""
    selection: Selection | None = None
    """State that the choice of later cohorts depends on, where a sampler looks at losses."""


class Saves:
    """Writes and reads the checkpoints of one run.

    Args:
        config: its settings; a run does not continue from a checkpoint of other settings.
        note: is told of damaged checkpoints, of a full disk, and when there is room again.
        noise: the noise multiplier that was found for ``privacy.epsilon``, for :func:`kept_noise`.
    """

    def __init__(
        self,
        folder: RunFolder,
        config: RunConfig,
        pool: Pool,
        first: Any,
        note: Callable[[str], None],
        noise: float | None = None,
    ) -> None:
        self._folder, self._config, self._pool, self._first, self._note = folder, config, pool, first, note
        self._settings, self._noise = compared(config), noise
        self._round = 0
        """Round of the last checkpoint."""
        self._files = ClientFiles()
        self._changed: set[int] = set()
        """Clients whose state is new since then."""
        self._failed = 0
        """How many times in a row the disk refused."""

    @property
    def overdue(self) -> bool:
        """The last checkpoint could not be written: it is due after every round until one can."""
        return self._failed > 0

    def changed(self, clients: Iterable[int]) -> None:
        """These clients have new states."""
        self._changed.update(clients)

    def save(self, state: State) -> None:
        """Write a checkpoint of the last whole round, unless there is one.

        Raises:
            DiskFullError: it cannot be written; the one before is untouched.
            LostError: a client's state is lost.
        """
        if state.round == self._round:
            return
        # The rows are on the disk before the manifest that counts them: a power cut in between costs no row.
        facts: dict[str, Any] = {"tables": self._folder.marks(), "settings": self._settings}
        if self._noise is not None:
            facts[NOISE] = self._noise
        checkpoint.save(
            self._folder.checkpoints,
            state.round,
            state.server,
            self._changed,
            lambda client: self._pool.fetch(state.clients[client]),
            facts,
            self._config.engine.keep_checkpoints,
            self._files,
            state.earlier,
            state.selection,
        )
        if self._failed:
            self._note(f"the checkpoint of round {state.round} could be written again")
        self._round, self._failed = state.round, 0
        self._changed.clear()

    def digest(self, state: State) -> str:
        """The digest of all clients' states, for the proof; empty where there is none.

        Raises:
            LostError: a client's state is lost.
        """
        if not self._folder.proof.head:
            return ""
        fetch = self._pool.fetch
        return digest_of_digests({client: state_digest(fetch(handle)) for client, handle in state.clients.items()})

    def try_to_save(self, state: State) -> None:
        """The same in mid-run, where a full disk is no end: room may come until the next round."""
        try:
            self.save(state)
        except DiskFullError as error:
            self._failed += 1
            if self._failed & (self._failed - 1) == 0:  # the 1st, 2nd, 4th, 8th … time
                self._note(f"after round {state.round}: {error} The run goes on, and tries again after every round")

    def latest(self, worker: Worker) -> State | None:
        """The state of the newest checkpoint that the run can go on from; the tables lose what came after it.

        Newer ones that are damaged, or that tables have lost rows of, are passed over, which is noted.

        Returns:
            None if there is no checkpoint at all.

        Raises:
            DamagedError: there are some, and none that the run can go on from.
            CheckpointError: they are of another version, or of other settings.
        """
        template, selection = state_template(worker), first_selection(self._config)
        reasons: list[str] = []
        passed: list[Path] = []
        for path in checkpoint.newest_first(self._folder.checkpoints):
            try:
                facts = facts_of(path, self._config)
                self._folder.check(facts["tables"])
                found = checkpoint.load(path, self._first, template, self._pool.share, selection_template=selection)
            except DamagedError as error:
                passed.append(path)
                reasons += [str(error)] if str(error) not in reasons else []
                continue
            if reasons:
                self._note(f"{'; '.join(reasons)}. The run goes on from the checkpoint of round {found.round}")
            for newer in passed:
                checkpoint.set_aside(newer)
            self._round, self._files = found.round, found.files
            self._changed.clear()
            self._folder.go_back(found.round, facts["tables"])
            return State(found.server, found.round, found.client_states, found.earlier, found.selection)
        if reasons:
            raise DamagedError(
                f"{'; '.join(reasons)}. No checkpoint is left to go on from: {start_again(self._folder.path)}"
            )
        return None

    def none(self) -> State:
        """The state before the first round, with empty tables.

        Raises:
            DamagedError: the run is finished, and its tables would be lost.
        """
        place, rounds = self._folder.checkpoints, self._folder.rounds_written()
        if self._folder.finished():
            raise DamagedError(
                f"damaged: {place}: the run is finished, and there is no checkpoint. The tables are left as they are; "
                f"to compute it again, {start_again(self._folder.path)}"
            )
        if rounds:
            self._note(f"{place} holds no checkpoint: the run starts again from round 1 ({rounds} were in rounds.csv)")
        self._round, self._files = 0, ClientFiles()
        self._changed.clear()
        self._folder.go_back(0, {})
        return State(self._first, selection=first_selection(self._config))


def state_template(worker: Worker) -> Callable[[int], Any]:
    """Templates that saved client states are read against, by client: the states before their first tasks."""
    templates: dict[InputSpec, Any] = {}

    def template(client: int) -> Any:
        inputs = worker.federation.input_spec(client)
        if inputs not in templates:
            templates[inputs] = worker.first_state(client)
        return templates[inputs]

    return template


def kept_noise(folder: RunFolder) -> float | None:
    """The noise multiplier that was found for ``privacy.epsilon`` when the run began; all its checkpoints have it."""
    for path in checkpoint.newest_first(folder.checkpoints):
        try:
            found = checkpoint.read_manifest(path)["facts"].get(NOISE)
            return found if isinstance(found, float) else None
        except CheckpointError:  # is told where the state is read
            continue
    return None


def compared(config: RunConfig) -> dict[str, Any]:
    """The settings that a checkpoint remembers, and what was in the trace file that they name."""
    found: dict[str, Any] = json.loads(json.dumps(recorded(settings(config))))
    if digest := traces.digest(config.devices):
        found[TRACE_DIGEST] = digest
    return found


def facts_of(path: Path, config: RunConfig) -> Mapping[str, Any]:
    """Facts that a checkpoint holds about its run: marks of the tables, and settings.

    Raises:
        DamagedError: it is damaged, or its rounds are not the first rounds of a run of this length.
        CheckpointError: it is of another version, or of other settings.
    """
    manifest = checkpoint.read_manifest(path)
    facts: dict[str, Any] = manifest["facts"]
    number = manifest["round"]
    tables, before = facts.get("tables", {}), in_full(facts.get("settings", {}))
    if not {"rounds.csv", "clients.csv"} <= tables.keys() or type(before.get(ROUNDS)) is not int:
        raise DamagedError(f"damaged: {path}: it does not say of which tables and settings it is")
    now = in_full(compared(config))

    changed = [
        f"{name}: {before[name]} → {now[name]}"
        for name in before.keys() & now.keys()
        # What "auto" stands for is known only once the run goes on, and is compared then.
        if name not in MAY_CHANGE and now[name] not in (before[name], "auto")
    ]
    if changed:
        error = CheckpointError(
            f"{path} was made with other settings: {'; '.join(sorted(changed))}. Going on with these would change the "
            "results: bring config.yaml back, or start the run again in a new folder"
        )
        error.resumable = False
        raise error
    common = common_rounds(config, before[ROUNDS])
    if number > common:
        raise DamagedError(
            f"{path}: a run of {counted(before[ROUNDS], 'round')} and one of {now[ROUNDS]} have only their "
            f"first {counted(common, 'round')} in common, and this is after round {number}"
        )
    return facts


def check_rounds(folder: RunFolder, config: RunConfig) -> None:
    """Whether a run can go on with the number of rounds that ``config`` has now.

    Raises:
        ResultsError: more rounds are done, or those that are done would not be the same in a run of that length.
    """
    reasons = []
    for path in checkpoint.newest_first(folder.checkpoints):
        try:
            done = checkpoint.read_manifest(path)["round"]
            if done > config.schedule.rounds:
                reasons.append(f"{counted(done, 'round')} done")
                break
            facts_of(path, config)
            return
        except DamagedError as error:
            reasons.append(str(error))
    if reasons or folder.finished():
        why = "; ".join(reasons) or f"{folder.checkpoints} holds no checkpoint"
        raise ResultsError(
            f"schedule.rounds {config.schedule.rounds} is not possible for this run: {why}. Leave it out to resume, or "
            f"{start_again(folder.path)}"
        )


def start_again(folder: Path) -> str:
    """The advice for a run that cannot go on."""
    return f"start it in a new folder with --config {folder / 'config.yaml'} --output NEW_FOLDER"
