"""The folder of a paper: its tables, pages and descriptions, and a run that is repeated from it."""

from __future__ import annotations

import csv
import hashlib
import json
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlcroissant
import pytest

from raysim import load_model
from raysim.comparison import markdown
from raysim.launch import main as launch
from raysim.paper import checklist, collected, croissant
from raysim.paper.__main__ import main
from raysim.paper.collected import Paper, collect
from raysim.paper.instructions import readme, unrepeatable
from raysim.paper.pictures import write_curves
from raysim.replay.__main__ import main as replay
from raysim.results.measures import find
from raysim.verify import main as verify
from tests.raysim.judge.groups import A, B, run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two methods with two seeds each."""
    place = tmp_path_factory.mktemp("runs")
    for seed in (0, 1):
        run(place / "a" / str(seed), seed, **A)
        run(place / "b" / str(seed), seed, **B)
    return place


@pytest.fixture(scope="module")
def paper(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("papers") / "paper"
    wheel = folder.with_name("raysim-0.0-py3-none-any.whl")
    wheel.write_bytes(b"a wheel")
    words = [str(runs / "a"), str(runs / "b"), "--output", str(folder), "--author", "A. Lovelace"]
    assert main([*words, "--source", str(wheel)]) == 0
    return folder


def test_tables_and_figure_hold_all_runs(runs: Path, paper: Path) -> None:
    for name in ("table.md", "table.tex", "table.csv", "table-runs.csv", "table-differences.csv"):
        assert "fedprox" in (paper / name).read_text(encoding="utf-8"), name
    values = [json.loads((runs / "a" / seed / "summary.json").read_text())["accuracy"] for seed in ("0", "1")]
    assert f"| fedavg | {50 * sum(values):.2f} ±" in (paper / "table.md").read_text(encoding="utf-8").replace("*", "")
    rows = csv.DictReader((paper / "table-runs.csv").read_text(encoding="utf-8").splitlines())
    kept = [row["accuracy"] for row in rows if row["row"] == "fedavg"]
    assert kept == [f"{value:.6g}" for value in values] != [repr(value) for value in values]
    told = (paper / "README.md").read_text(encoding="utf-8")
    assert "`table*.csv` its numbers, runs to six digits" in told and "without rounding" not in told
    assert b"<svg" in (paper / "curves.svg").read_bytes()[:1000]
    assert (paper / "curves.pdf").read_bytes().startswith(b"%PDF")


def test_runs_on_other_data_are_no_pairs(runs: Path, tmp_path: Path) -> None:
    folders = [*(runs / "a").iterdir(), *(runs / "b").iterdir()]
    folders += [run(tmp_path / "c" / str(seed), seed, **A, limit=300) for seed in (0, 1)]
    page = markdown.page(collect(folders, "", [find("loss")]).page())
    assert "| fedprox − fedavg |" in page and "limit 300 − " not in page and "limit 200, loss" in page


def test_the_curves_are_of_the_first_measure_that_rounds_have(runs: Path, tmp_path: Path) -> None:
    """One that sums up whole runs was a traceback."""
    local = collect([*(runs / "a").iterdir()], "", [find("rounds_to_0.5")])
    assert not write_curves(local, tmp_path) and not list(tmp_path.iterdir())
    assert write_curves(replace(local, measures=[*local.measures, find("accuracy")]), tmp_path)
    assert b"<svg" in (tmp_path / "curves.svg").read_bytes()[:1000]
    assert "curves.svg" in readme(local, "", True) and "curves.svg" not in readme(local, "", False)


def test_runs_whose_rows_have_one_name_when_cut_have_places_of_their_own(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collected, "_plain", lambda text: "long")
    found = collect([*(runs / "a").iterdir(), *(runs / "b").iterdir()], "", [find("loss")])
    assert [run.place for run in found.runs] == ["long-seed0", "long-seed1", "long-seed0-2", "long-seed1-2"]


def test_samples_are_those_of_the_clients_that_took_part(runs: Path) -> None:
    found = collect([*(runs / "a").iterdir()], "", [find("loss")])
    assert "training samples in all (" in checklist.page(found)
    result = found.first.result
    few = replace(result, clients=result.clients[result.clients["client"] < 3])
    assert "training samples of the 3 that took part (" in checklist.page(
        replace(found, runs=[replace(found.first, result=few)])
    )


def test_the_commands_of_the_readme_repeat_the_run(
    paper: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (paper / "README.md").read_text(encoding="utf-8")
    install, repeat, check = text.split("```sh\n")[1].split("\n```")[0].splitlines()
    assert install == "pip install -r requirements.txt"
    lines = (paper / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert "./raysim-0.0-py3-none-any.whl" in lines and (paper / lines[1]).read_bytes() == b"a wheel"
    assert re.search(r"^torch==[\d.]+$", "\n".join(lines), re.MULTILINE)
    monkeypatch.chdir(paper)
    assert launch(shlex.split(repeat.removeprefix("python -m raysim.launch "))) == 0
    assert verify(shlex.split(check.removeprefix("python -m raysim.verify "))) == 0
    assert "equal" in capsys.readouterr().out
    commands = (paper / "commands.md").read_text(encoding="utf-8")
    assert commands.count("python -m raysim.launch --method fedprox") == 2
    summary = json.loads((paper / "fedprox-seed1/summary.json").read_text())
    assert summary["proof"] in commands


def test_the_crate_holds_every_file(paper: Path) -> None:
    graph = json.loads((paper / "ro-crate-metadata.json").read_text(encoding="utf-8"))["@graph"]
    named = {entity["@id"] for entity in graph if entity["@type"] == "File"}
    files = {path.relative_to(paper).as_posix() for path in paper.rglob("*") if path.is_file()}
    files = {name for name in files if not name.startswith("again/")} - {"ro-crate-metadata.json"}
    assert named == files
    sums = {entity["@id"]: entity["sha256"] for entity in graph if "sha256" in entity}
    assert set(sums) >= files
    assert sums["table.md"] == hashlib.sha256((paper / "table.md").read_bytes()).hexdigest()


def test_mlcroissant_reads_the_description_and_the_split_beside_it(paper: Path) -> None:
    found = mlcroissant.Dataset(jsonld=paper / "croissant.json")
    assert not found.metadata.issues.errors and found.metadata.name == "digits"
    records = list(found.records("clients"))
    assert len(records) == 4 and records[0]["clients/samples"] > 0
    content: dict[str, Any] = json.loads((paper / "croissant.json").read_text(encoding="utf-8"))
    assert "http://mlcommons.org/croissant/RAI/1.0" in content["conformsTo"]
    assert "workload.partition dirichlet" in content["rai:dataPreprocessingProtocol"]
    assert content["rai:dataCollection"].startswith("Not known to raysim")


@pytest.mark.parametrize(("workload", "published"), [("table", ""), ("adult", "archive.ics.uci.edu/dataset/2/adult")])
def test_own_files_have_no_publisher(runs: Path, workload: str, published: str) -> None:
    """A file was described as the published data set, or as scikit-learn's digits, of the same name."""
    found = collect([runs / "a" / "0"], "", [find("loss")])
    for stem in ("adult", "digits"):
        told = _with_data(found, {"name": workload, "path": f"mine/{stem}.csv"})
        texts = [croissant.described(told, ""), checklist.page(told), readme(told, "", True)]
        for text in texts:
            assert ("CC BY 4.0" in text, published in text) == (bool(published), True), text
        assert ("adult.data" in texts[0], "those of the publisher" in texts[0]) == (bool(published),) * 2
        assert "scikit-learn.org" not in texts[0]


