"""The tables that are made of measured values: means, differences over equal seeds, a paper's claims, and tests."""

from __future__ import annotations

import itertools

from raysim import units
from raysim.comparison import claims, paired_tests
from raysim.comparison.differences import paired, pairs
from raysim.comparison.outcomes import Outcomes, Pairing
from raysim.comparison.table import Entry, Head, Table
from raysim.results.measures import Measure

ABOUT_COSTS = (
    "Costs of an accuracy are means over the runs that reached it, whose number stands in parentheses; empty: none."
)
ABOUT_LOST = (
    "Seeds in which a run failed or did not reach an accuracy are in no pair, so that those that stay were chosen by "
    "their result: {}."
)
ABOUT_RESAMPLED = (
    "Every seed draws its test and training samples anew from the same ones, {:.3g} test samples for one of training, "
    "so that seeds share most of them: intervals are wider for it, by Nadeau and Bengio (2003)."
)


def tables(outcomes: Outcomes) -> list[Table]:
    """The tables of means, differences, a paper's claims and tests, as far as there is something in them."""
    made = [means(outcomes), differences(outcomes), claims.table(outcomes)]
    if outcomes.statistics:
        made.append(tests(outcomes))
    return [table for table in made if table.rows]


def means(outcomes: Outcomes) -> Table:
    """Mean ± sample standard deviation over seeds of every row in every column, with the number of runs behind it.

    The unit stands in the corner if all measures share it, else in each heading. A column that a paper has numbers for
    has them beside it.
    """
    rows, columns, measures = outcomes.rows, outcomes.columns, outcomes.measures
    marks = paired_tests.marks(outcomes.values, rows, columns, [*measures]) if outcomes.statistics else {}
    scales = {measure: outcomes.scale(measure) for measure in measures}
    symbols = {own.symbol for own in scales.values()}
    corner = symbols.pop() if len(symbols) == 1 else ""
    places = [(column, measure) for column in columns for measure in measures]
    printed = {(column, measure) for _, column, measure in outcomes.paper}
    heads, records = list[Head](), list[dict[str, object]]()
    for column, measure in places:
        unit = "" if corner else scales[measure].symbol
        heads.append(Head(column, measures[measure], unit))
        if (column, measure.name) in printed:
            heads.append(Head(column, f"{measures[measure]}, paper", unit))
    made = list[tuple[str, tuple[Entry, ...]]]()
    for row in rows:
        entries = list[Entry]()
        for column, measure in places:
            key = (row, column, measure.name)
            own, lost = [*outcomes.values.get(key, {}).values()], outcomes.failed.get((row, column), 0)
            count = f"({len(own)}, {lost} failed)" if lost else f"({len(own)})" if own else ""
            entries.append(Entry(scales[measure].text(own), marks.get(key, ""), count))
            if (column, measure.name) in printed:
                entries.append(Entry(outcomes.paper.get(key, "")))
            if own or lost:
                records.append(_record(outcomes, (row, column, measure), own, lost, marks.get(key, "")))
        made.append((row, tuple(entries)))
    notes = (paired_tests.ABOUT_MARKS,) if marks else ()
    return Table("", corner, tuple(heads), tuple(made), tuple(records), notes)


def _record(
    outcomes: Outcomes, place: tuple[str, str, Measure], own: list[float], lost: int, mark: str
) -> dict[str, object]:
    """One mean as computed from the runs' values; shares of one, bytes, seconds."""
    row, column, measure = place
    found: dict[str, object] = {"row": row, "column": column, "measure": measure.name, "runs": len(own), "failed": lost}
    found["mean"] = units.mean(own) if own else None
    found["std"] = units.deviation(own)
    if outcomes.statistics:
        found["mark"] = mark
    if outcomes.paper:
        found["paper, as printed"] = outcomes.paper.get((row, column, measure.name), "")
    return found


