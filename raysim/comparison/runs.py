"""Runs side by side, without a study file: the tables that a study of them would have."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from raysim import units
from raysim.comparison import building, csv_files, latex, markdown
from raysim.comparison.accuracies import about_mixed, comparable, is_by_clients, mixed
from raysim.comparison.outcomes import HEAD, Heads, Outcomes, Pairing, lines_of_heads
from raysim.comparison.settings import SEED, Setting, group, one_line
from raysim.comparison.table import Page
from raysim.config.nearest import did_you_mean
from raysim.errors import ConfigError
from raysim.results.measures import Measure, find
from raysim.results.result import RunResult, kept_rows, load_result
from raysim.storage.atomic_files import write_atomically
from raysim.storage.run_record import is_synthetic, part_name
from raysim.workloads.naming import synthetic_mark

if TYPE_CHECKING:
    from pandas import DataFrame

USUAL = ("accuracy", "client_accuracy_mean", "loss")
"""Measures of which the first that was measured counts unless the user names others."""


@dataclass(frozen=True)
class Comparison:
    """Several runs side by side: rows are settings, columns their data; runs of equal seeds are pairs."""

    settings: tuple[Setting, ...]
    outcomes: Outcomes
    page: Page
    """Tables of means, differences and tests, with notes and the heads of the runs' proofs."""

    @property
    def markdown(self) -> str:
        """The tables as Markdown."""
        return markdown.page(self.page)

    @property
    def latex(self) -> str:
        """The tables as LaTeX, with booktabs."""
        return latex.page(self.page, "comparison")

    def write(self, path: str | Path) -> list[Path]:
        """Write the tables: ``.md``, ``.tex``, or ``.csv`` (further tables and all runs beside it).

        Raises:
            ConfigError: the name ends otherwise.
            ResultsError: it cannot be written.
        """
        target = Path(path)
        if target.suffix == ".csv":
            return csv_files.write(target, self.page)
        texts = {".md": f"# {markdown.as_text(self.page.title)}\n\n{self.markdown}\n", ".tex": self.latex}
        if target.suffix not in texts:
            raise ConfigError(f"{target}: not allowed. Allowed: a name that ends in .md, .tex or .csv.")
        write_atomically(target, texts[target.suffix].encode())
        return [target]

    def __str__(self) -> str:
        return self.markdown

    _repr_markdown_ = __str__


def compare(
    runs: Iterable[RunResult | str | Path],
    measures: Sequence[str] = (),
    *,
    against: str | None = None,
    command: str = "",
) -> Comparison:
    """Compare finished runs: mean ± std of each setting, paired differences with intervals, and their tests.

    Args:
        runs: results of :func:`raysim.run`, or run folders.
        measures: columns of the rounds table and what else a study's table may have (``best_accuracy``,
            ``rounds_to_0.8``, ``bytes_to_0.8``, ``local_gain``: :mod:`raysim.results.measures`); empty: the first of
            :data:`USUAL` that one of the runs measured.
        against: the row that the others are compared with; None: the first.
        command: the line that makes the tables again, which stands under them.

    Raises:
        ConfigError: there is no such measure or row, or no run has a value of the measure.
        ResultsError: a folder holds no run.
    """
    results = [run if isinstance(run, RunResult) else load_result(Path(run)) for run in runs]
    if not results:
        raise ConfigError("there is no run to compare. Name run folders, or give results of raysim.run.")
    settings = group(results)
    known = [find(name) for name in measures or _usual(results)]
    outcomes = _outcomes(results, settings, known, against)
    made = Page(
        outcomes.title,
        tuple(building.tables(outcomes)) if known else (),
        tuple(_notes(results, settings, outcomes)),
        tuple(building.runs(outcomes)),
        (*([f"Made by `{command}`."] if command else ()), *lines_of_heads(outcomes)),
    )
    return Comparison(tuple(settings), outcomes, made)


def _usual(results: Sequence[RunResult]) -> list[str]:
    """The measure by which runs are compared unless the user names some; none if they measured nothing yet."""
    return [name for name in USUAL if any(find(name).of(result.rounds) is not None for result in results)][:1]


def _outcomes(
    results: Sequence[RunResult], settings: Sequence[Setting], measures: Sequence[Measure], against: str | None
) -> Outcomes:
    """The measured values of all settings, to be compared with one of them."""
    rows = tuple(dict.fromkeys(setting.row for setting in settings))
    baseline = rows[0] if against is None else against
    if baseline not in rows:
        raise ConfigError(f"no row {against!r}.{did_you_mean(baseline, rows)} There are {', '.join(rows)}.")
    others = tuple(row for row in rows if row != baseline)
    values, heads = dict[tuple[str, str, str], dict[int, float]](), dict[tuple[str, str, int], str]()
    alone_on = {column: _alone(settings, column) for column in dict.fromkeys(own.column for own in settings)}
    others_numbers = itertools.count(-1, -1)
    for setting in settings:
        alone = alone_on[setting.column]
        for run in setting.runs:
            seed, rounds, local = _number(run, others_numbers), _kept(run), alone.get(str(run.config.get(SEED)))
            for measure in measures:
                if (value := measure.of(rounds, local)) is not None:
                    values.setdefault((setting.row, setting.column, measure.name), {})[seed] = value
            if HEAD.fullmatch(head := str(run.summary.get("proof", ""))):
                heads[setting.row, setting.column, seed] = head
    for measure in measures:
        if not any(name == measure.name for _, _, name in values):
            raise ConfigError(_missing(measure))
    return Outcomes(
        _title(results, len(settings)),
        rows,
        tuple(alone_on),
        {measure: measure.name.replace("_", " ") for measure in measures},
        values,
        tuple(Pairing(others, baseline, measure) for measure in measures if measure.best and others),
        statistics=True,
        heads=_ordered(heads, rows, [*alone_on]),
    )


