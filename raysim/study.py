"""A table of runs: rows (methods) × columns (models, settings) × seeds, kept cell by cell.

``python -m raysim.study docs/studies/NAME.yaml`` runs the missing cells and writes the table. A
finished cell is one small CSV, ``RESULTS/COLUMN/ROW-seedN.csv`` (the rounds table without timings), so that a long
table can grow over several days: a repeat skips what is there. A cell that fails leaves ``ROW-seedN.failed.csv`` with
round and reason, which stand under the table; a repeat tries it again. A study file::

    title: FedRAD and its ablations on CIFAR-10
    results: ../results/fedrad-cifar10      # relative to the study file
    table: ../fedrad.md                     # the text between the two markers in it is replaced
    base:    {workload.name: cifar10, schedule.rounds: 40}
    columns: {CNN: {model.name: cnn}, MobileNet: {model.name: mobilenet, seeds: [0]}}
    rows:    {FedAvg: {method.name: fedavg}, Wei-Agg: {method.name: fedrad, method.aggregation: weighted}}
    seeds:   [0, 1, 2]
    per_seed: [workload.fold]  # optional: options whose value is the seed; here one fold of a cross-validation a seed
    grid:    {method: [fedavg, fedprox], mu: [0.01, 0.1]}  # in the place of rows: every combination is one
    choose:  {options: [mu], measure: validation_accuracy}  # optional, of a grid: the best value alone is in the table
    measures: {accuracy: last round, best_accuracy: best round}
    picture: {path: a.png, columns: {CNN: CNN}, rows: [FedAvg], measures: {loss: test loss}, label: model}  # optional
    latex: table.tex  # optional: the tables for a paper, with booktabs
    csv: table.csv  # optional: their numbers; beside it table-differences.csv, table-tests.csv and table-runs.csv
    curves: {path: [b.svg, b.pdf], measure: accuracy, against: round}  # optional; or virtual_seconds, bytes, joules …
    heat_map: {path: c.png, measure: accuracy, label: test accuracy}  # optional: the table as colored squares
    compare: [{rows: [FedRAD], against: FedAvg, measure: accuracy}]  # optional: differences; also columns: [CNN]
    statistics: true  # optional: tests of these differences, or of all rows less the first; the best rows marked
    resampled: {test: 1, training: 8, folds: 10}  # optional: seeds draw from the same samples; how many folds

Without ``columns`` there is one, without a name. An option that a combination's method, workload or model does not have
is left out of it (fedavg has no ``mu``), and combinations that are equal then are one row. In a shell, ``--grid
method=fedavg,fedprox --grid mu=0.01,0.1 --seeds 0-4 --output FOLDER --rounds 20`` writes such a file,
``FOLDER/study.yaml``, and runs it.

A measure is a column of the rounds table (its last value), or that behind ``best_``, ``validated_``, ``average_`` (the
mean of all judged rounds), ``tail_`` (the mean of the last ten) or ``spread_`` (their standard deviation), or before
``_at_epoch_40`` (once clients have trained for 40 local epochs) or ``_over_epochs_21_to_40`` (the mean over these), the
cost of an accuracy (``rounds_to_0.8``) or clients' gain over the row that trains alone (``local_gain``;
:mod:`raysim.results.measures`); a column that a method reports itself says its unit: ``system_loss: {title: system
loss, unit: plain}``. A column may have seeds of its own, and ``rows: [FedAvg]``, which alone have cells in it; a row
settings that hold in one column: ``in: {CNN: {method.mu: 0.1}}``, and it may show another measure in the place of one:
``shows: {accuracy: tuned_client_accuracy_mean}``. What its paper reports stands beside it: ``paper: {CNN: {accuracy:
81.2}}``, without columns ``paper: {accuracy: 81.2}``, in the unit of the table. ``compare`` adds a table of
differences: the mean of a row less another over equal seeds, with its 95 % interval
(:mod:`raysim.comparison.differences`); ``statistics`` tests them (:mod:`raysim.comparison.paired_tests`). A picture
with ``center: median`` shows the median seed in place of the mean, and curves with ``rows: [FedAvg]`` these rows alone.

Cells run side by side, each in a process of its own with one core (``--workers``), or each as a Ray task (``--cells-on
ray``), seed after seed, the longest first; a cell that was interrupted or killed goes on from its last checkpoint. A
file that says ``engine.backend: ray`` has its cells' clients on Ray, one cell after another. Several processes may run
one study: each takes cells that no other has claimed, and ends when all are there. ``--row FedRAD --column CNN --seeds
0-4`` runs the cells of these alone.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from raysim.config.answering import Answer, asks_for_json, concluded
from raysim.studies import command
from raysim.studies.whole_study import carry_out


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; 0 unless the study has a mistake (2) or a cell failed (1)."""

    def find() -> Answer:
        return carry_out(command.read(argv, (__doc__ or "").split("\n\n")[0]))

    return concluded("raysim", asks_for_json(argv), find)


if __name__ == "__main__":
    sys.exit(main())
