"""The newest state that a run's folder holds, to look at."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from raysim.engine.checkpointing import State, state_template
from raysim.errors import DamagedError
from raysim.storage import checkpoint

if TYPE_CHECKING:
    from raysim.client_side.worker import Worker
    from raysim.storage.run_folder import RunFolder


def newest_state(folder: RunFolder, worker: Worker, clients: Collection[int] | None = None) -> State:
    """The state in the newest checkpoint that can be read, to look at: nothing in the folder is changed.

    Args:
        worker: a worker of this process, for the structure of states.
        clients: whose states are asked for; None: all.

    Raises:
        DamagedError: there is no checkpoint that can be read.
        CheckpointError: the newest does not fit the run's config.
    """
    first, template = worker.method.init_server(worker.model(0)), state_template(worker)
    reasons: list[str] = []
    for path in checkpoint.newest_first(folder.checkpoints):
        try:
            found = checkpoint.load(path, first, template, wanted=clients)
        except DamagedError as error:
            reasons.append(str(error))
            continue
        return State(found.server, found.round, found.client_states)
    why = "; ".join(dict.fromkeys(reasons)) or f"{folder.checkpoints} holds no checkpoint"
    raise DamagedError(f"{why}. A model is made of one: finish the run with --resume {folder.path}, or bring it back")