def _ordered(heads: Heads, rows: Sequence[str], columns: Sequence[str]) -> Heads:
    """The heads in the order in which a study's are."""
    return {
        key: heads[key] for key in sorted(heads, key=lambda key: (columns.index(key[1]), key[2], rows.index(key[0])))
    }


def _alone(settings: Sequence[Setting], column: str) -> dict[str, DataFrame]:
    """Seed → the rounds table of the run on the same data whose clients train alone."""
    local = next((setting for setting in settings if setting.is_local and setting.column == column), None)
    return {} if local is None else dict(zip(local.seeds, map(_kept, local.runs), strict=True))


def _kept(run: RunResult) -> DataFrame:
    """The rounds as a study keeps them, so that both have the same numbers to the last digit."""
    from pandas import read_csv

    return run.rounds if run.rounds.empty else read_csv(io.StringIO(kept_rows(run.rounds)))


def _number(run: RunResult, others: Iterator[int]) -> int:
    """The seed of a run; a foreign folder without one gets a number that no other has, and so pairs with none."""
    seed = run.config.get(SEED)
    return seed if isinstance(seed, int) else next(others)


def _missing(measure: Measure) -> str:
    if measure.how == "gain":
        return (
            f"no run has a value of {measure.name}: it is a gain over runs of --method local on the same data with the "
            "same seeds, which must be among the runs; all need --each_client true, and a round in which both were "
            "judged."
        )
    if measure.how == "validated":
        return (
            f"no run has a value of {measure.name}: it is that of the round with the best validation_accuracy, which "
            "needs classes and --validation_share 0.2, say. Leave it out, or compare other runs."
        )
    around = " before and after those local epochs" if measure.how == "epochs" else ""
    why = "no run reached it" if measure.how == "cost" else f"no run measured {measure.column}{around}"
    return f"no run has a value of {measure.name}: {why}. Leave it out, or compare other runs."


def _title(results: Sequence[RunResult], settings: int) -> str:
    kinds = {is_synthetic(result.config, result.summary) for result in results}
    what = f" of {units.counted(settings, 'setting')}" if settings < len(results) else ""
    return f"Comparison of {len(results)} runs{what}{synthetic_mark(True in kinds, partly=len(kinds) > 1)}"


def _workload(run: RunResult) -> tuple[str, str]:
    """Name and ``local_test`` of its workload."""
    own = run.config["workload"]
    return str(own["name"]), str(own.get("local_test", ""))


def _notes(results: Sequence[RunResult], settings: Sequence[Setting], outcomes: Outcomes) -> list[str]:
    """Notes that a reader needs before the figures are compared."""
    notes = []
    workloads = sorted({part_name("workload", result.config, result.summary) for result in results})
    if len(workloads) > 1:
        named = one_line(", ".join(workloads))
        notes.append(f"The runs have different workloads ({named}): their accuracies do not compare.")
    lengths = sorted({len(result.rounds) for result in results})
    if len(lengths) > 1:
        notes.append(f"The runs have {', '.join(map(str, lengths))} rounds: their last values do not compare.")
    unfinished = [one_line(run.folder.name) for own in settings for run in own.runs if not run.summary]
    if unfinished:
        notes.append(
            f"Not ended (no summary.json), and compared by the rounds that they have: {', '.join(unfinished)}."
        )
    by_clients = mixed({own.label: all(is_by_clients(run.rounds) for run in own.runs) for own in settings})
    accuracies = any(measure.column == "accuracy" for measure in outcomes.measures)
    if by_clients and accuracies and not comparable({_workload(run) for run in results}):
        notes.append(about_mixed(by_clients))
    repeated = [one_line(run.folder.name) for setting in settings for run in setting.repeated]
    if repeated:
        notes.append(f"Not counted, as another run has the same settings and seed: {', '.join(repeated)}.")
    if any(measure.how == "gain" for measure in outcomes.measures):
        alone = [setting for setting in settings if setting.is_local]
        for column in outcomes.columns:
            own = [setting.label for setting in alone if setting.column == column]
            if len(own) > 1:
                notes.append(f"Gains are over {own[0]}, the first setting of method local on its data.")
    if any(measure.how == "cost" for measure in outcomes.measures):
        notes.append(building.ABOUT_COSTS)
    return notes
