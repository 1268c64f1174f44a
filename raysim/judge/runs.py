"""The runs of one group, each read from its folder and checked against its proof."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim.config.config_file import CONFIG_NAME, read_config_file
from raysim.engine.checkpointing import MAY_CHANGE
from raysim.errors import ConfigError, ResultsError
from raysim.judge.refusals import Refusal, of_one
from raysim.storage.folder_files import is_there
from raysim.storage.proof_file import PROOF_NAME
from raysim.storage.run_folder import RunFolder, is_run
from raysim.storage.run_record import read_environment, read_summary
from raysim.storage.untrusted_files import UnreadableFileError, read_text
from raysim.verification.folder_check import FolderCheck

if TYPE_CHECKING:
    from pandas import DataFrame

PARTITION_BYTES = 2**24
"""Largest partition.csv that is read."""


@dataclass(frozen=True)
class Run:
    """One finished run whose folder agrees with its proof."""

    check: FolderCheck
    settings: Mapping[str, Any]
    """Path → value of every option that results depend on."""

    @property
    def folder(self) -> Path:
        """Its folder."""
        return self.check.path

    @property
    def seed(self) -> int:
        """The root of its random streams."""
        return int(self.settings["seed"])

    @property
    def head(self) -> str:
        """The head of its proof, which another run of the same settings has only if it is the same."""
        return self.check.verdict.head

    @cached_property
    def rounds(self) -> DataFrame:
        """Its table of rounds."""
        return self.check.folder.rounds()

    @cached_property
    def clients(self) -> DataFrame:
        """Its table of client tasks."""
        return self.check.folder.clients()

    @cached_property
    def environment(self) -> Mapping[str, Any]:
        """Versions, commit and processor that it was made with; empty where the folder does not say."""
        return read_environment(self.folder)

    @cached_property
    def partition(self) -> str:
        """The table of the clients' samples; empty where there is none, as with more than 1000 clients."""
        try:
            return read_text(self.folder / "partition.csv", PARTITION_BYTES, own=True)
        except FileNotFoundError:
            return ""
        except UnreadableFileError as error:
            raise ResultsError(f"{self.folder / 'partition.csv'}: cannot be read: {error}") from error

    @property
    def samples(self) -> dict[int, int]:
        """Client → its training samples, of all clients that took part; these numbers are in the proof."""
        if not {"client", "samples"} <= set(self.clients):
            return {}
        table = self.clients.drop_duplicates("client").dropna(subset=["samples"])
        return dict(zip(table["client"].astype(int), table["samples"].astype(int), strict=True))


@dataclass(frozen=True)
class Side:
    """One of the two groups."""

    letter: str
    runs: tuple[Run, ...]

    @property
    def by_seed(self) -> dict[int, Run]:
        """Seed → its run, in the order of seeds."""
        return {run.seed: run for run in sorted(self.runs, key=lambda run: run.seed)}

    @property
    def first(self) -> Run:
        """One of its runs, for what all have in common."""
        return self.runs[0]

    @property
    def name(self) -> str:
        """The letter with the name of the method."""
        return f"{self.letter} ({self.first.settings.get('method.name')})" if self.runs else self.letter


Pairs = Sequence[tuple[Run, Run]]
"""The runs of each seed, that of the first group before that of the second."""


def folders_of(places: Sequence[Path]) -> list[Path]:
    """The run folders among these places and directly in them.

    Raises:
        ConfigError: a place is no folder, or holds no run.
    """
    found = dict[Path, None]()
    for place in places:
        if not place.is_dir():
            raise ConfigError(f"{place}: there is no such folder. Give folders of runs, or folders that hold them.")
        inner = sorted(path for path in place.iterdir() if path.is_dir() and is_run(path))
        own = [place] if is_run(place) else inner
        if not own:
            raise ConfigError(
                f"{place} holds no run. Allowed: the folder of a run (--output of raysim.launch), or a folder whose "
                "folders are runs."
            )
        found |= dict.fromkeys(own)
    return [*found]


def read_side(letter: str, folders: Sequence[Path]) -> tuple[Side, list[Refusal]]:
    """The whole runs of a group, and a refusal for each that is not."""
    runs, refusals = list[Run](), list[Refusal]()
    for folder in folders:
        check, found = _checked(letter, folder)
        refusals += found
        if check is not None and not found:
            runs.append(Run(check, _settings(check)))
    return Side(letter, tuple(runs)), refusals


def _checked(letter: str, folder: Path) -> tuple[FolderCheck | None, list[Refusal]]:
    """The check of a folder whose files agree with its proof, or why there is none."""
    RunFolder.open(folder)
    if not is_there(folder / PROOF_NAME):
        why = "Without a proof nothing shows that its tables are those of the run."
        advice = "Run it again; --proof rounds is the default."
        return None, [of_one(letter, "no proof", folder, f"has no {PROOF_NAME}", why, advice)]
    try:
        finished = bool(read_summary(folder))
    except ResultsError:  # the check says why
        finished = True
    if not finished:
        advice = f"Let it end: python -m raysim.launch --resume {folder}"
        why = "A run that has not ended had less than its budget."
        return None, [of_one(letter, "unfinished run", folder, "has no summary.json", why, advice)]
    check = FolderCheck(folder)
    return check, [*_differences(letter, folder, check)]


def _differences(letter: str, folder: Path, check: FolderCheck) -> Iterator[Refusal]:
    """A refusal where a file is not what the proof says."""
    if differences := check.run().differences:
        more = f", and {len(differences) - 1} more" if len(differences) > 1 else ""
        why = "The folder is not what its proof says."
        advice = f"Bring the files back or run it again; python -m raysim.verify {folder} lists all."
        yield of_one(letter, "proof", folder, f"{differences[0]}{more}", why, advice)
    elif check.taken:
        why = f"Its first {check.taken} rounds were taken from {check.origin}, so that it began with a trained model."
        advice = "Run it from the start: python -m raysim.launch --config config.yaml"
        yield of_one(letter, "another start", folder, f"is a replay from round {check.taken}", why, advice)


def _settings(check: FolderCheck) -> dict[str, Any]:
    """The settings in the proof, and those that a run may be resumed with other values of."""
    stored = read_config_file(check.path / CONFIG_NAME, run_folder=True)
    return {**check.settings, **{name: stored[name] for name in MAY_CHANGE if name in stored}}
