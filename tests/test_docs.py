"""Pages are readable and true: links, commands and names are those of the repository. Nothing is run."""

from __future__ import annotations

import dataclasses
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
import yaml

import raysim
from raysim.__main__ import main
from raysim.config.command_line import parse
from raysim.flat_model import FlatModel
from raysim.method import ClientTask, Context, Traits, Updates
from raysim.running.preflight import FUNCTIONS
from raysim.training import gradients, local_sgd
from raysim.workloads.federated_data import ClientData

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
AGREEMENT = DOCS / "results" / "agreement.csv"
POPULATION = DOCS / "results" / "population.csv"
PAGES = sorted((*ROOT.glob("*.md"), *DOCS.glob("*.md"), *(ROOT / "benchmarks").glob("*.md")))
LINK = re.compile(r"\]\(([^)\s]+)\)")
MODULE_LINK = re.compile(r"\[`?([\w./]+\.py)`?\]\(([^)#\s]+)")
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def prose_of(page: Path) -> str:
    """A page without its code blocks, which keep their number of lines."""
    text = page.read_text(encoding="utf-8")
    return CODE.sub(lambda block: "\n" * block.group().count("\n"), text)


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives a page's headings."""
    headings = re.findall(r"^#+ (.*)$", prose_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def verdicts(method: str, difference: str = ".* − .*") -> dict[str, int]:
    """How many of a paper's differences are confirmed, refuted and not told, by the tables of its method's pages."""
    pages = [page.read_text(encoding="utf-8") for page in sorted(DOCS.glob(f"{method}*.md"))]
    return {
        verdict: sum(
            len(re.findall(rf"^\| {difference} \|.*\| {verdict}[^|]*\|$", page, re.MULTILINE)) for page in pages
        )
        for verdict in ("confirmed", "refuted", "not told")
    }


@pytest.mark.parametrize("method", ["FedRAD", "FedLD", "FedSSP"])
def test_the_readme_counts_the_verdicts_on_the_papers_differences(method: str) -> None:
    found = verdicts(method.lower())
    said = f"{method}'s {sum(found.values())}: " + ", ".join(f"{number} {word}" for word, number in found.items())
    assert said in " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())


@pytest.mark.parametrize(
    ("method", "difference", "name"),
    [
        ("fedrad", "FedRAD − FedAvg", "FedRAD − FedAvg"),
        ("fedld", "FedLD − FedAvg", "FedLD − FedAvg"),
        ("fedssp", "FedSSP.* − Local.*", "FedSSP − Local on one network"),
    ],
)
def test_the_readme_says_what_became_of_each_papers_gain(method: str, difference: str, name: str) -> None:
    found = verdicts(method, difference)
    assert found["confirmed"] == 0
    untold = f", not told in {found['not told']}" if found["not told"] else ""
    expected = f"| {name}: refuted at this size in {found['refuted']} of {sum(found.values())} places{untold} |"
    assert expected in (ROOT / "README.md").read_text(encoding="utf-8")
    lead = " ".join((DOCS / f"{method}.md").read_text(encoding="utf-8").split("\n## ")[0].split())
    assert (
        f" of the {sum(found.values())} places" in lead
        and f"refuted at this size in {found['refuted'] if untold else 'all'}" in lead
    )
    assert f"not told in {found['not told']}." in lead or not untold


def test_the_readme_says_how_far_the_verdicts_reach() -> None:
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    pages = {
        name: "".join(page.read_text() for page in DOCS.glob(f"{name}*.md")) for name in ("fedrad", "fedld", "fedssp")
    }
    confirmed = {name: re.findall(r"^\| .* − .* \| confirmed.*$", page, re.MULTILINE) for name, page in pages.items()}
    other = {name: sum("confirmed, but" in line for line in lines) for name, lines in confirmed.items()}
    few = sum(", 3 seeds" in line for line in confirmed["fedssp"])
    assert other["fedrad"] == len(confirmed["fedrad"])
    assert (
        f"all of FedRAD's {other['fedrad']}, {other['fedld']} of FedLD's {len(confirmed['fedld'])} and "
        f"{other['fedssp']} of FedSSP's {len(confirmed['fedssp'])} have another size" in readme
    )
    assert f"{few} of FedSSP's rest on three folds" in readme
    splits = re.findall(r"^\| .* \| split \d, accuracy \|.* \| refuted.*$", pages["fedld"], re.MULTILINE)
    assert f"and {len(splits)} of FedLD's are of rows not far from a constant answer" in readme


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
    commands = (
        "report",
        "verify",
        "replay",
        "contribution",
        "evaluate",
        "data",
        "judge",
        "paper",
        "crate",
        "reproduce",
    )
    known = {name: options_of(name, capsys) for name in commands}
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
    assert "1000 of 1000 forgeries" in readme and "| forgery | 1000 | 1000 |" in trust.read_text(encoding="utf-8")
    assert "1167 of 1167 honest" in readme and "| honest | 1167 | 1167 |" in trust.read_text(encoding="utf-8")
    rows = pd.read_csv(AGREEMENT).query("not program.str.startswith('float64')")
    equal = rows[rows["changed"].fillna(rows["as_it_is"]) <= 1e-6]
    as_they_are = set(rows["method"]) - set(rows[~(rows["as_it_is"] <= 1e-6)]["method"])
    more = equal["method"].nunique() - len(as_they_are)
    assert f"{len(as_they_are)} of them give the numbers" in readme and f"and {more} more once" in readme
    assert len(equal) == len(rows)
    text = speed.read_text(encoding="utf-8")
    cells = [line.split("|") for line in text.splitlines() if re.match(r"\| W\d.*\dx", line)][:3]
    ratios = [[re.findall(r"([\d.]+)x", row[column])[0] for row in cells] for column in (3, 4, 5)]
    flower, pfl, ours = ("{}, {} and {}".format(*own) for own in ratios)
    assert f"takes {ours} times" in readme and f"Flower takes {flower} times" in readme
    assert f"pfl-research {pfl} (" in readme
    for name in ("Zen 4", "Zen 5"):
        table = text.partition(f"## Results on AMD's {name}")[2].partition("\n## ")[0]
        head = next(line.split("|") for line in table.splitlines() if line.startswith("| | bare"))
        found = re.findall(r"^\| W\d, .*x.*$", table, re.M)
        own = [re.findall(r"([\d.]+)x", line.split("|")[head.index(" raysim ")])[0] for line in found]
        assert "{}, {} and {}".format(*own) in readme.partition(name)[2][:60]
    starts = pd.read_csv(DOCS / "results" / "rounds-zen4.csv").pivot_table(
        values="start_seconds", index="workload", columns="system", aggfunc="median"
    )
    beside_pfl = [f"{starts['raysim'][name] / starts['pfl'][name]:.2f}" for name in ("W1", "W2", "W3")]
    assert "trains after {}, {} and {} of pfl-research's time, 3 s on digits".format(*beside_pfl) in readme
    behind = [f"{starts['raysim'][name] / starts['pfl'][name]:.2f}" for name in ("P3", "P4")]
    assert "given in Python it takes {} and {} of it".format(*behind) in readme
    digits = pd.read_csv(DOCS / "results" / "startup.csv")["start to first step"]
    assert round(digits.median()) == 3
    sizes = pd.read_csv(POPULATION).set_index("clients")["peak_mib"]
    assert "ten million clients, 100 a round, takes the memory of one with a thousand" in readme
    assert sizes[10**7] == pytest.approx(sizes[1000], rel=0.02)
    of_fedrad = ("joins", "neunet", "iterations", "table2-iterations", "table1", "table2", "whole", "constant")
    kept = [path for name in of_fedrad for path in DOCS.glob(f"results/fedrad-{name}/**/*.csv")]
    assert f"({len(kept)} cells, five paired seeds, ten of Table 1's iterations)" in readme


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
