"""The project's own studies at other sizes: each is a study file that is right from its first to its last cell."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from raysim.errors import ConfigError
from raysim.reproduce.catalog import Reproduction, Scale, reproduction, reproductions
from raysim.studies.study_file import read

STUDY = {
    "title": "T",
    "table": "page.md",
    "base": {"workload.name": "fashion-mnist", "workload.limit": 100, "model.name": "mlp"},
    "columns": {"A": {"workload.clients": 3}, "B": {"workload.clients": 5}},
    "rows": {
        "X": {"method.name": "fedavg", "paper": {"A": {"accuracy": 1}, "B": {"accuracy": 2}}},
        "Y": {"method.name": "fedprox", "in": {"B": {"method.mu": 0.1}}},
    },
    "compare": [
        {"rows": ["Y"], "against": "X", "measure": "accuracy"},
        {"rows": ["Y"], "against": "X", "measure": "accuracy", "columns": ["B"]},
    ],
    "seeds": [0, 1, 2],
    "picture": {"path": "a.png"},
    "reproduces": {
        "table": "Table 1",
        "small": {
            "base": {"workload.name": "digits", "workload.limit": None},
            "columns": {"A": {"workload.clients": 2}},
            "rows": {"Y": {"method.mu": 0.5}},
        },
        "paper": {"seeds": [0]},
    },
}


def test_a_scale_changes_what_it_names_and_leaves_out_what_is_no_longer_there() -> None:
    found = Reproduction("t", "Table 1", STUDY).at("small")
    assert found["base"] == {"workload.name": "digits", "model.name": "mlp"} and found["seeds"] == [0, 1, 2]
    assert found["columns"] == {"A": {"workload.clients": 2}}
    assert found["rows"]["X"] == {"method.name": "fedavg", "paper": {"A": {"accuracy": 1}}}
    assert found["rows"]["Y"] == {"method.name": "fedprox", "in": {}, "method.mu": 0.5}
    assert found["compare"] == [{"rows": ["Y"], "against": "X", "measure": "accuracy"}]
    files = {"results": "results", "table": "table.md", "latex": "table.tex", "csv": "table.csv"}
    assert files.items() <= found.items()
    assert found["title"] == "T (Table 1, small)" and not {"picture", "reproduces"} & set(found)


def test_what_is_kept_is_the_study_itself() -> None:
    found = Reproduction("t", "Table 1", STUDY).at("kept")
    assert all(found[key] == STUDY[key] for key in ("base", "columns", "rows", "compare", "seeds"))
    assert Reproduction("t", "Table 1", STUDY).at("paper")["seeds"] == [0]


@pytest.mark.parametrize("scale", ["small", "paper"])
@pytest.mark.parametrize("name", sorted(reproductions()))
def test_every_cell_of_every_scale_is_allowed(name: str, scale: Scale, tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(reproduction(name).at(scale), sort_keys=False, allow_unicode=True), encoding="utf-8")
    study = read(path)
    if scale == "small":  # needs no data set
        assert {cell.config().workload.name for cell in study.cells()} <= {"digits", "toy-graphs"}


def test_a_name_that_is_not_there_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"no such table. Did you mean fedrad-table1\?"):
        reproduction("fedrad-tabel1")