def test_the_checklist_says_what_runs_know_and_what_they_do_not(paper: Path) -> None:
    text = (paper / "checklist.md").read_text(encoding="utf-8")
    assert text.count("?** ") == 19 and "fedavg: 2 runs; fedprox: 2 runs" in text
    assert "`accuracy` (accuracy, last round)" in text
    assert "4 clients" in text and "test_share 0.2, validation_share 0.2" in text
    assert text.count("**Not known from the runs**") == 8 and "No pretrained weights." in text


def _answer(found: Paper, question: str) -> str:
    return checklist.page(found).split(f"{question}?** ")[1].split("\n")[0].replace("\\", "")


def _splits(found: Paper, workload: dict[str, Any]) -> str:
    """The answer on splits, of a run with these options of its data."""
    return _answer(_with_data(found, workload), "validation and test splits")


def _with_data(found: Paper, workload: dict[str, Any]) -> Paper:
    """A paper whose run has these options of its data."""
    facts = found.first.facts
    config = {**facts.config, "workload": {**facts.config["workload"], **workload}}
    return replace(found, runs=[replace(found.first, facts=replace(facts, config=config))])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "partition dirichlet, alpha 0.5, test_share 0.2, validation_share 0.2, local_test cut, limit 200; "),
        ({"partition": "iid"}, "partition iid, test_share 0.2, "),
        ({"partition": "shards", "local_test": "global"}, "partition shards, classes_per_client 2, validation_share "),
        ({"partition": "auto"}, "partition auto (clients that the data names, else dirichlet), alpha 0.5, test_share"),
    ],
)
def test_the_split_is_told_by_the_options_that_it_reads(runs: Path, options: dict[str, Any], told: str) -> None:
    found = collect([runs / "a" / "0"], "", [find("loss")])
    assert _splits(found, options).startswith(told)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"partition": "iid"}, "local test and validation data are windows that were drawn at random, which overlap"),
        ({"partition": "iid", "local_test": "global"}, "and validation data are windows that were drawn at random"),
        ({"partition": "iid", "validation_share": 0.0}, "and local test data are windows that were drawn at random"),
        ({"partition": "iid", "stride": 81}, "at random, which may overlap with those that clients train on"),
        ({"partition": "iid", "local_test": "global", "validation_share": 0.0}, ""),
        ({"partition": "iid", "task": "classification"}, ""),
        ({"partition": "auto"}, ""),
        ({"partition": "sites"}, ""),
        ({"partition": "iid", "name": "digits"}, ""),
    ],
)
def test_windows_that_are_dealt_at_random_are_said_to_overlap(runs: Path, options: dict[str, Any], told: str) -> None:
    found = collect([runs / "a" / "0"], "", [find("loss")])
    text = {"name": "text", "path": "plays.txt", "by": "whole", "length": 80, "stride": 20, **options}
    said = _splits(found, text)
    assert (told or "no client trains on validation or test data.") in said
    assert ("validation or test data" in said) == (not told)


