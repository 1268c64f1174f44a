"""The facts that a crate states of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from raysim.config.run_config import build, to_dict
from raysim.crate.run_facts import RunFacts, as_text
from raysim.workloads.data_sets.catalog import BY_NAME


def facts(**fields: Any) -> RunFacts:
    plain: dict[str, Any] = {"head": "", "settings": {}, "config": {}, "summary": {}, "environment": {}}
    return RunFacts(Path("run"), **{**plain, **fields})


def test_data_are_known_by_their_digests() -> None:
    published = facts(config=to_dict(build([{"workload.name": "heart-disease", "method.name": "fedavg"}])))
    assert set(published.data_digests) == {
        f"processed.{place}.data" for place in ("cleveland", "hungarian", "switzerland", "va")
    }
    assert all(digest.startswith("sha256:") for digest in published.data_digests.values())
    given = facts(config={"workload": {"name": "given", "title": "wards"}}, settings={"workload.digest": "ab"})
    assert (given.data, given.data_digests, given.published) == ("wards", {"data": "sha256:ab"}, None)
    assert not facts(config={"workload": {"name": "digits"}}).data_digests
    own = build([{"workload.name": "heart-disease", "workload.path": "mine", "method.name": "fedavg"}])
    assert not facts(config=to_dict(own)).data_digests


@pytest.mark.parametrize(
    "section",
    [
        {"name": "table", "path": "mine/adult.csv"},
        {"name": "npz", "path": "sub/cifar10.npz"},
        {"name": "text", "path": "corpus/mnist.txt"},
        {"name": "folder", "path": "mine/har"},
        {"name": "huggingface", "path": "mine/femnist"},
        {"name": "given", "title": "mnist"},
    ],
)
def test_data_of_ones_own_are_not_published_ones_of_their_name(section: dict[str, str]) -> None:
    own = facts(config={"workload": section})
    assert own.data in BY_NAME and own.published is None and not own.data_digests


def test_what_tells_of_the_machine_alone_is_no_file_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "tensorboard").mkdir()
    machines = ("run.log", ".remote.json", "tensorboard/events.out.tfevents.1.host", "rounds.csv.partial")
    for name in ("rounds.csv", *machines):
        (tmp_path / name).touch()
    plain: dict[str, Any] = {"head": "", "settings": {}, "config": {}, "summary": {}, "environment": {}}
    assert [*RunFacts(tmp_path, **plain).files()] == [Path("rounds.csv")]


def test_versions_and_results() -> None:
    made = {"python": "3.11.7", "versions": {"raysim": "0.1.0", "torch": "2.15.0", "scipy": None}, "commit": "c0ffee"}
    assert facts(environment=made).versions == {"Python": "3.11.7", "raysim": "0.1.0+gc0ffee", "torch": "2.15.0"}
    assert facts(environment={**made, "dirty": True}).versions["raysim"] == "0.1.0+gc0ffee.changed"
    summary = {"method": "fedavg", "seed": 3, "clients": 4, "accuracy": 0.5, "loss": None, "synthetic": False}
    assert facts(summary=summary).results == {"accuracy": 0.5}
    assert [as_text(value) for value in (0.1, "sgd", [1, 2], None, True)] == ["0.1", "sgd", "[1, 2]", "null", "true"]
