"""The same methods in raysim and in other programs: how far the models are apart after three rounds on the same data.

    git clone https://github.com/TsingZ0/PFLlib         # and the repositories that the files *_authors.py name
    pip install fluke-fl h5py cvxpy ujson
    python -m benchmarks.agreement --pfllib PFLlib --fluke --gcfl GCFL --fedstar FedStar --fedssp FedSSP \
        --qfedavg fair_flearn --ifca ifca --float64
    python -m benchmarks.agreement --float64           # the same beside plain float64 code, which needs nothing else

Both begin with the same values and take the same mini-batches in the same order, so that only rounding is left where
they compute the same. A program is run as it is, and again with the changes that make it the method of the paper, or
take a decision that raysim has taken differently (docs/agreement.md has the results). Differences are relative to the
largest value of a model. Ends with 1 if a method differs by more than 10⁻⁵ with the changes.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.agreement import (
    adafgl,
    fedssp_authors,
    float64,
    float64_stale,
    fluke_side,
    graph_authors,
    ifca_authors,
    pfllib,
    qfedavg_authors,
    subgraphs,
)
from benchmarks.agreement.case import Case, compared

FIELDS = ("method", "program", "as_it_is", "changed", "changes")
LIMIT = 1e-5
Row = Mapping[str, str]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("pfllib", "gcfl", "fedstar", "fedssp", "qfedavg", "ifca"):
        parser.add_argument(f"--{name}", type=Path, metavar="FOLDER", help="a checkout")
    parser.add_argument("--fluke", action="store_true", help="Fluke is installed")
    parser.add_argument("--float64", action="store_true", help="what others lack, beside plain float64 code")
    parser.add_argument("--csv", type=Path, help="write the table here")
    options = parser.parse_args()
    rows = []
    for program, case in chosen(options):
        found = compared(case)
        changes = "; ".join(change.why for change in case.changes)
        rows.append(
            dict(
                zip(
                    FIELDS,
                    (case.method, program, f"{found.unchanged:.0e}", f"{found.changed:.0e}", changes),
                    strict=True,
                )
            )
        )
        print(f"{case.method:12}{program:36}{found.unchanged:9.0e}{found.changed:9.0e}  {changes}", flush=True)
    if options.csv:
        with options.csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    return int(any(float(row["changed"]) > LIMIT for row in rows) or not rows)


def chosen(options: argparse.Namespace) -> Iterator[tuple[str, Case]]:
    """The cases of the programs that are there."""
    if options.pfllib:
        yield from (("PFLlib", case) for case in pfllib.cases(options.pfllib))
    if options.fluke:
        yield from (("Fluke", case) for case in fluke_side.cases())
    if options.gcfl and options.fedstar:
        yield from (("authors", case) for case in graph_authors.cases(options.gcfl, options.fedstar))
    for name, module in (("fedssp", fedssp_authors), ("qfedavg", qfedavg_authors), ("ifca", ifca_authors)):
        if folder := getattr(options, name):
            yield from (("authors", case) for case in module.cases(folder))
    if options.float64:
        for part in (float64_stale, float64, subgraphs, adafgl):
            yield from ((f"float64: {words}", case) for words, case in part.cases())


def table(rows: Sequence[Row]) -> list[str]:
    """The rows as a table in Markdown."""
    lines = ["| method | program | as it is | changed | what is changed there |", "|---|---|---|---|---|"]
    for row in rows:
        changed = row["changed"] if row["changes"] else ""
        lines.append(f"| `{row['method']}` | {row['program']} | {row['as_it_is']} | {changed} | {row['changes']} |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
