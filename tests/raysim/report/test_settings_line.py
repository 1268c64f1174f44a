"""The line of a run's settings and the command that repeats it, from plain configs, foreign ones too."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from raysim.config.command_line import parse
from raysim.config.options import options_of_class
from raysim.config.run_config import build, to_dict
from raysim.report.settings_line import LONGEST, repeat_command, settings_line
from raysim.workloads.splits.split_options import OPTIONS_OF_PARTITIONS, SplitOptions


def plain(**options: object) -> dict[str, Any]:
    return to_dict(build([{path.replace("__", "."): value for path, value in options.items()}]))


def test_the_line_says_method_data_split_model_length_rate_and_seed() -> None:
    line = settings_line(plain(method__name="fedavg", seed=3), {})
    assert line == (
        "fedavg · digits, 10 clients, dirichlet (alpha 0.5) · cnn · 20 rounds × 2 epochs · rate 0.1 · seed 3"
    )


def test_the_line_names_what_differs_from_the_default_and_what_kind_of_run_it_is() -> None:
    line = settings_line(
        plain(
            method__name="fedprox",
            method__mu=0.25,
            workload__partition="shards",
            workload__classes_per_client=3,
            schedule__rounds=1,
            schedule__sampling_rate=0.5,
            timing__mode="buffered",
            devices__preset="phones",
            attack__kind="sign-flip",
        ),
        {"clients": 12},
    )
    assert line.startswith(
        "fedprox (mu 0.25) · digits, 12 clients, shards (classes per client 3), 50\u202f% a round · "
    )
    assert " · 1 round × 2 epochs · " in line
    assert " · devices preset phones · timing mode buffered · attack sign-flip · " in line


def test_each_option_of_a_split_says_so_in_its_help() -> None:
    options = options_of_class("workload", SplitOptions)
    for partition, names in OPTIONS_OF_PARTITIONS.items():
        for name in names:
            assert partition in options[f"workload.{name}"].help.text


@pytest.mark.parametrize(
    "words",
    [
        "--method fedavg",
        "--method fedrad --aggregation weighted --workload.clients 7 --seed 4",
        "--method fedprox --mu 0.25 --timing.mode buffered --devices.preset phones --model logistic",
        "--method fedavg --workload synthetic --joins [1,2] --join_every 4 --schedule.epochs 40",
        "--method fedavg --attack.kind sign-flip --attack.malicious [3] --defense.rule median --stop_at 0.9",
    ],
)
def test_the_command_gives_the_same_run(words: str) -> None:
    config = parse(shlex.split(words)).config
    command = shlex.split(repeat_command(to_dict(config)))
    assert command[:3] == ["python", "-m", "raysim.launch"]
    assert parse(command[3:]).config == config


def test_the_command_is_short_and_leaves_placement_out() -> None:
    config = plain(method__name="fedavg", output="/tmp/x", engine__backend="inline", engine__address="evil:1")
    assert repeat_command(config) == "python -m raysim.launch --method fedavg"


def test_a_shell_takes_nothing_of_a_foreign_config_for_a_command() -> None:
    evil = "x; touch PWNED #$(touch PWNED)`touch PWNED`'\""
    command = repeat_command(plain(method__name="fedavg") | {"workload": {"name": "npz", "path": evil}})
    words = shlex.split(command)
    assert words[words.index("--workload.path") + 1] == evil
    for hidden in ("a\x1b[201~b", "a\nb", "a\u202eb"):
        assert repeat_command({"method": "fedavg", "workload": {"name": "npz", "path": hidden}}) == ""


def test_code_that_a_config_names_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "foreign_code.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    config = plain(method__name="fedavg", seed=1) | {"method": {"name": "foreign_code:Method", "heat": 2.0}}
    assert settings_line(config, {}).startswith("foreign_code:Method (heat 2.0) · digits, ")
    # Its defaults are not known, and so every option that can change a result is said.
    for words in (" --method foreign_code:Method ", " --method.heat 2.0 ", " --training.momentum 0.0 "):
        assert words in repeat_command(config)
    assert "foreign_code" not in sys.modules


def test_what_python_gave_has_no_command() -> None:
    assert repeat_command({"method": {"name": "fedavg"}, "model": {"name": "given", "class_name": "Net"}}) == ""


@pytest.mark.parametrize("config", [{}, {"method": "fedavg"}, {"method": {"name": "gone"}, "workload": {"name": "x"}}])
def test_a_config_that_is_not_whole_has_a_line(config: dict[str, Any]) -> None:
    assert isinstance(settings_line(config, {}), str) and isinstance(repeat_command(config), str)


def test_a_long_value_is_cut() -> None:
    line = settings_line({"method": {"name": "m:" + "x" * 10_000}}, {})
    assert len(line) == LONGEST and line.endswith("…")
