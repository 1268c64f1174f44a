"""Tables of the pages are made of the rows in docs/results/, and every row belongs to one. Nothing is run."""

from __future__ import annotations

import csv
import re
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from benchmarks import published, study_cells, study_costs
from benchmarks.scaling import straight_line
from raysim.schedule import planned_intervals
from raysim.studies import study_file
from raysim.studies.checks import check_cell
from raysim.studies.study_file import Cell
from raysim.studies.tables import place_of_table, tables

DOCS = Path(__file__).resolve().parents[1] / "docs"
RESULTS = DOCS / "results"
STARTUP = RESULTS / "startup.csv"
MEMORY = RESULTS / "startup-memory.csv"
STEP = RESULTS / "step.csv"
SPECTRAL_COST = RESULTS / "spectral-cost.csv"
POPULATION = RESULTS / "population.csv"
ROUNDS = RESULTS / "rounds.csv"  # tests/benchmarks/test_rounds.py
CLIENT_TASKS = RESULTS / "fedssp-client-tasks.csv"
SCALING = RESULTS / "scaling.csv"
AUTHORS = RESULTS / "fedssp-authors.csv"
ARITHMETIC = RESULTS / "fedssp-arithmetic.csv"
METHOD_COST = RESULTS / "image-methods-cost.csv"
AGREEMENT = RESULTS / "agreement.csv"
CANARY_AUDIT = RESULTS / "canary-audit.csv"
ATTACK = RESULTS / "attack.csv"
STUDY_CELLS = RESULTS / "study-cells.csv"
STUDIES = sorted((DOCS / "studies").glob("*.yaml"))
MARKER = re.compile(r"<!-- table( [^:]+)?: written by raysim\.study -->")
read = cache(study_file.read)


@cache
def cells(path: Path) -> tuple[Cell, ...]:
    return tuple(read(path).cells())


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_the_table_on_the_page_is_made_of_the_rows(path: Path) -> None:
    study = read(path)
    before, after = place_of_table(study)
    shown = study.table.read_text(encoding="utf-8").removeprefix(before).removesuffix(after).strip()
    if shown or any(cell.path.exists() for cell in cells(path)):  # one that has not begun may leave its place empty
        assert shown == tables(study), f"write it again: python -m raysim.study {path} --table-only"


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_the_study_describes_its_rows(path: Path) -> None:
    """A cell's file has its settings, and the local epochs that are in every one of its rows."""
    assert cells(path)
    right: dict[tuple[str, str], set[str]] = {}  # column and row → kept settings that are right, but for the seed
    for cell in cells(path):
        config = cell.config()
        assert config.seed == cell.seed
        file = cell.path.with_suffix(".yaml")
        kept = file.read_text(encoding="utf-8").replace(f"\nseed: {cell.seed}\n", "\n") if file.exists() else ""
        known = right.setdefault((cell.column, cell.row), set())
        if cell.per_seed or kept not in known:
            check_cell(cell)  # that it can be run, too
            known.add(kept)
        if cell.path.exists():
            assert pd.read_csv(cell.path, usecols=["local_epochs"])["local_epochs"].tolist() == planned_intervals(
                config
            ), cell.path


def test_every_row_belongs_to_a_study() -> None:
    known = {cell.path for path in STUDIES for cell in cells(path)}
    others = {STARTUP, SPECTRAL_COST, POPULATION, CLIENT_TASKS, METHOD_COST, AGREEMENT, CANARY_AUDIT, ATTACK}
    others |= {AUTHORS, SCALING, STUDY_CELLS, ROUNDS}
    others |= {published.ROWS, study_costs.ROWS}
    others |= {
        RESULTS / name for name in ("forgeries.csv", "verified-runs.csv", "trust-cost.csv")
    }  # tests/test_trust_page.py
    others |= {STEP, MEMORY, ARITHMETIC, *RESULTS.glob("rounds-*.csv")}  # the last: tests/benchmarks/test_rounds.py
    others.add(RESULTS / "gpu.csv")  # tests/benchmarks/test_gpu.py
    others.add(RESULTS / "fedld-curvature.csv")  # tests/benchmarks/test_curvature.py
    others |= set(RESULTS.glob("contribution-*.csv"))  # tests/test_counterfactuals_page.py
    rows = set(RESULTS.rglob("*.csv")) - others
    there = {path.with_name(path.name.replace(".failed.csv", ".csv")) for path in rows}
    assert sorted(map(str, there - known)) == []
    assert {path.with_suffix(".csv") for path in RESULTS.rglob("*.yaml")} <= there


