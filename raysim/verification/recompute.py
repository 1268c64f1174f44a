"""Computes rounds of a run again, in a folder of its own, and compares them with what the run's folder says."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim.config.all_sections import CHOICES_OF_AUTO
from raysim.config.config_file import CONFIG_NAME, stored_text
from raysim.config.run_config import RunConfig, with_sections
from raysim.engine.observer import Silent
from raysim.errors import RaysimError, ResultsError
from raysim.running.open_run import prepare
from raysim.running.simulation import execute
from raysim.storage.atomic_files import write_atomically
from raysim.storage.origin import ORIGIN_NAME, kept_checkpoints
from raysim.storage.proof_file import PROOF_NAME
from raysim.storage.run_record import read_summary
from raysim.units import counted
from raysim.verification.derived_files import compare_partitions, data_differences
from raysim.verification.differences import first_difference
from raysim.verification.distances import round_distances
from raysim.verification.folder_check import FolderCheck

if TYPE_CHECKING:
    from collections.abc import Mapping

_COPIED = (PROOF_NAME, "rounds.csv", "clients.csv", "precision.json", "environment.json", ORIGIN_NAME)
"""Files that a run which goes on from a checkpoint reads."""


def spans(wanted: Iterable[int], kept: Sequence[int]) -> list[tuple[int, int]]:
    """Spans that have to be computed for some rounds: (round of a checkpoint or 0, last round), ascending.

    Args:
        wanted: the rounds.
        kept: rounds whose checkpoints are kept.
    """
    found: dict[int, int] = {}
    for number in sorted(wanted):
        start = max((each for each in kept if each < number), default=0)
        found[start] = number
    return sorted(found.items())


def again(
    check: FolderCheck, config: RunConfig, wanted: Sequence[int], place: Path, *, whole: bool, tolerance: bool = False
) -> None:
    """Compute these rounds again, with those between them and the checkpoints before them; adds to the verdict.

    Args:
        check: the run's folder, whose files agree with its proof.
        config: the run's settings, with the backend and the number of actors of the new computation.
        wanted: rounds of the run.
        place: an empty folder for what is computed.
        whole: compute from the start, whatever checkpoints are kept.
        tolerance: say how far every round is apart, and do not end with the first that differs.

    Raises:
        RaysimError: it cannot be computed here.
    """
    paths = kept_checkpoints(check.path)
    first = {number: path for number, path in paths.items() if number == check.taken}
    kept = first if whole else paths
    if check.taken and whole:
        wanted = [number for number in wanted if number > check.taken]
        check.verdict.notes.append(
            f"the first {counted(check.taken, 'round')} were taken from {check.origin}, and are checked there"
        )
    config = _keeping(config, [*paths])
    computed = 0
    for start, last in spans(wanted, [*kept]):
        folder = place / f"from-{start}"
        compute(check, config, folder, kept.get(start), last)
        computed += last - start
        if found := first_difference(check, folder, range(start + 1, last + 1)):
            check.verdict.differences += found
            if not tolerance:
                return
        if tolerance:
            check.verdict.distances += round_distances(check, folder, range(start + 1, last + 1))
        if whole:
            check.verdict.differences += data_differences(check.summary, read_summary(folder))
            compare_partitions(check.path, folder, check.verdict)
        if start == 0 and last > 1 and not whole:
            check.verdict.notes.append(f"no checkpoint before round {min(wanted)} is kept: computed from the start")
        shutil.rmtree(folder)
    check.verdict.checked.append(f"{counted(computed, 'round')} computed again")


def compute(check: FolderCheck, config: RunConfig, folder: Path, start: Path | None, last: int) -> None:
    """The rounds behind a checkpoint up to ``last``, in a new folder.

    Args:
        start: the checkpoint; None: from the beginning.

    Raises:
        RaysimError: the run failed.
    """
    config = begun_at(check, config, folder, start)
    watch = _Until(last)
    outcome = execute(config, folder, watch, resumed=start is not None, stopping=watch.reached, keep_ray=True)
    if outcome.status == "failed":
        raise RaysimError(f"the rounds up to {last} could not be computed again: {outcome.message}")


def begun_at(check: FolderCheck, config: RunConfig, folder: Path, start: Path | None) -> RunConfig:
    """Make a run's folder that goes on from a checkpoint of the checked run; its config.

    Args:
        start: the checkpoint; None: the run is a new one.
    """
    config = replace(with_decisions(check, config, config), output=str(folder), pictures=False)
    if start is None:
        prepare(config)
        if (check.path / ORIGIN_NAME).is_file():
            shutil.copyfile(check.path / ORIGIN_NAME, folder / ORIGIN_NAME)
        return config
    folder.mkdir(parents=True)
    for name in _COPIED:
        if (check.path / name).is_file():
            shutil.copyfile(check.path / name, folder / name)
    shutil.copytree(start, folder / "checkpoints" / start.name)
    write_atomically(folder / CONFIG_NAME, stored_text(config).encode())
    return config


def _keeping(config: RunConfig, rounds: Sequence[int]) -> RunConfig:
    """The config of a computation that keeps the checkpoints of these rounds, to be compared."""
    every = math.gcd(*rounds) or 1
    keep = (max(rounds, default=1) - min(rounds, default=1)) // every + 2  # and one where it ends
    return replace(config, engine=replace(config.engine, checkpoint_every=every, keep_checkpoints=keep))


def with_decisions(check: FolderCheck, stored: RunConfig, config: RunConfig) -> RunConfig:
    """The config with what the run decided where its settings left that to it (``auto``), unless that is changed."""
    decided: dict[str, Any] = {}
    for path in CHOICES_OF_AUTO:
        name = path.removeprefix("training.")
        if getattr(config.training, name) == getattr(stored.training, name):
            decided[name] = check.settings[path]
    of: Any = check.entries[0].content.get("of")
    engine, training = replace(config.engine, proof=of), replace(config.training, **decided)
    return with_sections(config, engine=engine, training=training)


def placed(config: RunConfig, actors: int, *, cpu: bool = False) -> RunConfig:
    """The config of a computation on this machine.

    Args:
        actors: client actors on Ray; 0: all in this process.
        cpu: on the CPU, also of a run that was on a GPU.
    """
    engine = replace(
        config.engine,
        backend="ray" if actors else "inline",
        actors=actors,
        address="local",
        dashboard=False,
        observer=(),
        experiment="",
        profile=False,
        gpus_per_client=0.0 if cpu else config.engine.gpus_per_client,
    )
    return with_sections(config, engine=engine)


def check_rounds(wanted: Iterable[int], check: FolderCheck) -> list[int]:
    """The rounds that were asked for, each once, ascending.

    Raises:
        ResultsError: the run has no such round, or took it from another.
    """
    found, done = sorted(set(wanted)), len(check.rounds)
    if found and 1 <= found[0] <= check.taken:
        raise ResultsError(
            f"--rounds: round {found[0]} was taken from {check.origin}: check it there. Allowed: {check.taken + 1} to "
            f"{done}."
        )
    if wrong := [number for number in found if not 1 <= number <= done]:
        raise ResultsError(f"--rounds: the run has no round {wrong[0]}. Allowed: 1 to {done}.")
    return found


class _Until(Silent):
    """Ends a computation after a round."""

    def __init__(self, last: int) -> None:
        self._last, self._round = last, 0

    def round_finished(self, row: Mapping[str, Any]) -> None:
        self._round = int(row["round"])

    def reached(self) -> bool:
        """Whether the round is done."""
        return self._round >= self._last
