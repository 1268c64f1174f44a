"""Pages are readable and true: tables are made of rows in docs/results/, links and commands work. Nothing is run."""

from __future__ import annotations

import csv
import dataclasses
import re
import shlex
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
import yaml

import raysim
from benchmarks import published, study_costs
from raysim.__main__ import main
from raysim.config.command_line import parse
from raysim.flat_model import FlatModel
from raysim.method import ClientTask, Context, Traits, Updates
from raysim.running.preflight import FUNCTIONS
from raysim.schedule import planned_intervals
from raysim.studies import study_file
from raysim.studies.checks import check_cell
from raysim.studies.study_file import Cell
from raysim.studies.tables import finished, place_of_table, tables
from raysim.training import gradients, local_sgd
from raysim.workloads.federated_data import ClientData

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
STARTUP = DOCS / "results" / "startup.csv"
SPECTRAL_COST = DOCS / "results" / "spectral-cost.csv"
POPULATION = DOCS / "results" / "population.csv"
CLIENT_TASKS = DOCS / "results" / "fedssp-client-tasks.csv"
METHOD_COST = DOCS / "results" / "image-methods-cost.csv"
AGREEMENT = DOCS / "results" / "agreement.csv"
CANARY_AUDIT = DOCS / "results" / "canary-audit.csv"
ATTACK = DOCS / "results" / "attack.csv"
STUDIES = sorted((DOCS / "studies").glob("*.yaml"))
PAGES = sorted((*ROOT.glob("*.md"), *DOCS.glob("*.md"), *(ROOT / "benchmarks").glob("*.md")))
LINK = re.compile(r"\]\(([^)\s]+)\)")
MODULE_LINK = re.compile(r"\[`?([\w./]+\.py)`?\]\(([^)#\s]+)")
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
MARKER = re.compile(r"<!-- table( [^:]+)?: written by raysim\.study -->")
read = cache(study_file.read)


@cache
def cells(path: Path) -> tuple[Cell, ...]:
    return tuple(read(path).cells())


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_the_table_on_the_page_is_made_of_the_rows(path: Path) -> None:
    study = read(path)
    found, (before, after) = finished(study, study.measures), place_of_table(study)
    shown = study.table.read_text(encoding="utf-8").removeprefix(before).removesuffix(after).strip()
    if found or shown:  # a study that has not begun may leave its place empty
        assert shown == tables(study), f"write it again: python -m raysim.study {path} --table-only"


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_the_study_describes_its_rows(path: Path) -> None:
    """What a cell's file says of its settings, and the local epochs that are in every one of its rows."""
    assert cells(path)
    for cell in cells(path):
        config = cell.config()
        assert config.seed == cell.seed
        check_cell(cell)  # that it can be run, too
        if cell.path.exists():
            assert pd.read_csv(cell.path)["local_epochs"].tolist() == planned_intervals(config), cell.path


def test_every_row_belongs_to_a_study() -> None:
    known = {cell.path for path in STUDIES for cell in cells(path)}
    others = {SPECTRAL_COST, METHOD_COST, AGREEMENT, CANARY_AUDIT, ATTACK, published.ROWS, study_costs.ROWS}
    others |= {DOCS / "results" / name for name in ("forgeries.csv", "verified-runs.csv")}  # tests/test_trust_page.py
    others |= {POPULATION, CLIENT_TASKS}
    others.add(STARTUP)
    others.add(DOCS / "results" / "fedld-curvature.csv")  # tests/benchmarks/test_curvature.py
    others |= set((DOCS / "results").glob("contribution-*.csv"))  # tests/test_counterfactuals_page.py
    rows = set((DOCS / "results").rglob("*.csv")) - others
    there = {path.with_name(path.name.replace(".failed.csv", ".csv")) for path in rows}
    assert sorted(map(str, there - known)) == []
    assert {path.with_suffix(".csv") for path in (DOCS / "results").rglob("*.yaml")} <= there


