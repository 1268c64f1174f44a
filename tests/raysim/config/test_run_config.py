from __future__ import annotations

import dataclasses
import sys
import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.config import registry
from raysim.config import run_config as configs
from raysim.config.command_line import given_config
from raysim.config.run_config import (
    Engine,
    RunConfig,
    Schedule,
    Training,
    build,
    default_config,
    differences,
    flatten,
)
from raysim.errors import ConfigError
from raysim.workloads import option_types
from raysim.workloads.errors import WorkloadError
from raysim.workloads.option_types import Ge, Help, Le, NonNegative, PositiveInt


@dataclass(frozen=True)
class ToyMethod:
    """A method with one option and wishes for others."""

    defaults: ClassVar[Mapping[str, object]] = {"training.learning_rate": 0.3, "training.batch_size": 7}

    mu: Annotated[NonNegative, Help("pull", "Li et al. 2020")] = 0.01


@dataclass(frozen=True)
class ToyWorkload:
    """A workload that brings a model."""

    defaults: ClassVar[Mapping[str, object]] = {
        "training.learning_rate": 0.2,
        "training.momentum": 0.5,
        "model.name": "toy_options:ToyModel",
        "model.widths": (4, 4),
    }

    clients: Annotated[int, Ge(1), Le(50), Help("clients")] = 10
    folder: Annotated[str, Help("folder", placement=True)] = ""
    test_clients: Annotated[int, Help("judged")] = 1

    def __post_init__(self) -> None:
        if self.test_clients > self.clients:
            raise WorkloadError("test_clients must not exceed clients")


@dataclass(frozen=True)
class ToyModel:
    """A model."""

    widths: Annotated[tuple[PositiveInt, ...], Help("widths")] = (8,)
    stem: Annotated[int | tuple[int, ...], Help("stem")] = 3


@dataclass(frozen=True)
class NoDefault:
    needed: Annotated[int, Help("needed")]


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("toy_options")
    for cls in (ToyMethod, ToyWorkload, ToyModel, NoDefault):
        setattr(module, cls.__name__, cls)
        monkeypatch.setattr(cls, "__module__", "toy_options")
    vars(module).update(vars(option_types) | {"ClassVar": ClassVar, "Mapping": Mapping})
    monkeypatch.setitem(sys.modules, "toy_options", module)


NAMES = {"method": "toy_options:ToyMethod", "workload": "toy_options:ToyWorkload", "model": "toy_options:ToyModel"}


def toy(**sections: Any) -> RunConfig:
    """A config over the plain classes, built in Python, not from text."""
    parts: dict[str, Any] = {"method": ToyMethod(), "workload": ToyWorkload(), "model": ToyModel()}
    return RunConfig(**{**parts, **sections})


