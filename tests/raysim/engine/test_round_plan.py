"""Cohorts that depend on losses: the same bits after a stop and computed again, and what cannot be done with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raysim.config.privacy import Privacy
from raysim.engine import rounds
from raysim.engine.evaluation import training_losses
from raysim.engine.round_plan import Selection
from raysim.errors import ConfigError, LostError
from raysim.running.simulation import run
from raysim.storage.checkpoint_digests import read_digests
from raysim.storage.proof_file import read_proof
from raysim.timeline import main
from raysim.verification.folder_check import FolderCheck
from raysim.verify import main as verify
from raysim.wrappers.accounting import Sums, epsilon
from tests.fingerprint import fingerprint
from tests.small_runs import LOGISTIC, small_run
from tests.watch import stopped

BASE: dict[str, Any] = LOGISTIC | {
    "workload.clients": 8,
    "schedule.sampling_rate": 0.4,
    "schedule.rounds": 6,
    "engine.checkpoint_every": 1,
    "engine.keep_checkpoints": 6,
}
OORT = BASE | {"schedule.sampling": "oort"}
PHONES = {"devices__preset": "phones", "devices__drop_probability": 0.4}
KINDS: dict[str, dict[str, Any]] = {
    "power of choice": {"schedule__sampling": "power-of-choice"},
    # So many tasks are lost that some cohorts are chosen twice in a round.
    "oort, in virtual time": PHONES | {"schedule__pacer_window": 1},
    "oort, by models of clients' own": {"method__name": "local"},
}


@pytest.mark.parametrize("name", KINDS)
def test_the_same_bits_after_a_stop(tmp_path: Path, name: str) -> None:
    whole = run(small_run(tmp_path / "whole", OORT, **KINDS[name]))
    config = small_run(tmp_path / "stopped", OORT, **KINDS[name])
    resumed = run(config, resume=stopped(config, rounds=3))
    assert fingerprint(whole.folder) == fingerprint(resumed.folder)
    assert all("selection" in entry.content for entry in read_proof(whole.folder / "proof.jsonl")[1:-1])
    if name == "oort, by models of clients' own":  # nothing is sent but a loss of each of the three
        assert whole.rounds["bytes_up"].tolist() == [3 * 4] * 6
    if name == "oort, in virtual time":
        assert verify([str(whole.folder), "--rounds=4"]) == 0
        check = FolderCheck(whole.folder)
        assert check.run().equal
        found = read_digests(max((whole.folder / "checkpoints").iterdir()))
        (told,) = check._wrong_in(replace(found, selection="0" * 64))
        assert "the sampler's memory after round 6 is not that of the proof" in told


@pytest.mark.parametrize("sampling", ["oort", "power-of-choice"])
def test_a_run_that_died_between_its_last_round_and_its_summary_is_concluded(tmp_path: Path, sampling: str) -> None:
    """Its clock plans no step, as no round is left: the devices' table was an IndexError, in every resume."""
    config = small_run(tmp_path / "run", BASE | {"schedule.sampling": sampling}, **PHONES)
    whole = run(config)
    left = {name: (whole.folder / name).read_bytes() for name in ("summary.json", "devices.csv")}
    for name in left:
        (whole.folder / name).unlink()
    run(config, resume=whole.folder)
    assert {name: (whole.folder / name).read_bytes() for name in left} == left


def test_losses_that_are_lost_are_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node dies while clients answer: the run goes back to the round before, in which the clock's events begin."""
    options = KINDS["power of choice"] | PHONES
    whole = run(small_run(tmp_path / "whole", OORT, **options))
    asked: list[int] = []

    def lost_once(config: Any, pool: Any, state: Any, clients: Any, *others: Any) -> Any:
        asked.append(state.round)
        if len(asked) == 4:
            raise LostError("the answers were lost")
        return training_losses(config, pool, state, clients, *others)

    monkeypatch.setattr(rounds, "training_losses", lost_once)
    assert fingerprint(run(small_run(tmp_path / "lost", OORT, **options)).folder) == fingerprint(whole.folder)
    assert len(asked) > 4


def test_recorded_cohorts_come_back_in_order() -> None:
    found = Selection(None).with_cohort([2, 5], 0.5).with_cohort([], 0.0).with_cohort([1], 2.0)
    assert found.cohorts() == [([2, 5], 0.5), ([], 0.0), ([1], 2.0)]
    assert found.chosen.dtype == np.int64 and Selection(None).cohorts() == []


def test_sizes_are_known_to_the_clock_before_the_run(tmp_path: Path) -> None:
    """In any mode, and its ε counts on no sampling."""
    timed = {"timing__mode": "async", "timing__concurrency": 3, "devices__preset": "phones"}
    sizes = BASE | {"schedule.sampling": "by-size"}
    assert len(run(small_run(tmp_path / "async", sizes, **timed)).clients) == 6
    noise = {"privacy__kind": "central", "privacy__noise_multiplier": 1.0}
    private = run(small_run(tmp_path / "private", sizes, schedule__rounds=2, **noise)).rounds
    spent = [epsilon([(Sums(1, 1, True, rounds),)], 1.0, Privacy("central")) for rounds in (1, 2)]
    assert private["epsilon"].tolist() == spent
    assert private["neighbors"].tolist() == ["sampling: by-size, not counted, one client replaced"] * 2


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"privacy__kind": "local", "privacy__noise_multiplier": 1.0}, "losses that clients send without noise"),
        ({"privacy__kind": "dp-sgd", "privacy__epsilon": 8.0}, "amplifies nothing and no ε would hold"),
        ({"devices__preset": "phones", "timing__mode": "async"}, "timing.mode async.*begin while others train"),
        (
            {"devices__preset": "phones", "timing__mode": "quorum", "timing__late": "carry"},
            "timing.mode quorum and timing.late carry",
        ),
        ({"schedule__without": (3,)}, "schedule.without .3.: .* left out would choose others"),
        (
            {"devices__preset": "phones", "events__drift": "labels", "events__drift_at": 1.0},
            "when the run ends is not known before",
        ),
    ],
)
def test_what_cannot_be_done_with_cohorts_by_loss(tmp_path: Path, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=f"schedule.sampling: oort with .*{reason}"):
        small_run(tmp_path / "run", OORT, **options)


@pytest.mark.parametrize("sampling", ["oort", "power-of-choice"])
def test_updates_of_cohorts_by_loss_may_be_clipped_without_noise(tmp_path: Path, sampling: str) -> None:
    """The refusal of noise advises it: no ε is told, as there is none."""
    chosen = BASE | {"schedule.sampling": sampling, "privacy.kind": "central", "privacy.clip": 0.1}
    with pytest.raises(ConfigError, match=r"or privacy\.noise_multiplier to 0"):
        small_run(tmp_path / "noise", chosen, privacy__noise_multiplier=1.0)
    result = run(small_run(tmp_path / "clipped", chosen, privacy__noise_multiplier=0.0))
    assert result.clients["clipped"].any() and "epsilon" not in result.rounds


def test_a_plan_without_training_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--devices.preset=phones", "--schedule.sampling=oort"]) != 0
    assert "looks at losses, so that no round is known without the training" in capsys.readouterr().err