def differences(outcomes: Outcomes) -> Table:
    """The mean difference of each pair of rows over equal seeds with its 95 % interval."""
    scales = {pairing.measure: outcomes.scale_of_differences(pairing.measure) for pairing in outcomes.pairings}
    found: dict[str, dict[tuple[str, Measure], Entry]] = {}
    records = list[dict[str, object]]()
    for row, column, pairing, first, second in outcomes.compared():
        if (difference := paired(first, second, outcomes.resampled)) is None:
            continue
        unit, measure = scales[pairing.measure], pairing.measure
        texts = found.setdefault(f"{row} − {pairing.against}", {})
        texts[column, measure] = Entry(difference.text(unit.factor, unit.form))
        told = {"low": difference.low, "high": difference.high, "seeds": difference.seeds}
        records.append({**_pair(row, column, pairing), "difference": difference.mean, **told})
    there = {place for texts in found.values() for place in texts}
    places = [(column, measure) for column in outcomes.columns for measure in scales if (column, measure) in there]
    heads = tuple(Head(column, outcomes.heading(measure), scales[measure].symbol) for column, measure in places)
    rows = tuple((pair, tuple(texts.get(place, Entry()) for place in places)) for pair, texts in found.items())
    notes = [ABOUT_RESAMPLED.format(outcomes.resampled)] if rows and outcomes.resampled else []
    if lost := _in_no_pair(outcomes):
        notes.append(ABOUT_LOST.format("; ".join(lost)))
    return Table("differences", "difference [95 % interval]", heads, rows, tuple(records), tuple(notes))


def _in_no_pair(outcomes: Outcomes) -> list[str]:
    """The rows of which a seed has no value in a difference that is made all the same, each with their number."""
    runs, found = outcomes.runs(), dict[str, int]()
    for row, column, pairing, first, second in outcomes.compared():
        if not pairs(first, second):
            continue
        for name, values in ((row, first), (pairing.against, second)):
            there = {seed for one, where, seed in runs if (one, where) == (name, column)}
            failed = 0 if outcomes.chosen else outcomes.failed.get((name, column), 0)
            if lost := len(there - values.keys()) + failed:
                found[", ".join(filter(None, (name, column, outcomes.heading(pairing.measure))))] = lost
    return [f"{place} ({lost})" for place, lost in found.items()]


def tests(outcomes: Outcomes) -> Table:
    """The tests of all differences with two seeds or more."""
    found = [
        (row, column, pairing, result)
        for row, column, pairing, first, second in outcomes.compared()
        if (result := paired_tests.result_of(pairs(first, second))).t is not None
    ]
    students = paired_tests.holm([result.t for *_, result in found])
    ranks = paired_tests.holm([result.wilcoxon for *_, result in found])
    rows, records = list[tuple[str, tuple[Entry, ...]]](), list[dict[str, object]]()
    for (row, column, pairing, result), t, rank in zip(found, students, ranks, strict=True):
        of = ", ".join(filter(None, (column, outcomes.heading(pairing.measure))))
        texts = (of, _p(result.t), _p(t), _p(result.wilcoxon), _p(rank), _seeds(result.needed))
        rows.append((f"{row} − {pairing.against}", tuple(map(Entry, texts))))
        numbers = {"t p": result.t, "t Holm": t, "Wilcoxon p": result.wilcoxon, "Wilcoxon Holm": rank}
        records.append({**_pair(row, column, pairing), **numbers, "seeds needed": result.needed})
    heads = tuple(Head("", text) for text in ("of", "t: p", "Holm", "Wilcoxon: p", "Holm", "seeds"))
    return Table("tests", "difference", heads, tuple(rows), tuple(records), (paired_tests.ABOUT,))


def runs(outcomes: Outcomes) -> list[dict[str, object]]:
    """Every run with its values and, where it is known, the head of its proof, as lines of a CSV file."""
    found: dict[tuple[str, str, int], dict[str, object]] = {}
    for column, row in itertools.product(outcomes.columns, outcomes.rows):
        for measure in outcomes.measures:
            for seed, value in outcomes.values.get((row, column, measure.name), {}).items():
                place = {"row": row, "column": column, "seed": seed}
                found.setdefault((row, column, seed), place)[measure.name] = value
    for key, record in found.items():
        record["proof"] = outcomes.heads.get(key, "")
    return [*found.values()]


def _pair(row: str, column: str, pairing: Pairing) -> dict[str, object]:
    return {"row": row, "against": pairing.against, "column": column, "measure": pairing.measure.name}


def _p(value: float | None) -> str:
    if value is None:
        return ""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _seeds(needed: int | None) -> str:
    if needed is None:
        return ""
    return f"> {paired_tests.MOST_SEEDS:,}" if needed >= paired_tests.MOST_SEEDS else str(needed)
