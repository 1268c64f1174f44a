"""The columns that a run's table of rounds will have, known before the first round."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from raysim import columns, schedule
from raysim.columns import EACH_CLIENT, SPREAD, TUNED, UNSEEN, VALIDATION
from raysim.workloads.objective import Kind, Objective
from raysim.wrappers.judging import further_columns, judging, measures_auc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from raysim.client_side.worker import Worker
    from raysim.config.run_config import RunConfig
    from raysim.workloads.federated_data import Federation


def measurable(worker: Worker) -> tuple[str, ...]:
    """The columns that ``evaluation.measure`` may name: all but the round's number and times, which no two runs share.

    A method's own are those that it declares (``Traits.reports``). A test holds this list against the tables of runs.
    """
    config, federation = worker.config, worker.federation
    held_back = getattr(config.workload, "validation_share", None) != 0
    clients = schedule.judged_clients(config, federation) if held_back else ()
    validated = any(len(worker.data(client).validation) for client in clients)
    return tuple(dict.fromkeys(_columns(config, federation, worker.objective, validated)))


def expected(config: RunConfig, federation: Federation) -> tuple[str, ...]:
    """The same without a worker, of data or a sketch of it, as if clients had validation sets."""
    return tuple(dict.fromkeys(_columns(config, federation, judging(config, federation).objective, validated=True)))


def is_share(column: str, objective: Objective) -> bool:
    """Whether all values of a column lie between 0 and 1; not known of a user's own metrics."""
    return column not in objective.metrics and columns.column_of(column).unit == "percent"


def possible(config: RunConfig) -> tuple[str, ...] | None:
    """The columns that a run may have by its settings, of any data that go with them.

    None where code of a user's own decides. The AUC is there if it is asked for: by ``auto`` most data have none.
    """
    if not all(type(each).__module__.startswith("raysim.") for each in (config.method, config.workload)):
        return None
    measures = ("accuracy", "loss")
    return (
        *(name for kind in get_args(Kind) for name in Objective(kind).columns),
        *(f"{VALIDATION}{name}" for name in measures),
        *(f"{UNSEEN}{name}" for name in measures if config.schedule.unseen_clients or config.schedule.without),
        *(["auc"] if config.evaluation.auc is True else []),
        *SPREAD,
        *_tuned(config, True),
        *([EACH_CLIENT] if config.evaluation.each_client else []),
        *([TUNED + EACH_CLIENT] if config.evaluation.each_client and config.evaluation.fine_tune else []),
        *columns.asked(config),
        *further_columns(config),
        *config.method.traits.reports,
    )


def _columns(config: RunConfig, federation: Federation, objective: Objective, validated: bool) -> Iterator[str]:
    yield from objective.columns
    if measures_auc(config, federation):
        yield "auc"
    yield from columns.asked(config)
    measures = ("accuracy", "loss") if objective.accurate else ("loss",)
    if validated:
        yield f"{VALIDATION}{measures[0]}"
    if len(schedule.population(config, federation.clients)) < federation.clients:
        yield from (f"{UNSEEN}{name}" for name in measures)
    if objective.accurate:
        yield from SPREAD
    yield from _tuned(config, objective.accurate)
    yield from further_columns(config)
    yield from config.method.traits.reports


def _tuned(config: RunConfig, accurate: bool) -> Iterator[str]:
    """Columns of clients judged again after fine-tuning."""
    if config.evaluation.fine_tune:
        yield from (f"{TUNED}{name}" for name in ("loss", *(SPREAD if accurate else ())))
