"""Options that are read only with certain values of others (``OnlyWith``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import pytest

from raysim.config import registry
from raysim.config.command_line import parse
from raysim.config.help_text import json_text
from raysim.config.options import Option, options_of_class
from raysim.config.preconditions import check_exist, in_words
from raysim.config.run_config import build, options_of
from raysim.errors import ConfigError
from raysim.launch import main
from raysim.methods.fedavg import FedAvg
from raysim.workloads.option_types import Help, NonNegative, OnlyWith

KNOWN = options_of({})


@dataclass(frozen=True)
class Pulled(FedAvg):
    """FedAvg with an option that another makes useful."""

    defaults: ClassVar[dict[str, object]] = {}
    pull: Annotated[NonNegative, Help("weight of a pull")] = 0.0
    pull_from: Annotated[int, Help("its first round"), OnlyWith("method.pull", say=0.1)] = 1


ASYNC: dict[str, Any] = {"timing.mode": "async", "devices.preset": "uniform"}
NAMED = "tests.raysim.config.test_preconditions:Pulled"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"timing.buffer": 3},
            "timing.buffer: 3 has no effect with timing.mode sync. Leave it out, or set timing.mode to buffered.",
        ),
        (
            {"timing.mode": "quorum"},
            "timing.mode: quorum needs to know when clients are back, and nothing says it with devices.preset none. "
            "Leave it out, or set devices.preset to uniform, classes, phones, day or trace.",
        ),
        (
            {"devices.drop_probability": 0.5},
            "devices.drop_probability: 0.5 has no effect with devices.preset none. Leave it out, or set devices.preset "
            "to uniform, classes, phones, day or trace.",
        ),
        (
            {"devices.preset": "uniform", "devices.spread": 1.0},
            "devices.spread: 1.0 has no effect with devices.preset uniform. Leave it out, or set devices.preset to "
            "phones or day.",
        ),
        (
            {"timing.staleness": "hinge"},
            "timing.staleness: hinge has no effect with timing.mode sync and timing.late drop. Leave it out, or set "
            "timing.mode to async or buffered, or timing.late to carry.",
        ),
        (
            ASYNC | {"timing.staleness_delay": 9},
            "timing.staleness_delay: 9 has no effect with timing.staleness polynomial. Leave it out, or set "
            "timing.staleness to hinge.",
        ),
        (
            ASYNC | {"timing.staleness": "constant", "timing.staleness_slope": 2.0},
            "timing.staleness_slope: 2.0 has no effect with timing.staleness constant. Leave it out, or set "
            "timing.staleness to polynomial or hinge.",
        ),
        (
            {"training.margin_kind": "log"},
            "training.margin_kind: log has no effect with training.margin 0.0. Leave it out, or set training.margin, "
            "0.03 say.",
        ),
        (
            {"defense.rule": "median", "defense.byzantine": 0.3},
            "defense.byzantine: 0.3 has no effect with defense.rule median and defense.before none. Leave it out, or "
            "set defense.rule to trimmed-mean, krum or multi-krum, or defense.before to mixing.",
        ),
        (
            {"training.optimizer_state": "batch", "training.momentum": 0.9},
            "training.optimizer_state: batch has no effect with training.optimizer sgd. Leave it out, or set "
            "training.optimizer to adam or adamw.",
        ),
        (
            {"method.name": "fedssp", "method.preference": False, "method.consensus": "static"},
            "method.consensus: static has no effect with method.preference false. Leave it out, or set "
            "method.preference to true.",
        ),
        (
            {"method.name": "fedrad", "method.aggregation": "weighted", "method.system_gradient": "exact"},
            "method.system_gradient: exact has no effect with method.aggregation weighted. Leave it out, or set "
            "method.aggregation to dynamic.",
        ),
        (
            {"method.name": "fedld", "method.principal": False, "method.conflict": "drop"},
            "method.conflict: drop has no effect with method.principal false. Leave it out, or set method.principal "
            "to true.",
        ),
        (
            {"method.name": NAMED, "method.pull_from": 3},
            "method.pull_from: 3 has no effect with method.pull 0.0. Leave it out, or set method.pull, 0.1 say.",
        ),
    ],
)
def test_an_option_that_would_not_be_read_is_refused_in_one_form(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build([{"method.name": "fedavg"} | settings])
    assert str(caught.value) == said


@pytest.mark.parametrize(
    "settings",
    [
        {"timing.mode": "buffered", "devices.preset": "phones", "timing.buffer": 3},
        {"timing.buffer": 10},  # the default itself
        {"devices.spread": 0.5, "devices.latency": 0.05, "timing.staleness_delay": 4},  # defaults too
        {"devices.preset": "day", "devices.spread": 1.0, "devices.watts": 2.0},
        ASYNC | {"timing.staleness": "hinge", "timing.staleness_slope": 10.0, "timing.staleness_delay": 9},
        {"timing.mode": "quorum", "timing.late": "carry", "devices.preset": "day", "timing.staleness": "constant"},
        {"defense.rule": "median", "defense.before": "mixing", "defense.byzantine": 0.3},
        {"training.optimizer_state": "kept", "training.momentum": 0.9},
        {"training.optimizer_state": "batch", "training.optimizer": "adam"},
        {"compression.down": "top-k", "compression.kept_share": 0.5},
        {"method.name": NAMED, "method.pull_from": 3, "method.pull": 0.5},
    ],
)
def test_one_that_is_read_is_accepted(settings: dict[str, Any]) -> None:
    build([{"method.name": "fedavg"} | settings])


def test_the_command_line_ends_with_code_2_and_the_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--method", "fedavg", "--timing.buffer", "3"]) == 2
    assert "timing.buffer: 3 has no effect with timing.mode sync" in capsys.readouterr().err


def test_help_and_schema_say_it() -> None:
    text = " ".join(parse(["--method", NAMED, "--help"]).text.split())
    for said in (
        "· only with timing.mode async, buffered",
        "only with training.margin set",
        "only with compression.kind low-rank or compression.down low-rank",
        "batch only with training.optimizer adam, adamw · only with",
        "only with method.pull set",
    ):
        assert said in text
    assert '"only_with": "only with timing.mode buffered"' in json_text(parse(["--help", "--json"]).told)


@pytest.mark.parametrize(
    ("note", "said"),
    [
        (
            OnlyWith("timing.moed", "async"),
            "OnlyWith names timing.moed, which is no option of this run. Did you mean timing.mode",
        ),
        (OnlyWith("timing.mode", "asink"), "OnlyWith names 'asink' of timing.mode, which has sync, deadline, "),
        (OnlyWith("training.margin"), r"OnlyWith\('training.margin'\) needs values, or say"),
        (OnlyWith("timing.mode", "sync") | OnlyWith("timing.moed"), "OnlyWith names timing.moed"),
        (OnlyWith("timing.mode", "sync", of=("yes",)), "OnlyWith names 'yes' of method.x, which has False, True"),
    ],
)
def test_a_note_that_names_what_is_not_there_is_refused(note: OnlyWith, said: str) -> None:
    with pytest.raises(ConfigError, match=f"method.x: {said}"):
        check_exist(KNOWN | {"method.x": Option("method.x", Annotated[bool, note], False)})


@dataclass(frozen=True)
class Slip(FedAvg):
    """FedAvg with a note that names no option."""

    tau: Annotated[NonNegative, Help("a weight"), OnlyWith("method.teu", say=1.0)] = 0.0


def test_a_slip_in_a_class_of_a_users_own_is_refused_before_the_run() -> None:
    with pytest.raises(ConfigError, match=r"method\.tau: OnlyWith names method\.teu, which is no option"):
        build([{"method.name": "tests.raysim.config.test_preconditions:Slip"}])


def test_all_values_of_all_notes_are_allowed_values() -> None:
    """What the check on import leaves out, as it does without pydantic: ranges and types."""
    for kind in registry.KINDS:
        for name in registry.known(kind):
            classes = {kind: registry.resolve(kind, name)}
            own = options_of_class(kind, classes[kind])
            known = {**KNOWN, **own}
            check_exist(known)
            for option in known.values():
                for note in option.only_with:
                    for path, values, say in note.any_of:
                        for value in (*values, *(() if say is None else (say,))):
                            known[path].check((value,) if isinstance(known[path].default, tuple) else value)
                        assert path != option.path
                    assert in_words(option)