def test_the_models_that_runs_have_kept_are_told(runs: Path, tmp_path: Path) -> None:
    """Every run was said to have the file of one model."""
    local = run(tmp_path / "local", 0, method="local")
    one, own, both = (
        collect(folders, "", [find("loss")]) for folders in ([runs / "a" / "0"], [local], [runs / "a" / "0", local])
    )
    told = [_answer(found, "Trained and pretrained models") for found in (one, own, both)]
    whole, of_clients = (
        "The trained model of {} is {}`model.safetensors`.",
        "holds one model for all clients: the model",
    )
    assert told[0].endswith(whole.format("each run", "its "))
    assert f" No file {of_clients}" in told[1] and "model.safetensors" not in told[1]
    assert f"{whole.format('1 of 2 runs', '')} In 1 of 2 runs no file {of_clients}" in told[2]
    assert load_model(local, client=0).training is False  # as the answer says
    shutil.rmtree(local / "checkpoints")
    assert "**Not known from the runs**: the trained models of 1 run, which are not kept." in checklist.page(both)


def test_a_replay_from_a_later_round_is_told_to_be_repeated_by_no_command(runs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "replay"
    words = ["--from", "2", "--set", "training.margin=0.1", "--output", str(folder)]
    assert replay([str(runs / "a" / "0"), *words]) == 0
    whole = collect([runs / "a" / "1"], "", [find("accuracy")]).first
    taken = collect([folder], "", [find("accuracy")]).first
    assert unrepeatable(whole) == "" and "a replay whose first 1 rounds are those of another run" in unrepeatable(taken)


def test_slips_are_one_sentence_and_leave_no_folder(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new"

    def refused(*words: str) -> str:
        assert main([*words]) == 2 and not out.exists()
        return capsys.readouterr().err

    assert "holds no run" in refused(str(tmp_path), "--output", str(out))
    assert "no measure 'acuracy'" in refused(str(runs / "a"), "--output", str(out), "--measure", "acuracy")
    assert "there is no such file" in refused(str(runs / "a"), "--output", str(out), "--source", "no.whl")
    assert "a paper's files are a folder" in refused(str(runs / "a"), "--output", str(tmp_path / "new.zip"))
    assert "it is there already" in refused(str(runs / "a"), "--output", str(tmp_path))
    for option in ("--license", "--orcid"):
        assert f"{option} MIT: not allowed" in refused(str(runs / "a"), "--output", str(out), option, "MIT")
    once_more = run(tmp_path / "copy", 0, **A)
    words = (str(runs / "a"), str(once_more), "--output", str(out))
    assert "another run has its settings and its seed" in refused(*words)
