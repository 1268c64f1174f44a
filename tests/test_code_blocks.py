"""Code blocks of the pages do what they say: each is run here with small settings, or is in a list with the reason.

Command lines of one page are run in its order in one folder, in this process. Those that take long are run with
``RAYSIM_LONG_TESTS=1``.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import raysim
from raysim.__main__ import main
from tests.code_blocks import ROOT, SMALL, Command, blocks, commands, smaller
from tests.long_tests import long
from tests.own_data import seeded

LONG = "RAYSIM_LONG_TESTS" in os.environ
CLUSTER = "needs a cluster: tests/cluster builds one and runs raysim on it"
INSTALL = "installs: tests/test_package.py installs the wheel, .ci/run the clone"
EXTRA = "an extra that need not be installed: tests/raysim/monitor has it where it is"
BENCHMARK = "a benchmark of minutes to hours: tests/benchmarks runs its parts"
REMOTE = "needs a bucket: tests/raysim/remote has a server of S3"
STUDY = "hours: tests/test_result_tables.py holds tables of docs against their kept rows"
NOT_RUN: Mapping[str, str] = {
    "python3 -m venv": INSTALL,
    "pip install": INSTALL,
    "apt-get": INSTALL,
    "git clone": INSTALL,
    "ruff check": ".ci/run runs it",
    "python -m pytest": "is what runs this",
    "export": "sets a variable for the lines below it",
    "python -m benchmarks.": BENCHMARK,
    "RAYSIM_DATA=/path/to/data python -m raysim.study docs/studies/": STUDY,
    "python -m raysim.study docs/studies/": STUDY,
    "python -m raysim.reproduce ": "takes minutes to days: tests/raysim/reproduce makes a tiny table",
    "ray ": CLUSTER,
    "RAY_UP_enable_autoscaler_v2=0 ray up": CLUSTER,
    "ssh ": CLUSTER,
    "python -m raysim.launch --method fedrad --address ray://HEAD:10001": CLUSTER,
    "sbatch": "needs SLURM: tests/cluster/slurm.py has one",
    "docker": "needs Docker: tests/deploy reads the file",
    "kubectl": "needs Kubernetes: tests/deploy holds the manifests against their schema",
    "python -m raysim.judge": "groups of runs: tests/test_judging_page.py makes them, RAYSIM_LONG_TESTS=1",
    "python -m raysim.paper": "the same runs: tests/raysim/paper",
    "python -m raysim.crate runs/A": "the same as the line before it",
    "python -m venv validator": INSTALL,
    "validator/bin/": "a long test of tests/raysim/crate installs the validator",
    "python -m raysim.launch --method fedavg --output s3://": REMOTE,
    "python -m raysim.launch --resume s3://": REMOTE,
    "python -m raysim.verify s3://": REMOTE,
    "python -m raysim.report s3://": REMOTE,
    "python -m raysim.ui": "serves until Ctrl-C: tests/raysim/ui opens the page",
    "prometheus": "serves until Ctrl-C, and is no program of Python's",
    "python -m raysim.data fetch": "downloads: tests/raysim/test_data.py serves files of its own",
    "python -m raysim.data convert": "files that are not here: tests/workloads converts made ones",
    "python -m raysim.launch --method fedavg --workload huggingface": "tests/workloads has files for it",
    "python -m raysim.launch --method fedavg --observer mlflow": EXTRA,
    "python -m raysim.study --grid mu=0.01,0.1 --method fedprox --seeds 0-4 --output runs/grid --observer": EXTRA,
}
"""Start of a command → why it is not run."""
SLOW = (
    "python -m raysim.launch --method fedprox --mu 0.1 --workload cifar10",
    "python -m raysim.study",
    "python -m raysim.search",
    "python -m raysim.report",
    "raysim report",
    "python -m raysim.replay",
    "python -m raysim.contribution",
    "python -m raysim.spectra",
    "python -m raysim.timeline",
    "python -m raysim.data verify",
    "python -m raysim.launch --method fedavg --observer tensorboard",
    "python -m raysim.launch --method fedavg --devices.preset phones",
    "python -m raysim.launch --method fedavg --compression.kind",
    "python -m raysim.launch --method fedavg --privacy.kind",
    "python -m raysim.launch --method fedavg --attack.kind",
    "python -m raysim.launch --method fedavg --workload tinyshakespeare",
    "python -m raysim.launch --method fedavg --workload nodes",
    "python -m raysim.launch --method fedavg --workload tudataset",
    "python -m raysim.launch --method fedavg --partition views",
    "python -m raysim.launch --method fedssp",
    "python -m raysim.launch --method examples.",
    "python -m raysim.launch --config runs/NAME/best.yaml",
    "python -m raysim.verify runs/NAME --all",
    "python examples/",
    "cat runs/comparing",
    "sed ",
    "python -m raysim ",
)
"""Starts of commands, or whole ones, that take half a second or read data: run by ``RAYSIM_LONG_TESTS=1``."""
CHANGED: Mapping[str, str] = {
    "5f0baebdbf1e…": "%HEAD%",
    "--without va": "--without 3",
    "--actors 8": "--actors 2",
    "--seeds 0-4": "--seeds 0-1",
    "--seeds 0-2": "--seeds 0-1",
    "--trials 20": "--trials 2",
    "learning_rate=0.01,0.03,0.1,0.3,1.0": "learning_rate=0.03,0.1",
    "--resume runs/NAME --rounds 40": "--resume runs/NAME --rounds 21",
    "--sets MUTAG --download true": "--sets MUTAG",
    "--download true": "--limit 400",
    "--clients 10000000 --sampling_rate 0.00001": "--clients 10000 --sampling_rate 0.001",
}
"""Words of the pages → what a test writes for them, to be quick, or for its own folder."""
MINE = """
import raysim
from examples.own_model import Narrow as MyModel
from examples.own_workload import Rings as MyData

