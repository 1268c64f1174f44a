from __future__ import annotations

import sys
from pathlib import Path

import pytest

from raysim.config import registry
from raysim.config.nearest import did_you_mean, nearest
from raysim.errors import ConfigError


def test_methods_are_the_files_of_the_package() -> None:
    folder = Path(registry.__file__).parents[1] / "methods"
    files = {path.stem.replace("_", "-") for path in folder.glob("*.py") if not path.stem.startswith("_")}
    several = {name for names in registry.FAMILIES.values() for name in names}
    assert set(registry.known("method")) == files - set(registry.FAMILIES) | several
    assert {"fedavg", "fedprox", "fedrad"} <= files


def test_a_new_file_is_a_method_and_an_underscore_hides_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import raysim.methods

    (tmp_path / "toy_method.py").write_text(
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Toy:\n    pass\nMETHOD = Toy\n"
    )
    (tmp_path / "_shared.py").write_text("raise RuntimeError('never imported')\n")
    (tmp_path / "broken.py").write_text("raise RuntimeError('listing must not import')\n")
    monkeypatch.setattr(raysim.methods, "__path__", [*raysim.methods.__path__, str(tmp_path)])
    assert {"toy-method", "broken"} <= set(registry.known("method"))
    assert not any("shared" in name for name in registry.known("method"))
    try:
        assert registry.public_name("method", registry.resolve("method", "toy-method")()) == "toy-method"
    finally:
        sys.modules.pop("raysim.methods.toy_method", None)


@pytest.mark.parametrize("kind", registry.KINDS)
def test_every_name_gives_a_dataclass_with_that_name(kind: registry.Kind) -> None:
    for name in registry.known(kind):
        assert registry.public_name(kind, registry.resolve(kind, name)()) == name


@pytest.mark.parametrize(
    ("kind", "name", "wanted"),
    [
        ("method", "fedprxo", "Did you mean fedprox"),
        ("workload", "cifar", "Did you mean cifar10"),
        ("model", "moblienet", "Did you mean mobilenet"),
    ],
)
def test_an_unknown_name_names_the_nearest_and_all(kind: registry.Kind, name: str, wanted: str) -> None:
    with pytest.raises(ConfigError, match=wanted) as caught:
        registry.resolve(kind, name)
    assert f"Unknown {kind} {name!r}" in str(caught.value)
    assert all(known in str(caught.value) for known in registry.known(kind))


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("no_such_package.methods:Mine", "cannot import 'no_such_package.methods': .* looked for in /.*PYTHONPATH"),
        ("json:Nothing", "does not define 'Nothing'"),
        ("json:dumps", "is not a dataclass"),
        (":Mine", "cannot import ''"),
    ],
)
def test_a_wrong_class_of_ones_own_is_explained(name: str, wanted: str) -> None:
    with pytest.raises(ConfigError, match=wanted):
        registry.resolve("method", name)


def test_nearest_by_last_part_by_initials_and_by_spelling() -> None:
    known = ["training.batch_size", "training.learning_rate", "evaluation.batch_size", "schedule.rounds"]
    assert nearest("schedule.batch-size", known) == ["training.batch_size", "evaluation.batch_size"]
    assert nearest("lr", known) == ["training.learning_rate"]
    assert nearest("training.learnin_rate", known) == ["training.learning_rate"]
    assert nearest("completely_different", known) == []
    assert did_you_mean("round", known, "--") == " Did you mean --schedule.rounds?"
    assert did_you_mean("xyz", known) == ""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("def train(:", r"SyntaxError: invalid syntax \(.*faulty_module\.py, line 1\)"),
        ("import json\nvalue = nothing", r"NameError: name 'nothing' is not defined \(.*faulty_module\.py, line 2\)"),
        ("import no_such_package", "No module named 'no_such_package'"),
    ],
)
def test_a_module_of_ones_own_that_does_not_import_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, wanted: str
) -> None:
    (tmp_path / "faulty_module.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=f"cannot import 'faulty_module': .*{wanted}"):
        registry.resolve("method", "faulty_module:Mine")