def refused(**sections: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        toy(**sections)
    return str(caught.value)


def test_the_first_run_needs_no_option() -> None:
    config = default_config()
    assert configs.to_dict(config)["method"]["name"] == "fedrad"
    assert configs.to_dict(config)["workload"]["name"] == "digits"
    assert configs.to_dict(config)["model"]["name"] == "cnn"
    assert (config.schedule.rounds, config.schedule.local_epochs, config.seed, config.output) == (20, 2, 0, "")


def test_every_option_of_every_named_class_has_help_and_a_valid_default() -> None:
    for kind in registry.KINDS:
        for name in registry.known(kind):
            config = default_config(**{kind: name})
            for path, option in configs.options_of(configs.classes_of(config)).items():
                assert option.help.text, path


def test_a_value_out_of_range_names_option_value_range_default_and_source() -> None:
    message = refused(method=ToyMethod(mu=-1.0))
    assert message == "method.mu: -1.0 is not allowed. Allowed: a finite number ≥ 0; default 0.01 (Li et al. 2020)."


def test_the_wrong_kind_of_section_is_refused() -> None:
    assert "training: expected raysim.config.run_config.Training" in refused(training={"momentum": 0.1})
    assert "method: expected an instance" in refused(method=ToyMethod)
    assert "model: expected an instance" in refused(model="cnn")
    assert "seed: -1" in refused(seed=-1)


def test_an_option_without_default_is_the_authors_error() -> None:
    with pytest.raises(ConfigError, match=r"method\.needed: toy_options\.NoDefault declares this option without"):
        toy(method=NoDefault(needed=3))


def test_defaults_of_workload_and_method_apply_under_given_values() -> None:
    given_names = given_config({kind: NAMES[kind] for kind in ("method", "workload")})
    assert given_names.training.learning_rate == 0.3  # both ask: the method wins
    assert given_names.training.momentum == 0.5  # only the workload asks
    assert given_names.training.batch_size == 7
    assert given_names.model == ToyModel(widths=(4, 4))  # and brings its model
    override = given_config({**NAMES, "training": {"learning_rate": 0.9}, "model": {"name": NAMES["model"], "stem": 1}})
    assert override.training.learning_rate == 0.9
    assert override.model == ToyModel(widths=(4, 4), stem=1)
    # A default for the model that the workload names must not reach a model that someone else names.
    assert configs.to_dict(given_config({"workload": NAMES["workload"], "model": "cnn"}))["model"]["name"] == "cnn"


def test_values_of_a_named_section_leave_with_its_name() -> None:
    base = {"method.name": "toy_options:ToyMethod", "method.mu": 0.7}
    assert configs.build([base, {"method.name": "toy_options:ToyMethod"}]).method.mu == 0.7
    configs.build([base, {"method.name": "fedavg"}])  # mu was ToyMethod's
    with pytest.raises(ConfigError, match=r"Unknown option method\.mu"):
        configs.build([{"method.mu": 0.7}, {"method.name": "fedavg"}])  # mu was nobody's


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        ({"training": {"learning_rat": 1}}, r"option training\.learning_rat\. Did you mean training\.learning_rate\?"),
        ({"training": {"lr": 1}}, r"Did you mean training\.learning_rate\?.*optimizer, learning_rate"),
        ({"trainin": {"momentum": 0}}, r"Did you mean training\.momentum\?"),
        ({"trainin": {}}, "Unknown option trainin"),
        ({"sed": 1}, r"Unknown option sed\. Did you mean seed\?"),
        ({"method": {"name": "fedavg", "mu": 1}}, r"Unknown option method\.mu"),
        ({"method": "fedavgg"}, "Unknown method 'fedavgg'"),
        ({"method": {"name": 3}}, "method.name: 3 is not allowed"),
        ({"method": 3}, "method must be a section"),
        ({"training": [1]}, "training must be a section"),
        ({"defense": []}, "defense must be a section"),
        ({"training": {"learning_rate": "fast"}}, "training.learning_rate: 'fast' is not allowed"),
        ({"seed": {"a": 1}}, r"Unknown option seed\.a"),
        ({"workload": {"name": "toy_options:ToyWorkload", "clients": 51}}, "workload.clients: 51 .* ≤ 50"),
        (
            {"workload": {"name": "toy_options:ToyWorkload", "clients": 2, "test_clients": 3}},
            "workload: test_clients must not exceed clients",
        ),
        ([1, 2], "expected sections"),
        (
            {"training": {"momentum": 0.5}, "training.momentum": 0},
            r"config: training\.momentum is given twice, in two spellings, and only one would count\. Leave one out",
        ),
        ({"method": "fedavg", "method.name": "fedprox"}, r"config: method\.name is given twice"),
        ({"engine": {"visit_deadline": 7.0, "task_deadline": 8.0}}, r"config: engine\.task_deadline is given twice"),
    ],
)
def test_plain_settings_are_strict(data: Any, wanted: str) -> None:
    with pytest.raises(ConfigError, match=wanted):
        given_config(data)


def test_yaml_is_complete_and_has_lists_on_one_line() -> None:
    config = toy(schedule=Schedule(joins=(3, 2), join_every=4), training=Training(learning_rate=1e-5))
    text = configs.to_yaml(config)
    assert "joins: [3, 2]" in text
    data = yaml.safe_load(text)
    assert data == configs.to_dict(config)
    sections = ["method", "workload", "model", "training", "schedule", "evaluation", "devices", "timing", "events"]
    sections += ["attack", "privacy", "compression", "defense"]
    assert [*data] == [*sections, "engine", "seed", "seed_of", "output", "pictures"]
    for section, cls in configs.SECTIONS.items():
        assert {*data[section]} == {entry.name for entry in dataclasses.fields(cls)}
    assert given_config(data) == config