class Log(raysim.Observer):
    pass
"""
LETTERS = "the quick brown fox jumps over the lazy dog "


def starts_with(command: Command, starts: Iterable[str]) -> bool:
    return any(f"{command.text} ".startswith(start) for start in starts)


def to_run(page: str) -> list[Command]:
    """The commands of a page that are run, now or by ``RAYSIM_LONG_TESTS=1``."""
    return [command for command in commands() if command.page == page and not starts_with(command, NOT_RUN)]


PAGES = [page for page in dict.fromkeys(command.page for command in commands()) if to_run(page)]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run of twenty rounds."""
    folder = tmp_path_factory.mktemp("runs") / "NAME"
    words = ["--method=fedavg", "--model=logistic", "--clients=4", "--workload.limit=200", "--rounds=20", "--seed=0"]
    words += ["--local_epochs=1", "--proof=clients", "--pictures=false", "--engine.backend=inline"]
    assert main([*words, f"--output={folder}"]) == 0
    return folder


@pytest.fixture
def place(tmp_path: Path, finished: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder: a clone as far as examples go, three finished runs, and files of a user's own."""
    for name in ("NAME", "ONE", "OTHER"):
        shutil.copytree(finished, tmp_path / "runs" / name)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "monitoring").symlink_to(ROOT / "monitoring")
    (tmp_path / "mine.py").write_text(MINE)
    patients = [f"{number % 3},{number % 7},{number % 2},{'ab'[number % 2]}" for number in range(80)]
    (tmp_path / "patients.csv").write_text("\n".join(["age,dose,ill,ward", *patients]))
    reviews = [f"{LETTERS * (number % 3 + 1)},{('good', 'bad')[number % 2]}" for number in range(200)]
    (tmp_path / "reviews.csv").write_text("\n".join(["text,label", *reviews]))
    (tmp_path / "raw.csv").write_text("\n".join(reviews))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("mine", None)