def test_the_start_of_a_run_is_what_the_benchmark_wrote() -> None:
    page, rows = (DOCS / "profile.md").read_text(encoding="utf-8"), pd.read_csv(STARTUP)
    stages = ("launching", "driver up", "data", "first step", "start to first step", "last round to exit", "whole run")
    for name in (*stages, "CPU, all", "ray.init alone"):
        values = [rows[rows["run"] == f"dashboard {kind}"][name] for kind in ("on", "off")]
        cells = [f"{own.median():.2f} ({own.min():.2f}, {own.max():.2f})" for own in values]
        assert f"| {name} | {' | '.join(cells)} |" in page


def test_the_memory_of_a_run_by_process_is_what_the_benchmark_wrote() -> None:
    page = (DOCS / "profile.md").read_text(encoding="utf-8")
    with MEMORY.open(newline="") as file:
        on, off = csv.DictReader(file)
    kinds = [kind for kind in on if kind not in ("run", "options")][:8]
    assert kinds[-1] == "all"
    assert "\n".join(f"| {kind} | {on[kind]} | {off[kind]} |" for kind in kinds) in page
    assert f"a run has {int(on['all']) - int(on['client actors'])} MiB" in " ".join(page.split())


def test_the_arithmetic_of_a_client_task_is_what_the_benchmark_wrote() -> None:
    page = (DOCS / "profile.md").read_text(encoding="utf-8")
    parts = ("gigaflop", "seconds_of_products", "million_draws", "seconds_of_draws", "seconds", "share")
    with ARITHMETIC.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["client"] in ("NCI1", "AIDS", "DHFR", "all")]
    assert len(rows) == 8
    for row in rows:
        name, hidden = row["client"].replace("all", "a round"), row["options"].rpartition("=")[2]
        assert f"| {hidden} | {name} | {' | '.join(row[part] for part in parts)} |" in page


def test_the_time_of_a_step_is_what_the_benchmark_wrote() -> None:
    with STEP.open(newline="") as file:
        lines = [f"| {' | '.join(row.values())} |" for row in csv.DictReader(file)]
    assert "\n".join(lines) in (DOCS / "profile.md").read_text(encoding="utf-8")


def test_the_cost_of_the_spectral_network_is_what_the_benchmark_wrote() -> None:
    page = (DOCS / "fedssp.md").read_text()
    for (name, size), forms in pd.read_csv(SPECTRAL_COST).groupby(["set", "batch_size"], sort=False):
        edges, *dense = forms.to_dict("records")
        cells = [f"{edges['epoch_seconds']:.1f} s, {edges['megabytes']:,} MB"]
        cells += [f"{form['ratio']:.1f}x, {form['megabytes']:,} MB" for form in dense]
        command = f"--batches {edges['batches']} --repeats {edges['repeats']}`) | " + " | ".join(cells)
        assert f"| {name}, {size} (`--sets {name} " in page and command in page


def test_the_sizes_of_a_population_are_what_the_benchmark_wrote() -> None:
    page = (DOCS / "scale.md").read_text(encoding="utf-8")
    for row in pd.read_csv(POPULATION).to_dict("records"):
        load, engine = f"{1000 * row['load_cpu_seconds']:.0f} ms", f"{row['engine_cpu_milliseconds']:.0f} ms"
        first, took = f"{row['first_round_after_seconds']} s", f"{row['round_milliseconds']:.0f} ms"
        cells = [f"{row['clients']:,}", f"{row['federation_kib']} KiB", load, engine, first, took]
        assert f"| {' | '.join(cells)} | {row['peak_mib']:,} MiB |" in page


