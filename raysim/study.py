"""A table of runs: rows (methods) × columns (models, settings) × seeds, kept cell by cell.

``python -m raysim.study docs/studies/NAME.yaml`` runs the missing cells, one after another, and writes the table. A
finished cell is one small CSV, ``RESULTS/COLUMN/ROW-seedN.csv`` (the rounds table without timings), so that a long
table can grow over several sittings: a repeat skips what is there. A study file::

    title: FedRAD and its ablations on CIFAR-10
    results: ../results/fedrad-cifar10      # relative to the study file
    table: ../fedrad.md                     # the text between the two markers in it is replaced
    base:    {workload.name: cifar10, schedule.rounds: 40}
    columns: {CNN: {model.name: cnn}, MobileNet: {model.name: mobilenet, seeds: [0]}}
    rows:    {FedAvg: {method.name: fedavg}, Wei-Agg: {method.name: fedrad, method.aggregation: weighted}}
    seeds:   [0, 1, 2]
    measures: {accuracy: last round, best_accuracy: best round}
    picture: {path: a.png, columns: {CNN: CNN}, rows: [FedAvg], measures: {loss: test loss}, label: model}  # optional

A column may have seeds of its own, and a row settings that hold in one column: ``in: {CNN: {method.mu: 0.1}}``. Cells
run in the order column, seed, row, so that every prefix is a fair comparison.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim import study_picture
from raysim.config import RunConfig, build, differences, from_dict, to_yaml
from raysim.errors import ConfigError, RaysimError
from raysim.nearest import did_you_mean

if TYPE_CHECKING:
    import pandas as pd

BEGIN, END = "<!-- table: written by raysim.study -->", "<!-- end of table -->"
KEYS = ("title", "results", "table", "base", "columns", "rows", "seeds", "measures")


@dataclass(frozen=True)
class Cell:
    """One run of a study, and the file that keeps its result."""

    column: str
    row: str
    seed: int
    layers: tuple[Mapping[str, Any], ...]
    path: Path

    def config(self) -> RunConfig:
        return build([*self.layers, {"seed": self.seed}])


@dataclass(frozen=True)
class Study:
    """A study file, read."""

    name: str
    title: str
    results: Path
    table: Path
    base: Mapping[str, Any]
    columns: Mapping[str, Mapping[str, Any]]
    rows: Mapping[str, Mapping[str, Any]]
    seeds: tuple[int, ...]
    measures: Mapping[str, str]
    picture: study_picture.Picture | None

    def cells(self) -> Iterator[Cell]:
        for column, settings in self.columns.items():
            options = {key: value for key, value in settings.items() if key != "seeds"}
            for seed in settings.get("seeds", self.seeds):
                for row, method in self.rows.items():
                    own = method.get("in", {}).get(column, {})
                    plain = {key: value for key, value in method.items() if key != "in"}
                    path = self.results / _file_name(column) / f"{_file_name(row)}-seed{seed}.csv"
                    yield Cell(column, row, seed, (self.base, options, plain, own), path)


def read(path: Path) -> Study:
    """A study from its YAML file.

    Raises:
        ConfigError: it is no YAML, has a key that a study does not have, or one that is missing.
    """
    import yaml

    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML: {error}") from error
    if not isinstance(data, dict):
        raise ConfigError(f"{path} is no study: it must hold {', '.join(KEYS)}.")
    for key in data:
        if key not in (*KEYS, "picture"):
            hint = did_you_mean(key, (*KEYS, "picture"))
            raise ConfigError(f"{path}: unknown key {key}.{hint} A study has {', '.join(KEYS)}, and may have picture.")
    for row, settings in data.get("rows", {}).items():
        for column in settings.get("in", {}):
            if column not in data.get("columns", {}):
                known = ", ".join(data["columns"])
                raise ConfigError(
                    f"{path}: row {row} has settings in {column!r}, which is no column. Columns: {known}."
                )
    missing = [key for key in KEYS if key not in data]
    if missing:
        raise ConfigError(f"{path}: missing {', '.join(missing)}. A study has {', '.join(KEYS)}.")
    folder = path.parent
    return Study(
        path.stem,
        data["title"],
        (folder / data["results"]).resolve(),
        (folder / data["table"]).resolve(),
        data["base"],
        data["columns"],
        data["rows"],
        tuple(data["seeds"]),
        data["measures"],
        study_picture.read(data["picture"], path, list(data["rows"]), list(data["columns"]))
        if "picture" in data
        else None,
    )


def run_cell(cell: Cell) -> None:
    """Run a cell and keep its rounds table, without timings; the file appears only when the run is whole."""
    from raysim.results import comparable
    from raysim.simulation import run

    with tempfile.TemporaryDirectory() as folder:
        frame = comparable(run(replace(cell.config(), output=str(Path(folder) / "run"), pictures=False)).rounds)
    cell.path.parent.mkdir(parents=True, exist_ok=True)
    partial = cell.path.with_suffix(".partial")
    frame.to_csv(partial, index=False, float_format="%.6g")
    cell.path.with_suffix(".yaml").write_text(to_yaml(cell.config()), encoding="utf-8")
    partial.replace(cell.path)


def check_cell(cell: Cell) -> None:
    """ConfigError if a finished cell was made with other settings than the study has now."""
    import yaml

    kept = cell.path.with_suffix(".yaml")
    if cell.path.exists() and kept.exists():
        changed = differences(from_dict(yaml.safe_load(kept.read_text(encoding="utf-8"))), cell.config())
        if changed:
            raise ConfigError(
                f"{cell.path} was made with other settings ({'; '.join(changed)}). Remove it to run it again, or take "
                "the change back"
            )


def measure(frame: pd.DataFrame, name: str) -> float:
    """A number of a finished cell: a column's last value, or with ``best_`` before the name its largest, or with
    ``validated_`` its value in the (first) round with the best validation accuracy."""
    if name.startswith("best_"):
        return float(frame[name.removeprefix("best_")].max())
    if name.startswith("validated_"):
        judged = frame.dropna(subset=["validation_accuracy"])
        best = int(judged["validation_accuracy"].to_numpy().argmax())
        return float(judged[name.removeprefix("validated_")].iloc[best])
    return float(frame[name].dropna().iloc[-1])


def finished(study: Study, names: Iterable[str]) -> dict[tuple[str, str, str], list[float]]:
    """(row, column, measure) -> its values in the finished cells, in the order of seeds."""
    import pandas as pd

    found: dict[tuple[str, str, str], list[float]] = {}
    for cell in study.cells():
        if cell.path.exists():
            frame = pd.read_csv(cell.path)
            for name in names:
                if name.removeprefix("best_").removeprefix("validated_") in frame:
                    found.setdefault((cell.row, cell.column, name), []).append(measure(frame, name))
    return found


def table(study: Study) -> str:
    """The Markdown table of what is finished: mean ± standard deviation over seeds, in percent."""
    found = finished(study, study.measures)
    heads = [(column, name, text) for column in study.columns for name, text in study.measures.items()]
    lines = [
        "| % | " + " | ".join(f"{column}, {text}" for column, _, text in heads) + " |",
        "|---" * (len(heads) + 1) + "|",
    ]
    for row in study.rows:
        cells = [_number(found.get((row, column, name), [])) for column, name, _ in heads]
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write_table(study: Study) -> None:
    """Put the table between the markers of the study's page (a new page gets title and markers), and draw the picture.

    A page with tables of several studies names the study in each first marker: ``<!-- table NAME: written …``.
    """
    text = study.table.read_text(encoding="utf-8") if study.table.exists() else f"# {study.title}\n\n{BEGIN}\n{END}\n"
    named = BEGIN.replace("table:", f"table {study.name}:")
    begin = named if named in text else BEGIN
    if begin not in text or END not in text[text.index(begin) :]:
        raise ConfigError(f"{study.table} has no place for the table: add the lines {named} and {END}")
    start = text.index(begin) + len(begin)
    before, after = text[:start], text[text.index(END, start) :]
    study.table.write_text(f"{before}\n{table(study)}\n{after}", encoding="utf-8")
    if study.picture is not None:
        study_picture.draw(study.picture, finished(study, study.picture.measures), study.title)


def _number(values: Sequence[float]) -> str:
    import numpy as np

    if not values:
        return ""
    percent = 100 * np.array(values)
    spread = f" ± {percent.std(ddof=1):.2f}" if len(values) > 1 else ""
    return f"{percent.mean():.2f}{spread} ({len(values)})"


def _file_name(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; 0 unless a cell failed."""
    parser = argparse.ArgumentParser(prog="python -m raysim.study", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("study", type=Path, help="the study's YAML file")
    parser.add_argument("--table-only", action="store_true", help="run nothing, write the table of what is there")
    arguments = parser.parse_args(argv)
    try:
        study = read(arguments.study)
        cells = list(study.cells())
        missing = [cell for cell in cells if not cell.path.exists()]
        failed: list[str] = []
        for cell in cells:  # a mistake in the last row is told before the first cell's hours
            cell.config()
            check_cell(cell)
        print(f"{study.title}: {len(cells) - len(missing)} of {len(cells)} cells are there", flush=True)
        for cell in [] if arguments.table_only else missing:
            if cell.path.exists():  # made meanwhile by another process with the same study
                continue
            print(f"{cell.column} / {cell.row} / seed {cell.seed}", flush=True)
            try:
                run_cell(cell)
            except RaysimError as error:  # a row that diverges must not cost the rows after it
                failed.append(f"{cell.column} / {cell.row} / seed {cell.seed}: {error}")
                print(failed[-1], file=sys.stderr, flush=True)
            write_table(study)
        write_table(study)
        if failed:
            print("raysim: failed cells, which a repeat runs again:\n" + "\n".join(failed), file=sys.stderr)
            return 1
    except (RaysimError, OSError) as error:
        print(f"raysim: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("raysim: interrupted; finished cells are kept, a repeat goes on with the next", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
