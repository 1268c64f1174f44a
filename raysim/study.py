"""A table of runs: rows (methods) × columns (models, settings) × seeds, kept cell by cell.

``python -m raysim.study docs/studies/NAME.yaml`` runs the missing cells, one after another, and writes the table. A
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
    grid:    {method: [fedavg, fedprox], mu: [0.01, 0.1]}  # in the place of rows: every combination is one
    measures: {accuracy: last round, best_accuracy: best round}
    picture: {path: a.png, columns: {CNN: CNN}, rows: [FedAvg], measures: {loss: test loss}, label: model}  # optional
    curves: {path: b.png, measure: accuracy, against: virtual_seconds}  # optional; or round, bytes, bytes_up, joules
    heat_map: {path: c.png, measure: accuracy, label: test accuracy}  # optional: the table as colored squares
    compare: [{rows: [FedRAD], against: FedAvg, measure: accuracy}]  # optional: differences; also columns: [CNN]

Without ``columns`` there is one, without a name. An option that a combination's method, workload or model does not have
is left out of it (fedavg has no ``mu``), and combinations that are equal then are one row. In a shell, ``--grid
method=fedavg,fedprox --grid mu=0.01,0.1 --seeds 0-4 --output FOLDER --rounds 20`` writes such a file,
``FOLDER/study.yaml``, and runs it.

A measure is a column of the rounds table (its last value), or that behind ``best_`` or ``validated_``
(:mod:`raysim.report.measures`); a column that a method reports itself says its unit:
``system_loss: {title: system loss, unit: plain}``. A column may have seeds of its own, and a row settings that hold in
one column: ``in: {CNN: {method.mu: 0.1}}``, and show another measure in the place of one:
``shows: {accuracy: tuned_client_accuracy_mean}``. Cells run in the order column, seed, row, so that every prefix is a
fair comparison. ``compare`` adds a table of differences: the mean of a row less another over equal seeds, with its 95 %
interval (:mod:`raysim.studies.differences`).

Several processes may run one study: each takes cells that no other has claimed, and ends when all are there.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from raysim.config.config_file import read_config_file
from raysim.config.run_config import build, settings, to_yaml
from raysim.errors import FAILED, FINISHED, REFUSED, STOPPED, ConfigError, RaysimError
from raysim.storage.atomic_files import write_atomically
from raysim.storage.claims import SECONDS, claimant, claimed
from raysim.storage.complaint import complain
from raysim.studies import command, failures
from raysim.studies.study_file import Cell, Study, read
from raysim.studies.tables import finished, place_of_table, unmeasured, write_table


def run_cell(cell: Cell) -> None:
    """Run a cell and keep its rounds table, without timings; the file appears only when the run is whole.

    A run that ends with an error leaves the row of its failure instead, which a later success takes away.
    """
    from raysim.results.result import comparable
    from raysim.running.simulation import run

    with tempfile.TemporaryDirectory() as folder:
        config = replace(cell.config(), output=str(Path(folder) / "run"), pictures=False)
        try:
            frame = comparable(run(config).rounds)
        except RaysimError as error:
            _keep_settings(cell)
            failures.keep(cell, Path(config.output), error)
            raise
    _keep_settings(cell)
    write_atomically(cell.path, frame.to_csv(index=False, float_format="%.6g").encode())
    failures.place(cell).unlink(missing_ok=True)


def _keep_settings(cell: Cell) -> None:
    """Write a cell's settings beside the place of its row, so that a later change of the study is noticed."""
    cell.path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(cell.path.with_suffix(".yaml"), to_yaml(cell.config()).encode())


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


def check_measures(study: Study) -> None:
    """ConfigError for a measure that no cell can have by its settings: told before the cells' hours, not after them."""
    from raysim.engine.round_columns import possible

    found = [possible(cell.config()) for cell in study.cells()]
    if None in found:
        return
    columns = dict.fromkeys(name for names in found for name in names or ())
    for measure in (*study.measures, *study.shown.values()):
        if measure.column not in columns:
            raise ConfigError(
                f"{study.name}: measures: {measure.name}: no cell is sure to have the column {measure.column}. Those "
                f"by the cells' settings: {', '.join(columns)}. Take it out, or set the option that asks for it "
                "(evaluation.auc: true for auc, say)."
            )


def run_missing(study: Study, missing: Sequence[Cell]) -> list[str]:
    """Run the cells that are not there, each once whatever the number of processes with this study; those that failed.

    A cell that another process has claimed is left to it, and waited for once there is no other; if that process dies,
    this one takes the cell over.
    """
    failed, known = list[str](), {cell.path: failures.made_at(cell) for cell in missing}
    told, waiting = False, list(missing)
    while waiting:
        elsewhere: list[Cell] = []
        for cell in waiting:
            with claimed(cell.path) as mine:
                if not mine:
                    elsewhere.append(cell)
                    continue
                if cell.path.exists():
                    continue
                if failures.made_at(cell) != known[cell.path]:
                    failed.append(f"{cell.name}: it failed in another process")
                    continue
                print(cell.name, flush=True)
                try:
                    run_cell(cell)
                except RaysimError as error:  # a row that diverges must not cost the rows after it
                    failed.append(f"{cell.name}: {error}")
                    print(failed[-1], file=sys.stderr, flush=True)
            write_table(study)
        if elsewhere and len(elsewhere) == len(waiting):
            if not told:
                print(f"waits for {_others(elsewhere)}; Ctrl-C ends this process alone", flush=True)
            told = True
            time.sleep(SECONDS)
        waiting = elsewhere
    return failed


def _others(cells: Sequence[Cell]) -> str:
    more = f" and {len(cells) - 1} more" if len(cells) > 1 else ""
    return f"{cells[0].name}{more}, at which {claimant(cells[0].path)} is at work"


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; 0 unless the study has a mistake (2) or a cell failed (1)."""
    try:
        arguments = command.read(argv, (__doc__ or "").split("\n\n")[0])
        study = read(arguments.study, arguments.trusted)
        for note in study.notes:
            print(f"note: {note}", file=sys.stderr)
        cells = list(study.cells())
        for cell in cells:
            check_cell(cell)
        missing = [cell for cell in cells if not cell.path.exists()]
        lost = f", {count} failed" if (count := len(failures.failures(study))) else ""
        print(f"{study.title}: {len(cells) - len(missing)} of {len(cells)} cells are there{lost}", flush=True)
        place_of_table(study)
        if missing and not arguments.table_only:
            check_measures(study)
    except (RaysimError, OSError) as error:
        complain(error)
        return REFUSED
    try:
        failed = [] if arguments.table_only else run_missing(study, missing)
        write_table(study)
    except (RaysimError, OSError) as error:
        complain(error)
        return FAILED
    except KeyboardInterrupt:
        print("raysim: interrupted; finished cells are kept, a repeat goes on with the next", file=sys.stderr)
        return STOPPED
    for name in unmeasured(study, finished(study, study.measures)):
        print(
            f"raysim: no finished cell has a value of {name}; does a method report it, or an option ask for it?",
            file=sys.stderr,
        )
    if failed:
        print("raysim: failed cells, which a repeat runs again:\n" + "\n".join(failed), file=sys.stderr)
        return FAILED
    return FINISHED


if __name__ == "__main__":
    sys.exit(main())
