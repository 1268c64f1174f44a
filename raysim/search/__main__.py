"""Search the best values of a method's options by Optuna, on validation data, with a budget that is said.

``python -m raysim.search --method fedprox --space mu=0.001:1:log --space learning_rate=0.01:0.5:log --trials 20
--seeds 0-2 --validation_share 0.2 --rounds 20 --output runs/search`` leaves ``table.md`` (all trials) and ``best.yaml``
(for ``--config``) in its folder. Trials are asked in batches of fixed size and told in their order, so the table is the
same for any number of workers and after kills; the same command goes on, and a larger ``--trials`` adds to it.
``--halving 2`` trains the better half of each batch longer, rung by rung (:mod:`raysim.search.halving`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from raysim import portable
from raysim.cli.interruption import Interruption
from raysim.config.answering import Answer, asks_for_json, concluded
from raysim.errors import FAILED, RaysimError
from raysim.search import command
from raysim.search.table import page
from raysim.search.trials import Trial, best_of, carry_out
from raysim.storage.atomic_files import write_atomically
from raysim.storage.claims import alone
from raysim.studies.computing import compute


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; 0 unless the request has a mistake (2) or no trial has a value (1)."""
    return concluded("raysim", asks_for_json(argv), lambda: _searched(argv))


def _searched(argv: Sequence[str] | None) -> Answer:
    request = command.read(argv, (__doc__ or "").split("\n\n")[0])
    if request.config.engine.portable:
        portable.ensure()
    interruption = Interruption()
    try:
        with interruption, interruption.deferred():
            made = carry_out(
                request.search,
                lambda cells: compute(cells, request.workers, interruption.asked, lambda: None),
                interruption.asked,
                partial(_write, request),
            )
    except (RaysimError, OSError) as error:
        return Answer(error=str(error), code=FAILED)
    except KeyboardInterrupt:
        return _interrupted(interruption)
    if len(made) < request.search.trials:
        return _interrupted(interruption)
    _write(request, made)
    best = best_of(made, request.search.measure)
    trials = [{"trial": trial.number, "values": dict(trial.values), "value": trial.value} for trial in made]
    told: dict[str, Any] = {"measure": request.search.measure.name, "trials": trials}
    if best is None:
        name, reasons = request.search.measure.name, request.search.results / "*.failed.csv"
        said = f"no trial has a value of {name} at its end: they failed. The reasons: {reasons}; once these files are "
        said += "removed, the same command runs the trials again"
        return Answer(told=told, error=said, code=FAILED)
    files = {"table": str(request.folder / "table.md"), "settings": str(request.folder / "best.yaml")}
    return Answer(
        f"best: trial {best.number}; {files['table']}, {files['settings']}",
        told | {"best": trials[made.index(best)], **files},
    )


def _interrupted(interruption: Interruption) -> Answer:
    return Answer(error="interrupted; the same command goes on", code=interruption.exit_code)


def _write(request: command.Command, trials: Sequence[Trial]) -> None:
    """Write the table, and the settings of the best trial so far."""
    import yaml

    text = page(request.search, trials, request.words, request.config)
    with alone(request.folder / "table.md"):  # two processes may share a search
        write_atomically(request.folder / "table.md", text.encode())
        if (best := best_of(trials, request.search.measure)) is not None:
            settings = {**request.search.base, **best.values}
            write_atomically(request.folder / "best.yaml", yaml.safe_dump(settings, sort_keys=False).encode())


if __name__ == "__main__":
    sys.exit(main())
