"""Checks of a study before its first cell: settings of its kept cells, measures that it can have, and its data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from raysim.columns import COLUMNS
from raysim.config.config_file import read_config_file
from raysim.config.run_config import build, settings, to_dict
from raysim.errors import ConfigError, RaysimError
from raysim.results.measures import Measure
from raysim.studies import failures
from raysim.studies.choosing import check_judged
from raysim.studies.curves import AGAINST, without_costs
from raysim.studies.study_file import Cell, Study


def check_names(cells: Iterable[Cell]) -> None:
    """ConfigError if two cells are said by the same name: column "A / B", row "C", and column "A", row "B / C"."""
    if twice := [name for name, times in Counter(cell.name for cell in cells).items() if times > 1]:
        raise ConfigError(f"two cells are both named {twice[0]!r}. Take the slash out of the row's or column's name.")


def check_cell(cell: Cell) -> None:
    """ConfigError if a finished or failed cell was made with other settings than the study has now.

    Options of the engine that this version does not have any more are no difference. The kept file is only compared:
    no code that it names is imported.
    """
    kept = cell.path.with_suffix(".yaml")
    made = next((path for path in (cell.path, failures.place(cell)) if path.exists()), None)
    if made is None or not kept.exists():
        return
    before = read_config_file(kept)
    now = settings(cell.config())
    usual = settings(build([{path: value for path, value in now.items() if path.endswith(".name")}]))
    changed = [
        f"{path}: {before.get(path, usual[path])} → {value}"
        for path, value in now.items()
        if before.get(path, usual[path]) != value and not _adds_a_column(path, value)
    ]
    if changed:
        raise ConfigError(
            f"{made} was made with other settings ({'; '.join(changed)}). Remove it to run it again, or take "
            "the change back"
        )


def _adds_a_column(path: str, value: object) -> bool:
    """Whether an option's value gives rows a further column at most, and changes no other."""
    return path == "evaluation.auc" and value == "auto"


def check_data(cells: Sequence[Cell], chooses: Measure | None = None, key: str = "choose: measure") -> None:
    """Look once at each data set: what is missing is told before the first cell, and not by each of them.

    Cells whose workloads differ in options that follow the seed alone count as one, folds say.

    Args:
        chooses: the measure by which a row is chosen among several.
        key: the option or the key that names this measure.

    Raises:
        ConfigError: data of a cell is missing, cannot be split over the clients as asked, or gives no value by which
            to choose.
    """
    from raysim.engine.round_columns import expected, possible
    from raysim.running import preflight

    seen = set[str]()
    for cell in cells:
        config = cell.config()
        own = to_dict(config)["workload"]
        data = repr({option: own[option] for option in own if f"workload.{option}" not in cell.per_seed})
        if data in seen:
            continue
        seen.add(data)
        try:
            sketch = preflight.check_data(config)
        except RaysimError as error:
            raise ConfigError(f"{cell.name}: {error}") from error
        if chooses is not None and sketch is not None and possible(config) is not None:
            check_judged(key, chooses, cell.name, expected(config, sketch))


def check_measures(study: Study) -> None:
    """ConfigError for a measure that no cell can have by its settings: told before the cells' hours, not after them."""
    from raysim.engine.round_columns import possible

    first: dict[str, Cell] = {}
    for cell in study.cells():
        first.setdefault(cell.place, cell)  # no seed or fold changes the columns
    found = [(cell, possible(cell.config())) for cell in first.values()]
    if any(names is None for _, names in found):
        return
    columns = dict.fromkeys(name for _, names in found for name in names or ())
    asked = [*study.asked_for, *((f"rows: {row}: shows", measure) for (row, _), measure in study.shown.items())]
    _check_gains(study, asked)
    _check_costs(study, found)
    for key, measure in asked:
        if measure.column not in columns:
            raise ConfigError(
                f"{study.name}: {key}: {measure.name}: no cell is sure to have the column {measure.column}. Those "
                f"by the cells' settings: {', '.join(columns)}. Take it out, or set the option that asks for it "
                "(evaluation.auc: true for auc, say)."
            )


def _check_costs(study: Study, found: Sequence[tuple[Cell, tuple[str, ...] | None]]) -> None:
    """ConfigError for curves against a cost that a row will not have.

    Args:
        found: a cell of each column and row, and its table's columns by its settings.
    """
    wanted = study.curves
    if wanted is None:
        return
    for cell, names in found:
        row = study.choice.groups[cell.row][0] if study.choice else cell.row
        there = [name for name in AGAINST if COLUMNS[name].when in ("", "always") or name in (names or ())]
        if wanted.against not in there and (row in wanted.rows or not wanted.rows):
            raise without_costs(study.path, wanted, cell.place, there)


def _check_gains(study: Study, asked: Sequence[tuple[str, Measure]]) -> None:
    wanted = [f"{key}: {measure.name}" for key, measure in asked if measure.how == "gain"]
    alone = {cell.column for cell in study.cells() if cell.is_local} if wanted else set()
    if wanted and (without := [column for column in study.columns if column not in alone]):
        place = f" in column {without[0]}" if without[0] else ""
        raise ConfigError(
            f"{study.name}: {wanted[0]}: a client's gain is over what it reaches alone, and no row{place} "
            "has method local. Add one, Local: {method.name: local} say, or take the measure out."
        )
