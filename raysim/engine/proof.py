"""Lines of a run's proof: digests of its settings, of every round and of its end (docs/trust.md)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim.engine.checkpointing import MAY_CHANGE, State, compared
from raysim.storage.folder_files import read_bytes
from raysim.storage.origin import read_origin
from raysim.storage.row_digest import rows_digest
from raysim.storage.state_digest import state_digest

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig
    from raysim.storage.csv_table import Row
    from raysim.storage.run_folder import RunFolder

FORMAT = 1


def has_tasks(folder: RunFolder, config: RunConfig) -> bool:
    """Whether a run's proof holds every client's message and update, as it began or is about to begin."""
    entries = folder.proof.entries
    return bool(entries[0].content["of"] == "clients" if entries else config.engine.proof == "clients")


def opening(folder: Path, config: RunConfig) -> dict[str, Any]:
    """The first line: the settings that results depend on and, of a replay, its origin."""
    fixed = {name: value for name, value in compared(config).items() if name not in MAY_CHANGE}
    origin = read_origin(folder)
    first = {"raysim proof": FORMAT, "of": config.engine.proof, "settings": fixed}
    return {**first, "origin": origin} if origin else first


class Proof:
    """Writes the lines of one run: its settings, then a line a round, then one at its end.

    A run goes on as it began: one without a proof of its first rounds has none.

    Args:
        config: the run's, with everything decided that was left to it (``auto``).
    """

    def __init__(self, folder: RunFolder, config: RunConfig) -> None:
        self._folder, self._chain, self._config = folder.path, folder.proof, config
        self.states = ""
        """Digest of all clients' states, once the last round is done."""

    def round(self, row: Row, rows: Sequence[Row], state: State) -> None:
        """Add the line of a round.

        Args:
            row: its row of the rounds table.
            rows: its rows of the clients table.
            state: the run's after it.
        """
        if not self._chain.entries:
            if row["round"] > 1 or self._config.engine.proof == "none":
                return
            self._chain.append(opening(self._folder, self._config))
        digests = {"rounds": rows_digest([row]), "clients": rows_digest(rows), "server": state_digest(state.server)}
        if state.selection is not None:
            digests["selection"] = state_digest(state.selection)
        self._chain.append({"round": int(row["round"]), **digests})

    def end(self, round: int, model: Path) -> None:
        """Add the line of the run's end.

        Args:
            round: the last one.
            model: the file with the global model, if there is one.
        """
        if self._chain.entries:
            trained = {"model": hashlib.sha256(read_bytes(model)).hexdigest()} if model.exists() else {}
            self._chain.append({"end": round, "states": self.states, **trained})
