"""Portable runs: the caps of instruction sets are set in every process, and what cannot be kept is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from raysim import portable
from raysim.config.run_config import build, with_sections
from raysim.contribution.coalitions import Coalitions
from raysim.errors import ConfigError
from raysim.running.preflight import check_request
from raysim.running.simulation import run
from raysim.verification.folder_check import FolderCheck
from raysim.verification.spot import spot
from raysim.verify import verify
from tests.attack.folders import small
from tests.small_runs import small_run, words

SETTINGS = {
    "method.name": "fedavg",
    "model.name": "cnn",
    "workload.limit": 120,
    "workload.clients": 2,
    "schedule.rounds": 1,
    "schedule.local_epochs": 1,
    "engine.backend": "inline",
    "engine.portable": True,
    "pictures": False,
}


@pytest.mark.slow
def test_caps_that_are_set_already_change_no_digest(tmp_path: Path) -> None:
    """Without the option each of these caps has other digests on a processor with AVX-512."""
    heads = set()
    for cap in ("default", "avx512"):
        folder = tmp_path / cap
        command = [sys.executable, "-m", "raysim.launch", *words(SETTINGS), f"--output={folder}"]
        environment = {**os.environ, "ATEN_CPU_CAPABILITY": cap, "ONEDNN_MAX_CPU_ISA": "SSE41"}
        subprocess.run(command, env=environment, check=True, capture_output=True)
        heads.add(json.loads((folder / "summary.json").read_text())["proof"])
    assert len(heads) == 1


def test_a_search_of_portable_runs_sets_what_they_need_by_itself(tmp_path: Path) -> None:
    """Also where all trials are computed in its own process, whose libraries are loaded by then."""
    options = (
        "--method fedprox --space mu=0.1:1:log --trials 1 --validation_share 0.2 --rounds 1 --limit 120 --clients 2"
    )
    command = [sys.executable, "-m", "raysim.search", *options.split(), "--model=logistic", "--engine.portable=true"]
    without = {name: value for name, value in os.environ.items() if name not in portable.VARIABLES}
    more = ["--workers=1", f"--output={tmp_path / 'search'}"]
    ended = subprocess.run([*command, *more], env=without, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_a_process_that_has_chosen_its_instructions_is_told_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = small_run(tmp_path / "run", {}, engine__portable=True)
    for name in portable.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    portable.start_again()  # not in a process that is no command of raysim's
    with pytest.raises(ConfigError, match=r"Start Python with ATEN_CPU_CAPABILITY='avx2' .*or the run with python -m"):
        check_request(config)
    for name, value in portable.VARIABLES.items():
        monkeypatch.setenv(name, value)
    check_request(config)


def test_a_processor_that_cannot_is_refused_wherever_tasks_are_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in portable.VARIABLES.items():
        monkeypatch.setenv(name, value)
    config = small(tmp_path / "run", schedule__rounds=2, engine__portable=True, engine__proof="clients")
    config = with_sections(config, engine=replace(config.engine, checkpoint_every=1))
    check = FolderCheck.whole(run(config).folder)

    class OfTheLastRound(Random):
        def sample(self, population: Any, k: int, **_: object) -> list[Any]:
            return list(population[-k:])  # which goes on from a checkpoint

    spot(check, config, 1, tmp_path / "tasks", OfTheLastRound())
    assert check.verdict.equal and Coalitions(config, "accuracy", {}).clients == (0, 1, 2)
    monkeypatch.setattr(portable, "has_avx2", lambda: False)
    for compute in (
        lambda: spot(check, config, 1, tmp_path / "again", OfTheLastRound()),
        lambda: verify(check.path, config, rounds=None),
        lambda: Coalitions(config, "accuracy", {}),
    ):
        with pytest.raises(ConfigError, match=r"engine\.portable: this processor has no AVX2 and FMA"):
            compute()


@pytest.mark.parametrize(
    "option",
    [{"engine.gpus_per_client": 1.0}, {"training.precision": "bf16"}, {"engine.address": "auto"}],
    ids=lambda option: next(iter(option)),
)
def test_what_it_cannot_hold_is_refused(option: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"engine\.portable: true cannot be kept with"):
        build([{"engine.portable": True, **option}])
