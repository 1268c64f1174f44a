"""``python -m raysim.crate``: runs as an RO-Crate."""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
from rocrate.model.metadata import Metadata

from benchmarks.rounds.environments import environment
from raysim.crate.__main__ import main
from raysim.crate.building import TERMS
from raysim.crate.run_facts import LEFT_OUT
from raysim.running.simulation import run
from raysim.verify import main as verify
from tests.attack.folders import small
from tests.long_tests import long

CONTEXT = Path(__file__).with_name("context_1_1.json")
"""The terms of https://w3id.org/ro/crate/1.1/context that crates have."""
VALIDATOR = "roc-validator==0.13.0"
METADATA = "ro-crate-metadata.json"
AUTHOR = (
    "--license",
    "https://spdx.org/licenses/CC-BY-4.0",
    "--author",
    "A. Lovelace",
    "--orcid",
    "https://orcid.org/0",
)
Graph = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose folder has a name that a URL cannot have."""
    return run(small(tmp_path_factory.mktemp("runs") / "a run ü", schedule__rounds=2, method__name="fedavg")).folder


def graph_of(text: str | bytes) -> Graph:
    return {entity["@id"]: entity for entity in json.loads(text)["@graph"]}


def of_kind(graph: Graph, kind: str) -> list[dict[str, Any]]:
    return [entity for entity in graph.values() if entity["@type"] == kind]


def test_a_crate_holds_files_software_settings_data_and_proof(folder: Path, tmp_path: Path) -> None:
    assert main([str(folder), "--output", str(tmp_path / "crate"), *AUTHOR]) == 0
    graph = graph_of((tmp_path / "crate" / METADATA).read_text())
    files = {file["name"]: file for file in of_kind(graph, "File")}
    copied = tmp_path / "crate" / folder.name
    assert {str(path.relative_to(copied)) for path in copied.rglob("*") if path.is_file()} == set(files)
    assert LEFT_OUT & {path.name for path in folder.iterdir()} and not LEFT_OUT & set(files)
    for name, file in files.items():
        content = (copied / name).read_bytes()
        assert (file["contentSize"], file["sha256"]) == (str(len(content)), hashlib.sha256(content).hexdigest())
    summary = json.loads((folder / "summary.json").read_text())
    (action,) = of_kind(graph, "CreateAction")
    values = {graph[part["@id"]].get("name"): graph[part["@id"]].get("value") for part in action["object"]}
    assert (values["training.learning_rate"], values["schedule.rounds"], values["digits"]) == ("0.1", "2", None)
    made = {graph[part["@id"]].get("name"): graph[part["@id"]].get("value") for part in action["result"]}
    assert "config.yaml" in values and "config.yaml" not in made and "rounds.csv" in made
    assert made["accuracy"] == str(summary["accuracy"]) and made["head of the proof"] == summary["proof"]
    assert f"raysim.verify 'a run ü' --head {summary['proof']}" in action["description"]
    assert verify([str(copied), "--head", summary["proof"]]) == 0  # as it says
    software = graph[action["instrument"]["@id"]]
    named = {graph[part["@id"]]["name"] for part in software["softwareRequirements"]}
    assert software["name"] == "raysim" and {"Python", "torch", "ray"} <= named
    (ray,) = [entity for entity in graph.values() if entity.get("name") == "ray"]
    assert ray["@id"] == f"pkg:pypi/ray@{ray['softwareVersion']}"
    assert action["startTime"] <= action["endTime"] and graph[action["agent"]["@id"]]["name"] == "A. Lovelace"
    terms = {*json.loads(CONTEXT.read_text())["@context"], *TERMS, "@id", "@type"}
    assert {term for entity in graph.values() for term in (*entity, entity["@type"])} <= terms


def test_runs_of_one_name_share_a_file(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / folder.name
    shutil.copytree(folder, other)
    (other / "proof.jsonl").unlink()  # as of a run with --proof none
    summary = json.loads((other / "summary.json").read_text())
    (other / "summary.json").write_text(json.dumps({name: summary[name] for name in summary if name != "proof"}))
    assert main([str(folder), str(other), "--output", str(tmp_path / "both.zip"), "--name", "Two runs"]) == 0
    with zipfile.ZipFile(tmp_path / "both.zip") as archive:
        graph = graph_of(archive.read(METADATA))
        assert {f"{folder.name}/rounds.csv", f"{folder.name}-2/rounds.csv"} <= set(archive.namelist())
    assert graph["./"]["name"] == "Two runs" and "No license is stated" in graph["./"]["license"]
    texts = [action["description"] for action in of_kind(graph, "CreateAction")]
    assert len(graph["./"]["mentions"]) == 2 and sum("has no proof" in text for text in texts) == 1
    assert sum(value["name"] == "accuracy" for value in of_kind(graph, "PropertyValue")) == 2  # each run's own
    assert sum(value["name"] == "training.learning_rate" for value in of_kind(graph, "PropertyValue")) == 1


@pytest.mark.parametrize("name", ["crate.zip", "crate"])
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyboardInterrupt(), "interrupted"),
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device. Free space there"),
    ],
)
def test_what_is_cut_off_leaves_nothing_and_is_repeated(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, error: BaseException, said: str
) -> None:
    """A part of a crate stayed under the name of the whole, and the repeat was refused."""
    output = tmp_path / "crates" / name
    before: list[Path] = []

    def cut_off(*_: object, **options: object) -> None:
        """The last file is written after all those of runs."""
        before.extend(output.parent.rglob("*"))
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Metadata, "stream" if name == "crate.zip" else "write", cut_off)
        assert main([str(folder), "--output", str(output)]) == (2 if isinstance(error, OSError) else 130)
    assert said in capsys.readouterr().err
    assert before and not [*output.parent.iterdir()]
    assert main([str(folder), "--output", str(output)]) == 0
    assert [*output.parent.iterdir()] == [output]


def test_what_cannot_be_is_refused(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed = tmp_path / "changed"
    shutil.copytree(folder, changed)
    with (changed / "rounds.csv").open("a") as table:
        table.write("3\n")
    going_on = tmp_path / "going on"
    shutil.copytree(folder, going_on)
    (going_on / "summary.json").unlink()
    for arguments, said in {
        (str(changed),): "is not what its proof says",
        (str(going_on),): "the run has not ended. Go on with it first: --resume",
        (str(tmp_path),): "is no run folder",
        (str(folder), "--output", str(changed)): "it is there already. Take it away",
        (str(folder), "--license", "MIT"): "--license MIT: not allowed. Allowed: a URL",
        (str(folder), "--orcid", "https://orcid.org/0"): "Add --author NAME",
    }.items():
        assert main(arguments) == 2
        assert said in capsys.readouterr().err
    assert not list(tmp_path.rglob(METADATA)) and not list(tmp_path.rglob("*.zip"))


@long
def test_the_validator_finds_nothing_missing(folder: Path, tmp_path: Path) -> None:
    """Against the profile that its wheel holds; without a network, but for the validator's packages on first use."""
    place = tmp_path / "crate"
    assert main([str(folder), "--output", str(place)]) == 0
    python = environment("crate", [VALIDATOR])
    url, cache = "https://w3id.org/ro/crate/1.1/context", str(tmp_path / "cache")
    warm = [python, str(Path(__file__).with_name("warm_cache.py")), cache, url, str(CONTEXT)]
    subprocess.run(warm, check=True)
    report = tmp_path / "report.json"

    def judged() -> dict[str, Any]:
        words = ["validate", "--offline", "--cache-path", cache, "--profile-identifier", "process-run-crate"]
        words += ["--output-format", "json", "--output-file", str(report), str(place)]
        subprocess.run([str(Path(python).with_name("rocrate-validator")), *words], capture_output=True, timeout=120)
        found: dict[str, Any] = json.loads(report.read_text())
        return found

    found = judged()
    assert (found["passed"], found["issues"], found["skipped_checks"]) == (True, [], 0)
    graph = json.loads((place / METADATA).read_text())
    for entity in graph["@graph"]:
        entity.pop("instrument", None)
    (place / METADATA).write_text(json.dumps(graph))
    assert "MUST have an instrument" in judged()["issues"][0]["message"]