def run(command: Command, place: Path) -> int:
    """Run one command line, in this process if it is raysim's; its exit code."""
    text = command.text
    for old, new in CHANGED.items():
        text = text.replace(old, new)
    head = json.loads((place / "runs" / "NAME" / "summary.json").read_text())["proof"]
    command = Command(command.page, text.replace("%HEAD%", head))
    words = command.words
    if words is None:
        return subprocess.run(["bash", "-c", command.text], cwd=place, check=False).returncode
    if words and words[0].startswith("--"):
        words = ["launch", *words]
    starts = words[:1] in (["launch"], ["study"], ["search"]) and "--resume" not in words
    if starts and not {"--help", "--list", "--print-config"} & set(words):
        words = [words[0], *smaller(words[1:])]
    return main(words)


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_a_page_end_well(page: str, place: Path) -> None:
    asked = [command for command in to_run(page) if LONG or not starts_with(command, SLOW)]
    ended = {command.text: run(command, place) for command in asked}
    assert {text: code for text, code in ended.items() if code != 0} == {}


@pytest.mark.parametrize("start", [*NOT_RUN, *SLOW])
def test_a_command_that_is_left_out_stands_on_a_page(start: str) -> None:
    assert any(starts_with(command, [start]) for command in commands())


def test_words_that_are_changed_stand_on_a_page() -> None:
    texts = [command.text for command in commands()]
    assert [old for old in CHANGED if not any(old in text for text in texts)] == []


def test_settings_of_a_page_are_made_small() -> None:
    words = ["--mu", "0.1", "--rounds=100", "--address", "auto", "--error_feedback"]
    small = [f"--{path}={value}" for path, value in SMALL.items()]
    assert smaller(words) == ["--mu", "0.1", "--error_feedback", *small]
    assert smaller(["--rounds", "5"])[:2] == ["--rounds", "5"]


PYTHON = [(page, text) for page, text in blocks("python") if page != "docs/cookbook.md"]
"""Page and block; the cookbook's code is compared with its files by tests/test_cookbook.py."""


@pytest.fixture
def small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """``raysim.run`` in this process, with a twentieth of the rounds."""
    real = raysim.run

    def run(method: Any, **options: Any) -> Any:
        small = {"engine.backend": "inline", "pictures": False}
        if isinstance(method, Mapping):
            return real(dict(method) | small | {"schedule.rounds": 1}, **options)
        given = {name: value for name, value in options.items() if name != "backend"}
        return real(method, **given | small | {"rounds": max(1, options.get("rounds", 20) // 20)})

    monkeypatch.setattr(raysim, "run", run)


@pytest.mark.parametrize("page", dict.fromkeys(page for page, _ in PYTHON))
def test_python_of_a_page_runs(page: str, place: Path, small_runs: None) -> None:
    """Blocks of a page are one program; arrays and a module that pages speak of are there, as is the run they name."""
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(4100, 4)).astype(np.float32), generator.integers(3, size=4100)
    module = seeded()
    known: dict[str, Any] = {"x": x[100:], "y": y[100:], "x_test": x[:100], "y_test": y[:100]}
    known |= {"Net": lambda: module, "raysim": raysim}
    known["clients"] = raysim.split((x[100:], y[100:]), clients=3, partition="iid")
    if page in ("docs/own-data.md", "docs/trust.md"):
        shutil.rmtree(place / "runs" / "NAME")
    if page == "docs/trust.md":
        raysim.run("fedavg", model=module, clients=known["clients"], output="runs/NAME")
    for owner, text in PYTHON:
        if owner == page and "TUDataset" not in text:
            exec(compile(text, page, "exec"), known)
            if "raysim.split(" in text and page == "docs/own-data.md":
                shutil.copytree(known["result"].folder, place / "runs" / "NAME")


@long
@pytest.mark.skipif("RAYSIM_DATA" not in os.environ, reason="RAYSIM_DATA is not set")
def test_python_on_graphs_runs(place: Path, small_runs: None) -> None:
    """The block that loads MUTAG by PyTorch Geometric, which finds it unpacked and downloads nothing."""
    with zipfile.ZipFile(Path(os.environ["RAYSIM_DATA"], "tudataset", "MUTAG.zip")) as archive:
        archive.extractall(place)
    (place / "data" / "MUTAG").mkdir(parents=True)
    (place / "MUTAG").rename(place / "data" / "MUTAG" / "raw")
    (text,) = [text for _, text in PYTHON if "TUDataset" in text]
    known: dict[str, Any] = {"Net": importlib.import_module("examples.own_graphs").Net}
    exec(compile(text, "own-data.md", "exec"), known)
    assert len(known["result"].rounds) == 1