def test_the_seconds_of_the_clients_of_fedssp_are_what_the_benchmark_wrote() -> None:
    page = (DOCS / "profile.md").read_text(encoding="utf-8")
    for group, rows in pd.read_csv(CLIENT_TASKS).groupby("options"):
        options = str(group)
        if "workload.setting=SM" in options:
            cells = [options.rpartition("=")[2], *(f"{float(seconds):.2f}" for seconds in rows["train_seconds"])]
            assert f"| {' | '.join(cells)} |" in page


def test_the_cost_of_a_call_is_what_the_benchmark_wrote() -> None:
    page, rows = (DOCS / "profile.md").read_text(encoding="utf-8"), pd.read_csv(SCALING)
    parts = [rows[f"{part}_milliseconds"] for part in ("processors", "driver")]
    assert all(" | ".join(f"{value:.0f}" for value in values) + " |" in page for values in parts)
    assert [round(straight_line(rows["size"].tolist(), values.tolist())[1]) for values in parts] == [8, 3]
    assert "costs 8 ms of processor time (the slope of the straight line), 3 of them" in page


def test_the_seconds_beside_those_of_the_authors_are_what_the_benchmark_wrote() -> None:
    page = (DOCS / "profile.md").read_text(encoding="utf-8")
    for options, rows in pd.read_csv(AUTHORS).groupby("options"):
        for who, column in (("raysim", "train_seconds"), ("authors", "train_seconds_beside")):
            cells = [str(options).rpartition("=")[2], who, *(f"{float(seconds):.2f}" for seconds in rows[column])]
            assert f"| {' | '.join(cells)} |" in page
        whole = rows[rows["client"] == "all"]["train_ratio"].item()
        assert f"{whole:.2f} of the authors' seconds" in " ".join(page.split())


def test_the_cost_of_the_methods_for_images_is_what_the_benchmark_wrote() -> None:
    page = (DOCS / "image-methods.md").read_text(encoding="utf-8")
    for row in pd.read_csv(METHOD_COST).to_dict("records"):
        assert f"| {row['row']} | {row['seconds_round']:.2f} | {row['ratio']:.2f} |" in page


def test_the_audit_of_privacy_is_what_the_benchmark_wrote() -> None:
    page = " ".join((DOCS / "privacy.md").read_text(encoding="utf-8").split())
    central, fifth, adaptive, sgd, plain = pd.read_csv(CANARY_AUDIT).to_dict("records")
    assert {row["claimed"] for row in (central, fifth, adaptive, sgd)} == {8.0} and "claim ε ≤ 8.00" in page
    found = (
        f"ε ≥ {central['found']:.2f} (central, all clients in every round), {fifth['found']:.2f} (a fifth of them), "
    )
    assert f"{found}{adaptive['found']:.2f} (adaptive bound) and {sgd['found']:.2f} (dp-sgd)" in page
    assert f"it found {plain['found']:.2f}, the most that its {plain['guesses']} guesses" in page


def test_the_counts_of_the_attack_are_what_the_command_wrote() -> None:
    page, rows = (DOCS / "faults.md").read_text(), pd.read_csv(ATTACK)
    table = [f"| {row['door']} | {row['tried']} | {row['held']} |" for row in rows.to_dict("records")]
    assert "\n".join(["| door | tried | held |", "|---|---|---|", *table]) in page


@pytest.mark.skipif(not STUDY_CELLS.exists(), reason="not measured since the benchmark has kept its rows")
def test_the_seconds_of_a_study_s_cells_are_what_the_benchmark_wrote() -> None:
    page = (DOCS.parent / "benchmarks" / "README.md").read_text(encoding="utf-8")
    with STUDY_CELLS.open(newline="") as file:
        assert study_cells.sentence(list(csv.DictReader(file))) in " ".join(page.split())


def test_the_published_benchmarks_on_the_page_are_what_the_command_wrote() -> None:
    page = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    with published.ROWS.open(newline="") as file:
        lines = [published.line(row) for row in csv.DictReader(file)]
    assert lines and "\n".join(lines) in page


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_every_table_of_a_page_has_a_study(page: Path) -> None:
    studies = [study for path in STUDIES if (study := read(path)).table == page]
    markers = [name.strip() for name in MARKER.findall(page.read_text(encoding="utf-8"))]
    assert sorted(markers) == sorted(study.name for study in studies) or (markers == [""] and len(studies) == 1)
