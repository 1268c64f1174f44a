"""A run whose method's source has changed: it is said when the run goes on, recorded, and explains a difference."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

from raysim.config.run_config import build
from raysim.running.own_sources import own_sources
from raysim.verify import main as verify
from tests.raysim.conftest import Start

METHOD = """
from dataclasses import dataclass

from mine_base import Half


@dataclass(frozen=True)
class Careful(Half):
    pass
"""
BASE = """
from dataclasses import dataclass

from raysim.methods.fedavg import FedAvg

STEP = 1.0


@dataclass(frozen=True)
class Half(FedAvg):
    def aggregate(self, server, updates, context):
        return server + STEP * updates.mean()
"""
NAME = "mine_method:Careful"
SAID = f"{NAME} has another source than the rounds so far were computed with"


@pytest.fixture
def base(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the method's base class; the method's own is beside it."""
    (place / "mine_method.py").write_text(METHOD)
    for name in ("mine_method", "mine_base"):
        monkeypatch.setitem(sys.modules, name, None)  # what was there comes back in the end
        monkeypatch.delitem(sys.modules, name)
    write(place / "mine_base.py", BASE)
    return place / "mine_base.py"


def write(file: Path, text: str) -> None:
    """Write a file that a new process would read."""
    file.write_text(text)
    for name in ("mine_method", "mine_base"):
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    for compiled in file.parent.glob("__pycache__/mine_*"):
        compiled.unlink()


def sources() -> list[str]:
    digests: list[str] = json.loads(Path("run", "environment.json").read_text())["sources"][NAME]
    return digests


def test_it_is_said_and_recorded(base: Path, start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    def resumed(rounds: int) -> str:
        code, error = start("--resume=run", f"--rounds={rounds}", f"--method={NAME}", small=False)
        assert code == 0, error
        return error

    assert start("--output=run", f"--method={NAME}")[0] == 0
    (first,) = sources()
    assert "another source" not in resumed(3) and sources() == [first]
    write(base, BASE.replace("1.0", "0.5"))
    error = resumed(4)
    assert SAID in error and "python -m raysim.verify run --all" in error
    assert SAID in Path("run", "run.log").read_text()
    assert sources()[0] == first and len({*sources()}) == 2
    assert "another source" not in resumed(5) and len(sources()) == 2
    assert verify(["run"]) == 0  # what the folder holds is whole
    capsys.readouterr()
    assert verify(["run", "--all", "--method", NAME]) == 1
    said = capsys.readouterr().out
    assert "differs: clients.csv (round 1, " in said, said
    assert f"here is another source of {NAME}: it changed when the run was resumed" in said


def test_a_difference_names_a_source_that_was_changed_after_the_run(
    base: Path, start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start("--output=run", f"--method={NAME}")[0] == 0
    write(base, BASE + "# a remark\n")
    assert verify(["run", "--all", "--method", NAME]) == 0
    assert "source of" not in capsys.readouterr().out
    write(base, BASE.replace("1.0", "0.5"))
    assert verify(["run", "--all", "--method", NAME]) == 1
    assert f"here is another source of {NAME}: it was changed after the run" in capsys.readouterr().out


def test_a_damaged_record_keeps_no_run_from_going_on(base: Path, start: Start) -> None:
    assert start("--output=run", f"--method={NAME}")[0] == 0
    Path("run", "environment.json").write_text("{")
    write(base, BASE + "# a remark\n")
    assert start("--resume=run", "--rounds=3", f"--method={NAME}", small=False)[0] == 0


def test_only_own_code_counts_and_all_of_its_base_classes(base: Path) -> None:
    def digest() -> str:
        config = build([{"method.name": NAME, "workload.name": "toy-graphs", "model.name": "mine:WithBatchNorm"}])
        found = own_sources(config)
        assert found.keys() == {NAME, "mine:WithBatchNorm"}
        return found[NAME]

    assert own_sources(build([{"method.name": "fedavg", "workload.name": "digits"}])) == {}
    before = digest()
    assert before == digest()
    write(base, BASE + "# a remark\n")
    assert before != digest()
