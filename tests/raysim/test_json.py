"""``--json``: standard output is one JSON object, for scripts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from raysim.config.run_config import default_config, to_dict
from raysim.launch import main
from tests.raysim.conftest import SMALL


@pytest.fixture
def told(place: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs the command line; gives exit code, the object on standard output (None: nothing) and standard error."""

    def run(*words: str) -> tuple[int, Any, str]:
        code = main([*words, "--json"])
        captured = capsys.readouterr()
        return code, json.loads(captured.out) if captured.out else None, captured.err

    return run


def test_list_names_everything_with_its_meaning(told: Any) -> None:
    code, names, _ = told("--list")
    assert code == 0 and {*names} == {"methods", "workloads", "models"}
    assert names["methods"]["fedprox"].startswith("FedProx: FedAvg whose local loss")
    assert {"digits", "tudataset"} <= {*names["workloads"]} and "cnn" in names["models"]


def test_help_is_a_schema_that_the_config_of_the_run_meets(told: Any) -> None:
    names = ("--method", "fedprox", "--workload", "synthetic", "--model", "mlp")
    code, schema, _ = told("--help", *names)
    assert code == 0
    jsonschema.Draft202012Validator.check_schema(schema)
    code, config, _ = told("--print-config", *names, "--mu", "0.5", "--hidden", "8,4")
    assert code == 0 and config["method"] == {"name": "fedprox", "mu": 0.5} and config["model"]["hidden"] == [8, 4]
    jsonschema.validate(config, schema)
    assert schema["properties"]["method"]["properties"]["mu"] == {
        "type": "number",
        "minimum": 0,
        "default": 0.01,
        "description": "weight μ of the proximal term",
        "source": "Li et al. 2020, Eq. 2",
    }
    assert schema["properties"]["output"]["placement"] is True
    defaults = to_dict(default_config("fedprox", "synthetic", "mlp"))
    for section, values in defaults.items():
        for name, value in values.items() if isinstance(values, dict) else ():
            if name != "name":
                assert schema["properties"][section]["properties"][name]["default"] == value


@pytest.mark.parametrize(
    ("section", "name", "value"),
    [
        ("method", "mu", -1),
        ("method", "name", "fedavg"),
        ("method", "neunet_rate", 0.1),
        ("training", "optimizer", "adamm"),
        ("training", "momentum", 1.0),
        ("schedule", "joins", [3, 0]),
        ("engine", "profile", "true"),
    ],
)
def test_the_schema_refuses_what_a_run_refuses(told: Any, section: str, name: str, value: object) -> None:
    _, schema, _ = told("--help", "--method", "fedprox")
    config = to_dict(default_config("fedprox"))
    jsonschema.validate(config, schema)
    config[section][name] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(config, schema)


def test_a_finished_run_gives_its_summary_and_nothing_else(told: Any, tmp_path: Path) -> None:
    code, summary, error = told(*SMALL, "--output=run", "--profile")
    assert code == 0 and "round" in error
    assert summary.pop("status") == "finished" and summary.pop("message") == ""
    assert summary.pop("folder") == str(tmp_path / "run")
    assert summary == json.loads((tmp_path / "run" / "summary.json").read_text())


def test_what_a_users_own_code_prints_is_not_part_of_it(told: Any, tmp_path: Path) -> None:
    (tmp_path / "talking.py").write_text(
        "from dataclasses import dataclass\n"
        "from raysim.methods.fedavg import FedAvg\n"
        "print('imported')\n"
        "@dataclass(frozen=True)\n"
        "class Talking(FedAvg):\n"
        "    def message(self, server, client):\n"
        "        print('to', client)\n"
        "        return super().message(server, client)\n"
    )
    code, summary, error = told(*SMALL, "--method=talking:Talking")
    assert code == 0 and summary["status"] == "finished"
    assert "imported" in error and "to 3" in error


def test_a_failed_run_says_why(told: Any, tmp_path: Path) -> None:
    code, ending, error = told(*SMALL, "--method=mine:Broken", "--output=run")
    assert code == 1 and ending["status"] == "failed" and ending["folder"] == str(tmp_path / "run")
    assert "client 2, round 2, stage train" in ending["message"] and f"raysim: {ending['message']}" in error
    assert "--resume run" in error
    code, ending, _ = told(*SMALL, "--method=mine:Broken", "--round=1", "--output=other")
    assert code == 1 and ending["folder"] is None  # nothing was computed, and the folder is taken back


def test_a_request_that_is_refused_gives_no_object(told: Any) -> None:
    code, ending, error = told("--rounds=many")
    assert code == 2 and ending is None and "schedule.rounds: 'many' is not allowed" in error


def test_the_version_and_a_value(told: Any) -> None:
    assert [*told("--version")[1]] == ["raysim"]
    assert "--json takes no value" in told("--json=yes")[2]