@settings(deadline=None, max_examples=30)
@given(
    rate=st.floats(1e-12, 1e12),
    rounds=st.integers(1, 10**9),
    joins=st.lists(st.integers(1, 99), min_size=2, max_size=5),
    output=st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=12),
    seed=st.integers(0, 2**63),
)
def test_a_config_comes_back_from_its_yaml(rate: float, rounds: int, joins: list[int], output: str, seed: int) -> None:
    config = toy(
        training=Training(learning_rate=rate),
        schedule=Schedule(rounds=rounds, joins=tuple(joins), join_every=1),
        seed=seed,
        output=output,
    )
    assert given_config(yaml.safe_load(configs.to_yaml(config))) == config


def test_differences_leave_out_what_cannot_change_results() -> None:
    before = toy(training=Training(learning_rate=0.05))
    after = toy(
        training=Training(learning_rate=0.1),
        engine=Engine(backend="inline", actors=3, threads=2),
        schedule=Schedule(joins=(3, 2), join_every=4),
        workload=ToyWorkload(folder="there"),
        output="elsewhere",
    )
    assert differences(before, before) == []
    assert differences(before, after) == [
        "training.learning_rate: 0.05 → 0.1",
        "schedule.joins: [] → [3, 2]",
        "schedule.join_every: 0 → 4",
        "engine.threads: 1 → 2",
    ]


def test_another_method_is_one_difference() -> None:
    other = default_config("fedavg", NAMES["workload"], NAMES["model"])
    mine = given_config({**configs.to_dict(other), "method": {"name": NAMES["method"], "mu": 0.5}})
    assert differences(other, mine) == ["method.name: fedavg → toy_options:ToyMethod"]


def test_a_wrong_default_of_a_method_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ToyMethod, "defaults", {"training.learning_rates": 1})
    with pytest.raises(ConfigError, match=r"Unknown option training\.learning_rates"):
        given_config(NAMES)


def test_an_option_of_an_earlier_version_is_read_by_its_new_name() -> None:
    assert given_config({"engine": {"visit_deadline": 7.0}}).engine.task_deadline == 7.0
    backdoor = {"kind": "backdoor", "target": 3}
    assert given_config({"attack": backdoor, "workload": "digits"}).attack.target_label == 3


def test_an_option_that_is_no_more_may_be_named_switched_off() -> None:
    """As kept runs of the first studies do."""
    assert given_config({"engine": {"vectorise": False}}) == given_config({})
    with pytest.raises(ConfigError, match=r"Unknown option engine\.vectorise"):
        given_config({"engine": {"vectorise": True}})


@pytest.mark.parametrize(("workload", "older"), [("tudataset", "data"), ("ogb", "data"), ("mnist", "data_dir")])
def test_where_the_data_is_has_one_name_and_older_ones_are_read(workload: str, older: str) -> None:
    names = {"method": {"name": "fedavg"}, "model": {"name": "gin" if workload != "mnist" else "cnn"}}
    now = given_config({**names, "workload": {"name": workload, "path": "there"}})
    assert now.workload.path == "there"
    assert given_config({**names, "workload": {"name": workload, older: "there"}}) == now
    assert given_config({**names, "workload": {"name": workload}, older: "there"}) == now
    assert older not in configs.to_dict(now)["workload"]


def test_a_workload_of_ones_own_may_call_an_option_as_earlier_versions_did(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclasses.dataclass(frozen=True)
    class Mine(ToyWorkload):
        data: str = ""

    monkeypatch.setattr("toy_options.Mine", Mine, raising=False)
    mine = {**NAMES, "workload": "toy_options:Mine"}
    assert given_config({**mine, "data": "x"}).workload.data == "x"
    assert given_config({**mine, "workload": {"name": mine["workload"], "data": "x"}}).workload.data == "x"
    assert build([flatten(mine), flatten({"workload": {"data": "x"}})]).workload.data == "x"
