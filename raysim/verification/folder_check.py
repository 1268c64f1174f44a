"""Checks the files of a run's folder against its proof, without training and without any code that the folder names."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from raysim.config import earlier_names
from raysim.config.config_file import CONFIG_NAME, check_seal, read_config_file
from raysim.config.late_options import in_full
from raysim.errors import CheckpointError, ConfigError, DamagedError, ResultsError
from raysim.results.model_file import MODEL_NAME
from raysim.storage import checkpoint
from raysim.storage.checkpoint_digests import CheckpointDigests, read_digests
from raysim.storage.folder_files import is_there, read_bytes
from raysim.storage.origin import ORIGIN_NAME, read_origin
from raysim.storage.proof_file import PROOF_NAME, Entry, read_proof
from raysim.storage.row_digest import cells_digest
from raysim.storage.run_folder import RunFolder
from raysim.storage.run_record import read_summary
from raysim.storage.state_digest import digest_of_digests
from raysim.storage.table_marks import allow_cells_of
from raysim.units import counted
from raysim.verification.chain import is_chain, told
from raysim.verification.derived_files import SUMMARY, same, summary_differences
from raysim.verification.plan import end_differences, planned_rounds, setting_differences
from raysim.verification.verdict import Difference, Verdict

Texts = Mapping[str, str]
"""A row of a table as it was read, by column."""
TABLES = ("rounds", "clients")


class FolderCheck:
    """One folder's proof, and what was read to compare it with.

    Raises:
        ResultsError: it is no run's folder, or has no proof.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.folder = path, RunFolder.open(path)
        if not is_there(path / PROOF_NAME):
            if head := read_summary(path).get("proof"):
                raise ResultsError(f"{path} has no {PROOF_NAME}, and {SUMMARY} names its head {head}: it was removed")
            raise ResultsError(
                f"{path} has no {PROOF_NAME}: the run was made with --proof none, by an earlier version of raysim, or "
                "has no round yet. Without it there is nothing to check the folder against"
            )
        self.verdict = Verdict()
        self.summary: dict[str, Any] = {}
        self.entries: Sequence[Entry] = ()
        self.rounds: dict[int, Entry] = {}
        """The lines of rounds, by round."""
        self.clients: dict[int, Mapping[int, str]] = {}
        """Digests of the clients' states in each checkpoint, by its round; known once all was checked."""
        self.planned: int | None = None
        """How many rounds the settings ask for, as far as raysim's own code says; known as the clients' states are."""

    @classmethod
    def whole(cls, path: Path) -> FolderCheck:
        """The check of a folder whose files agree with its proof; ResultsError where they do not."""
        found = cls(path)
        if not found.run().equal:
            difference = found.verdict.differences[0]
            raise ResultsError(f"{path} is not what its proof says ({difference}): see raysim.verify {path}")
        return found

    def run(self, head: str = "") -> Verdict:
        """Check all.

        Args:
            head: the chain's head as it was published elsewhere; empty: not known.
        """
        found = self.verdict
        try:
            self.read()
        except (DamagedError, ResultsError) as error:
            found.differences.append(Difference(PROOF_NAME, str(error)))
            return found
        if not self.summary and len(self.entries) < 2:
            raise ResultsError(f"{self.path}: the run ended within its first round: there is nothing to check")
        if not is_chain(self.entries):
            found.differences.append(Difference(PROOF_NAME, "its lines are not settings, rounds 1, 2, 3 … and an end"))
            return found
        found.head = self.entries[-1].head
        if head and head != found.head:
            found.differences.append(Difference(PROOF_NAME, f"its head is {found.head}, not {head}, as was published"))
        found.differences += told(CONFIG_NAME, self._settings)
        found.differences += told(ORIGIN_NAME, self._origin)
        for name in TABLES:
            found.differences += told(f"{name}.csv", partial(self._table, name))
        found.differences += told("checkpoints", self._checkpoints)
        found.differences += told(MODEL_NAME, self._model)
        found.differences += told(SUMMARY, self._derived)
        found.differences.sort(key=lambda difference: difference.round or 0)
        return found

    def read(self) -> None:
        """Read summary and chain.

        Raises:
            ResultsError, DamagedError: they cannot be read as such.
        """
        self.summary = read_summary(self.path)
        self.entries = read_proof(self.path / PROOF_NAME, torn=not self.summary)
        numbered = [entry for entry in self.entries if type(entry.content.get("round")) is int]
        self.rounds = {entry.content["round"]: entry for entry in numbered}

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings in the first line."""
        return in_full(earlier_names.current(dict(self.entries[0].content["settings"])))

    @property
    def taken(self) -> int:
        """How many of the first rounds a replay took from another run; 0 of another run."""
        found = self.entries[0].content.get("origin")
        rounds = found.get("rounds") if isinstance(found, dict) else 0
        return rounds if isinstance(rounds, int) else 0

    @property
    def origin(self) -> str:
        """A replay's origin in a few words."""
        found = self.entries[0].content["origin"]
        return f"the run {found.get('run')} with the proof {found.get('head')}"

    @property
    def end(self) -> Mapping[str, Any] | None:
        """The line of the end; None of a run that has not ended."""
        last = self.entries[-1].content
        return last if "end" in last else None

    def _settings(self) -> Iterator[Difference]:
        """config.yaml, beside the settings in the proof."""
        try:
            check_seal(self.path / CONFIG_NAME)
            given = in_full(json.loads(json.dumps(read_config_file(self.path / CONFIG_NAME, run_folder=True))))
        except ConfigError as error:
            yield Difference(CONFIG_NAME, str(error))
            return
        yield from setting_differences(given, self.settings)
        self.planned = planned_rounds(given)
        self.verdict.checked.append(counted(len(self.rounds), "round"))

    def _origin(self) -> Iterator[Difference]:
        """origin.json of a replay, beside the origin in the proof."""
        expected = self.entries[0].content.get("origin", {})
        try:
            found = read_origin(self.path)
        except ResultsError as error:
            yield Difference(ORIGIN_NAME, str(error))
            return
        if found != expected:
            yield Difference(ORIGIN_NAME, "it is not the origin that the proof names")
        elif found:
            self.verdict.checked.append(ORIGIN_NAME)

    def _table(self, name: str) -> Iterator[Difference]:
        """A table's rows, beside their digests."""
        file = f"{name}.csv"
        try:
            rows = self.rows(name)
        except (OSError, ValueError) as error:
            yield Difference(file, f"it cannot be read: {error}")
            return
        for number, entry in self.rounds.items():
            if cells_digest(rows.pop(str(number), [])) != entry.content[name]:
                yield Difference(file, "its rows are not those of the proof (SHA-256)", round=number)
        for text in rows:
            if self.summary or text != str(len(self.rounds) + 1):
                yield Difference(file, f"a row of round {text[:20]!r}, of which the proof has no line")
            else:
                self.verdict.notes.append(f"{file}: the rows of round {text}, in which the run ended, have no proof")

    def rows(self, name: str) -> dict[str, list[Texts]]:
        """The whole rows of a table, by the text of their round.

        Raises:
            OSError: it cannot be read.
            ValueError: it is no table, or its readers, who take its last whole line for the result, would be misled.
        """
        found, path = defaultdict[str, list[Texts]](list), self.path / f"{name}.csv"
        if not is_there(path):
            return found
        content = read_bytes(path)
        if not self.summary:
            content = content[: content.rfind(b"\n") + 1]  # a kill tears the last line
        elif not content.endswith(b"\n"):
            raise ValueError("its last line is not whole")
        allow_cells_of(len(content))
        reader = csv.reader(io.StringIO(content.decode(), newline=""), strict=True)
        try:
            columns = next(reader, [])
            if len(set(columns)) < len(columns):
                raise ValueError("line 1 names a column twice")
            for cells in reader:
                if len(cells) != len(columns):
                    raise ValueError(f"line {reader.line_num} has {len(cells)} cells, line 1 {len(columns)}")
                row = dict(zip(columns, cells, strict=True))
                number, last = row.get("round", ""), next(reversed(found), "")
                if number.isdecimal() and last.isdecimal() and int(number) < int(last):
                    raise ValueError(f"line {reader.line_num} is of round {number}, behind one of round {last}")
                found[number].append(row)
        except csv.Error as error:
            raise ValueError(f"line {reader.line_num}: {error}") from error
        return found

    def _checkpoints(self) -> Iterator[Difference]:
        """The states in the checkpoints, beside their digests."""
        paths = checkpoint.newest_first(self.path / "checkpoints")
        first = checkpoint.newest_first(self.path / "origin")
        if self.taken and not any(path.name.startswith(f"round-{self.taken:06d}") for path in first):
            yield Difference("origin", f"the state after round {self.taken}, that it began from, is missing")
        for path in (*first, *reversed(paths)):
            place = f"{path.parent.name}/{path.name}"
            try:
                found = read_digests(path)
            except CheckpointError as error:
                yield Difference(place, str(error))
                continue
            self.clients[found.round] = found.clients
            yield from (Difference(place, reason, round=found.round) for reason in self._wrong_in(found))
            self.verdict.checked.append(f"checkpoint of round {found.round}")
        if self.summary and not any(path.name.startswith(f"round-{len(self.rounds):06d}") for path in paths):
            yield Difference("checkpoints", f"that of round {len(self.rounds)}, the last, is missing")

    def _wrong_in(self, found: CheckpointDigests) -> Iterator[str]:
        for number, digest in {**found.earlier, found.round: found.server}.items():
            entry = self.rounds.get(number)
            if number == 0:  # a task under way from the very start: no round made that state
                continue
            if entry is None:
                yield f"the proof has no line of round {number}"
            elif digest != entry.content["server"]:
                yield f"the server's state after round {number} is not that of the proof (SHA-256)"
        entry = self.rounds.get(found.round)
        if entry is not None and found.selection != entry.content.get("selection"):
            yield f"the sampler's memory after round {found.round} is not that of the proof (SHA-256)"
        mark = found.facts.get("tables", {}).get(PROOF_NAME, {})
        if entry is not None and mark.get("head") != entry.head:
            yield "it was saved beside another chain"
        settings = found.facts.get("settings", {})
        changed = [name for name, value in self.settings.items() if settings.get(name, value) != value]
        if changed:
            yield f"it is of other settings ({', '.join(changed)})"
        if self.end and found.round == self.end["end"] and digest_of_digests(found.clients) != self.end["states"]:
            yield "the clients' states are not those of the proof (SHA-256)"

    def _model(self) -> Iterator[Difference]:
        """model.safetensors, beside its digest."""
        expected = (self.end or {}).get("model")
        try:
            content = read_bytes(self.path / MODEL_NAME) if is_there(self.path / MODEL_NAME) else b""
        except OSError as error:
            yield Difference(MODEL_NAME, f"it cannot be read: {error}")
            return
        if expected and not content:
            yield Difference(MODEL_NAME, "it is missing")
        elif not self.end:  # a run that was killed on its way to the end may have left one
            return
        elif content and hashlib.sha256(content).hexdigest() != expected:
            yield Difference(MODEL_NAME, "it is not that of the proof (SHA-256)")
        elif expected:
            self.verdict.checked.append(MODEL_NAME)

    def _derived(self) -> Iterator[Difference]:
        """summary.json and the Parquet tables, beside the tables that they are made of."""
        if not self.summary:
            self.verdict.notes.append("the run has not ended: its last rounds may be missing")
            return
        if not self.end:
            yield Difference(PROOF_NAME, "the run has a summary, and the proof no line of its end")
        if self.summary.get("proof") != self.verdict.head:
            yield Difference(SUMMARY, "its proof is another head than that of the chain")
        try:
            frames = {"rounds": self.folder.rounds(), "clients": self.folder.clients()}
        except ResultsError as error:
            yield Difference("rounds.csv", str(error))
            return
        done = len(self.rounds)
        wrong = [*end_differences(self.settings, frames["rounds"], done, self.planned, self.taken)]
        yield from wrong
        planned = None if wrong else self.planned
        yield from summary_differences(self.summary, self.settings, frames["rounds"], planned)
        for name, frame in frames.items():
            if not same(self.path / f"{name}.parquet", frame):
                yield Difference(f"{name}.parquet", f"it does not hold what {name}.csv does")
        self.verdict.checked.append(SUMMARY)
