"""One pass over a run's folder, after which the remote side holds it as a new state."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from raysim.errors import ResultsError
from raysim.remote.origins import read_origins, write_origins
from raysim.remote.state import BLOCK_BYTES, BLOCKS, STATES, State, StoredFile, state_names, storable, whole_states
from raysim.remote.store import Store
from raysim.storage.folder_files import open_file
from raysim.storage.proof_file import PROOF_NAME
from raysim.storage.run_folder import RunFolder

_FIRST = ("checkpoints/", "origin/", "summary.json")
"""Names that are read before all others: what is read after a checkpoint has at least the rows that it counts."""
_GROWING = (PROOF_NAME, "clients.csv", "rounds.csv")
"""Files that a round adds to, in the order in which their sizes are taken: a line of the proof comes after its rows."""
_PASSES = 20
KEPT_STATES = 2


class ConflictError(Exception):
    """Another process has written a state that the run's folder does not come from."""


class ChangingError(Exception):
    """A file went, or was cut, while it was read; the next pass finds the folder as it is then."""


class Upload:
    """Writes the states of one run's folder, one after another, where the folder comes from the newest that is there.

    Raises:
        ConflictError: another process has written the newest state since the folder was read.
        DamagedError: there are states, and none is whole.
        UnreachableError: the remote side does not answer.
    """

    def __init__(self, store: Store, folder: Path) -> None:
        self.store, self._folder = store, folder
        self._writer = secrets.token_hex(8)
        self._earlier = set(state_names(store))  # first: a state that comes while the others are read is not among them
        """Names of states that were there before ours, whole or not."""
        self._states = whole_states(store)
        """Whole states that are kept, the newest last."""
        if self._states and self._states[-1].name not in read_origins(folder):
            raise ConflictError
        self._stored = store.names(BLOCKS)
        self._ours: set[str] = set()
        """Blocks that this process has sent."""
        self._seen: dict[str, tuple[tuple[int, ...], StoredFile]] = {}
        self._sent: State | None = None
        """A state whose writing was not confirmed."""
        self._number = 0
        """The last that was used: a state whose writing was not confirmed may come later."""
        self.left_out: list[str] = []
        """Names of files that no state may hold, in the folder as it was last read."""

    @property
    def last(self) -> State | None:
        """The newest whole state on the remote side."""
        return self._states[-1] if self._states else None

    def bring(self) -> State:
        """Bring the remote side up to the folder; a state is written only where the folder has changed.

        Raises:
            UnreachableError: the remote side does not answer; what was sent already is not sent again.
            ConflictError: another process has written there.
            ChangingError: the folder was never still.
            OSError: a file of the folder cannot be read.
        """
        rounds, files = RunFolder(self._folder).rounds_written(), self._files()
        names = state_names(self.store)
        if any(name not in self._earlier and not name.endswith(f"-{self._writer}.json") for name in names):
            raise ConflictError
        if self._sent and self._sent.name in names:  # it came, and the answer was lost
            self._states.append(self._sent)
        self._sent = None
        if self.last and self.last.files == files:
            return self.last
        self._number = max([self._number, *(int(name.partition("-")[0]) for name in names)]) + 1
        state = State(self._number, self._writer, rounds, files)
        with suppress(ResultsError):  # without it, on a full disk, --resume puts the folder aside
            write_origins(self._folder, [*(known.name for known in self._states), state.name])
        self._sent = state
        self.store.put(f"{STATES}/{state.name}", state.encoded())
        self._sent = None
        self._states.append(state)
        self._prune(names)
        return state

    def withdraw(self) -> None:
        """Remove all that was written: the run has come to nothing."""
        for state in self._states:
            self.store.remove(f"{STATES}/{state.name}")
        for digest in self._ours:
            self.store.remove(f"{BLOCKS}/{digest}")

    def _files(self) -> tuple[StoredFile, ...]:
        for _ in range(_PASSES):
            try:
                found = dict(run_files(self._folder))
                kept = storable(found)
                self.left_out = sorted(found.keys() - kept)
                return tuple(self._read(kept, found))
            except (FileNotFoundError, ChangingError):  # a checkpoint was removed meanwhile
                continue
        raise ChangingError

    def _read(self, names: Sequence[str], paths: Mapping[str, Path]) -> Iterator[StoredFile]:
        """Each file; those that grow as they are at one moment, though rounds end while others are sent."""
        sizes: dict[str, int] = {}
        for name in names:
            if not sizes and not name.startswith(_FIRST):
                sizes = {grown: paths[grown].stat().st_size for grown in _GROWING if grown in names}
            yield self._file(name, paths[name], sizes.get(name))

    def _file(self, name: str, path: Path, limit: int | None = None) -> StoredFile:
        """The file, or its first ``limit`` bytes, all blocks of which are stored."""
        with open_file(path, inner=name.count("/")) as file:
            found = os.fstat(file.fileno())
            end = found.st_size if limit is None else limit
            mark = (end, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
            if name in self._seen and self._seen[name][0] == mark:
                return self._seen[name][1]
            blocks: list[str] = []
            for start in range(0, end, BLOCK_BYTES):
                size = min(BLOCK_BYTES, end - start)
                data = _exactly(file.fileno(), start, size)
                blocks.append(hashlib.sha256(data).hexdigest())
                if self._stored.get(blocks[-1]) != size:
                    self.store.put(f"{BLOCKS}/{blocks[-1]}", data)
                    self._stored[blocks[-1]] = size
                    self._ours.add(blocks[-1])
        stored = StoredFile(name, end, tuple(blocks))
        self._seen[name] = (mark, stored)
        return stored

    def _prune(self, names: Sequence[str]) -> None:
        """Remove all states but the newest whole ones, and blocks that they or unfinished passes have sent.

        Args:
            names: the states that are there, without the one that was written just now.
        """
        kept, dropped = self._states[-KEPT_STATES:], self._states[:-KEPT_STATES]
        for name in set(names) - {state.name for state in kept}:
            self.store.remove(f"{STATES}/{name}")
        named = {digest for state in kept for digest in state.blocks()}
        for digest in self._ours.union(*(state.blocks() for state in dropped)) - named:
            self._stored.pop(digest, None)  # first: it may be gone though the answer was lost
            self.store.remove(f"{BLOCKS}/{digest}")
            self._ours.discard(digest)
        self._states = kept


def run_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Name and path of each file that belongs to a run's state, in the order in which they are to be read."""

    def fail(error: OSError) -> None:
        raise error

    found = []
    for place, folders, names in os.walk(folder, onerror=fail):
        folders[:] = [name for name in folders if _belongs(name)]
        for name in filter(_belongs, names):
            path = Path(place, name)
            found.append((path.relative_to(folder).as_posix(), path))
    return iter(sorted(found, key=lambda entry: (not entry[0].startswith(_FIRST), entry[0].count("/"), entry[0])))


def _belongs(name: str) -> bool:
    """Whether a name is part of a run's state: no lock, nothing unfinished and nothing that was passed over."""
    return not name.startswith(".") and name != "process.json" and not name.endswith((".partial", ".unusable"))


def _exactly(handle: int, start: int, size: int) -> bytes:
    data = os.pread(handle, size, start)
    if len(data) < size:
        raise ChangingError
    return data