def test_the_start_of_a_run_is_what_the_benchmark_wrote() -> None:
    page, rows = (DOCS / "profile.md").read_text(encoding="utf-8"), pd.read_csv(STARTUP)
    for name in ("start to first step", "last round to exit", "CPU, all", "ray.init alone"):
        values = [rows[rows["run"] == f"dashboard {kind}"][name] for kind in ("on", "off")]
        cells = [f"{own.median():.2f} ({own.min():.2f}, {own.max():.2f})" for own in values]
        assert f"| {name} | {' | '.join(cells)} |" in page


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


def test_the_cost_of_the_methods_for_images_is_what_the_benchmark_wrote() -> None:
    page = (DOCS / "image-methods.md").read_text(encoding="utf-8")
    for row in pd.read_csv(METHOD_COST).to_dict("records"):
        assert f"| {row['row']} | {row['seconds_round']:.2f} | {row['ratio']:.2f} |" in page


def test_the_audit_of_privacy_is_what_the_benchmark_wrote() -> None:
    page = " ".join((DOCS / "wrappers.md").read_text(encoding="utf-8").split())
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


def prose_of(page: Path) -> str:
    """A page without its code blocks, which keep their number of lines."""
    text = page.read_text(encoding="utf-8")
    return CODE.sub(lambda block: "\n" * block.group().count("\n"), text)


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives a page's headings."""
    headings = re.findall(r"^#+ (.*)$", prose_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_lines_outside_tables_and_code_have_at_most_120_columns(page: Path) -> None:
    lines = enumerate(prose_of(page).splitlines(), start=1)
    assert [number for number, line in lines if len(line) > 120 and not line.startswith("|")] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in LINK.findall(prose_of(page)):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    renamed = [name for name, path in MODULE_LINK.findall(prose_of(page)) if Path(name).name != Path(path).name]
    assert broken == [] and renamed == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_that_start_a_run_have_options_that_exist(page: Path) -> None:
    """Every ``python -m raysim.launch`` of a code block is a command line that would be accepted; none is elsewhere."""
    assert re.findall(r"^    (?:python -m )?raysim.*", prose_of(page), re.MULTILINE) == []
    for block in CODE.findall(page.read_text(encoding="utf-8")):
        for line in block.replace("\\\n", " ").splitlines():
            _, found, command = line.partition("python -m raysim.launch ")
            words = shlex.split(command, comments=True)
            if found and not any("NAME" in word or "mine" in word or word.startswith("--resume") for word in words):
                parse([*words, "--print-config"])


def test_commands_about_finished_runs_have_options_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    """Every option that a page gives to one of these commands stands in its help; ``raysim --…`` starts a run."""
    known = {
        name: options_of(name, capsys) for name in ("report", "verify", "replay", "contribution", "evaluate", "data")
    }
    found = set()
    for page in PAGES:
        for line in "".join(CODE.findall(page.read_text(encoding="utf-8"))).replace("\\\n", " ").splitlines():
            if line.startswith("raysim --"):
                parse([*shlex.split(line, comments=True)[1:], "--print-config"])
            if command := re.match(r"(?:python -m raysim\.|raysim )(\w+) ", line):
                name, words = command[1], shlex.split(line, comments=True)
                options = {word.partition("=")[0] for word in words if word.startswith("--")}
                found.add(name)
                assert options <= known.get(name, options), f"{page.name}: {line}"
    assert found >= known.keys()


def options_of(command: str, capsys: pytest.CaptureFixture[str]) -> set[str]:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    return set(re.findall(r"--[\w-]+", capsys.readouterr().out))


def test_no_module_has_more_than_300_lines() -> None:
    modules = [
        path for room in ("raysim", "actors", "aggregators", "workloads") for path in (ROOT / room).rglob("*.py")
    ]
    assert len(modules) > 250
    assert [str(path) for path in modules if len(path.read_text(encoding="utf-8").splitlines()) > 300] == []


def test_the_readme_is_a_short_page() -> None:
    """Details belong to docs/; commands, code and reasons come before the pictures and pages below them."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 120 and lines.index("## First steps") <= 70


def test_figures_of_the_readme_stand_on_their_pages() -> None:
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    trust, speed = DOCS / "trust.md", ROOT / "benchmarks" / "README.md"
    assert "1000 of 1000 forged" in readme and "| forgery | 1000 | 1000 |" in trust.read_text(encoding="utf-8")
    assert "1167 of 1167 honest" in readme and "| honest | 1167 | 1167 |" in trust.read_text(encoding="utf-8")
    rows = pd.read_csv(AGREEMENT).query("not program.str.startswith('float64')")
    equal = rows[rows["changed"].fillna(rows["as_it_is"]) < 1e-6]
    assert f"{equal['method'].nunique()} of them give the numbers" in readme and len(equal) == len(rows)
    text = speed.read_text(encoding="utf-8")
    cells = [line.split("|") for line in text.splitlines() if re.match(r"\| W\d.*\dx", line)][:3]
    ratios = [[re.findall(r"([\d.]+)x", row[column])[0] for row in cells] for column in (3, 4, 5)]
    flower, pfl, ours = ("{}, {} and {}".format(*own) for own in ratios)
    assert f"takes {ours} times" in readme and f"Flower takes {flower} times" in readme
    assert f"pfl-research {pfl} (" in readme


def test_the_architecture_names_every_room_and_no_file_that_is_gone() -> None:
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    rooms = {
        f"raysim/{path.parent.name}/"
        for path in (ROOT / "raysim").glob("*/__init__.py")
        if not path.parent.is_symlink()
    }
    rooms |= {f"{name}/" for name in ("actors", "aggregators", "examples", "raysim", "tests", "workloads")}
    named = set(re.findall(r"`([\w/.]+(?:/|\.py))`", text))
    assert rooms <= named
    gone = [
        name
        for name in named
        if not any((ROOT / start / name).exists() for start in ("", "raysim", "workloads/models"))
    ]
    assert gone == []


def test_hooks_before_a_commit_are_commands_of_the_environment() -> None:
    """Nothing is fetched from elsewhere, and every command is one that the extra ``check`` installs."""
    found = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    tools = {re.split(r"\W*[<>=]", name)[0] for name in project["optional-dependencies"]["check"]}
    package = {"lint-imports": "import-linter"}
    for repository in found["repos"]:
        assert repository["repo"] == "local"
        for hook in repository["hooks"]:
            command = hook["entry"].split()[0]
            assert hook["language"] == "system" and package.get(command, command) in tools


def test_the_page_on_own_methods_names_what_the_contract_has() -> None:
    """Names of attributes on the page exist, and every trait and function of a method is on it."""
    text = (DOCS / "methods-of-your-own.md").read_text(encoding="utf-8")
    model = FlatModel(torch.nn.Linear(1, 1), ["weight", "bias"])
    owners = {"model": dir(model), "updates": dir(Updates) + names_of(Updates), "context": dir(Context)}
    owners |= {"task": dir(ClientTask) + names_of(ClientTask), "data": dir(ClientData) + names_of(ClientData)}
    owners |= {"local_sgd": dir(local_sgd), "gradients": dir(gradients), "raysim": dir(raysim)}
    owners["context"] += names_of(Context)
    named = re.findall(rf"\b({'|'.join(owners)})\.(\w+)", prose_of(DOCS / "methods-of-your-own.md").replace(".md", ""))
    assert len(named) > 40
    assert [
        f"{owner}.{name}" for owner, name in named if name not in owners[owner] and name not in ("launch", "py")
    ] == []
    for name in names_of(Traits):
        assert f"| `{name}` |" in text, f"the table of traits lacks {name}"
    for name in FUNCTIONS["method"]:
        assert f"| `{name}(" in text, f"the table of functions lacks {name}"


def names_of(kind: type[Any]) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)]
