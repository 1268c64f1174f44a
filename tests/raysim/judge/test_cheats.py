"""Planted cheats are refused, each with its reason, and honest pairs are judged."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from raysim.config import run_config
from raysim.config.sections import Training
from raysim.judge import tuning
from raysim.judge.__main__ import main
from raysim.judge.runs import read_side
from raysim.replay.__main__ import main as replay
from raysim.studies import command
from raysim.studies.study_file import read as read_study
from tests.raysim.judge.groups import A, B, copied, run, search
from tests.raysim.small_study import keep

SEEDS = (0, 1, 2)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``a`` and ``b``: honest runs of three seeds; and a folder for each cheat that takes a run of its own."""
    place = tmp_path_factory.mktemp("groups")
    for seed in SEEDS:
        run(place / "a" / str(seed), seed, **A)
        run(place / "b" / str(seed), seed, **B)
    for name, (options, _) in OPTIONS.items():
        run(place / "other" / name, 0, **{**B, **options})
    run(place / "fourth", 3, **B)
    return place


OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "more rounds": ({"rounds": 3}, "rounds"),
    "more epochs": ({"local_epochs": 3}, "epochs"),
    "fewer participants": ({"sampling_rate": 0.5}, "participants"),
    "fewer clients": ({"clients": 3}, "number of clients"),
    "an easier split": ({"alpha": 10.0}, "split"),
    "more data": ({"limit": 300}, "limit of the data"),
    "less test data": ({"test_share": 0.1}, "test data"),
    "augmentation": ({"augment": "crop_flip"}, "preprocessing"),
    "a larger model": ({"model": "mlp"}, "model"),
    "another precision": ({"precision": "bf16"}, "precision"),
    "a learning rate of its own": ({"learning_rate": 0.2}, "training"),
    "fine-tuning": ({"fine_tune": 1}, "evaluation"),
    "another evaluation": ({"evaluation.every": 2}, "judged rounds"),
    "another time budget": ({"devices.preset": "phones"}, "virtual time"),
    "fewer attackers": ({"attack.kind": "sign-flip"}, "conditions"),
    "other cohorts": ({"seed_of": ["participants=3"]}, "random streams"),
    "patience by test data": ({"patience": 1}, "test data for choosing"),
    "a target by test data": ({"stop_at": 0.2}, "test data for choosing"),
}
"""A cheat → the options of side B's run, and the kind of the refusal."""


def judged(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    """The command's answer as JSON; a refusal's exit code is 1 and every reason is whole."""
    code = main([*map(str, words), "--json"])
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert code == (told["verdict"] == "refused")
    for refusal in told.get("refusals", ()):
        assert all(refusal.values()), refusal
    return told


def kinds(told: dict[str, Any]) -> list[str]:
    return [refusal["kind"] for refusal in told.get("refusals", ())]


@pytest.mark.parametrize("name", OPTIONS)
def test_options_that_favor_one_side_are_refused(runs: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = judged(capsys, "--a", runs / "a/0", "--b", runs / "other" / name)
    assert OPTIONS[name][1] in kinds(told)


Edit = Callable[[Path], object]


def _changed(name: str, old: str, new: str) -> Edit:
    def edit(folder: Path) -> None:
        text = (folder / name).read_text(encoding="utf-8")
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1), encoding="utf-8")

    return edit


def _other_cell(folder: Path) -> None:
    """One accuracy of the table, raised."""
    lines = (folder / "rounds.csv").read_text(encoding="utf-8").splitlines()
    place = lines[0].split(",").index("accuracy")
    cells = lines[-1].split(",")
    cells[place] = "0.99"
    (folder / "rounds.csv").write_text("\n".join([*lines[:-1], ",".join(cells)]) + "\n", encoding="utf-8")


def _new_chain(folder: Path) -> None:
    """A chain that follows from its first line, which has another learning rate."""
    head, lines = "", []
    for line in (folder / "proof.jsonl").read_text(encoding="utf-8").splitlines():
        content = json.loads(line)
        del content["head"]
        if "settings" in content:
            content["settings"]["training.learning_rate"] = 0.5
        body = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
        head = hashlib.sha256(f"{head}{body}".encode()).hexdigest()
        lines.append(f'{body[:-1]},"head":"{head}"}}')
    (folder / "proof.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


FOLDERS: dict[str, tuple[Edit, str]] = {
    "an edited table": (_other_cell, "proof"),
    "a forged chain": (_new_chain, "proof"),
    "a broken chain": (_changed("proof.jsonl", '"round":1,', '"round":1, '), "proof"),
    "an edited summary": (_changed("summary.json", '"accuracy": 0.', '"accuracy": 1.'), "proof"),
    "edited options": (_changed("config.yaml", "mu: 0.1", "mu: 0.2"), "proof"),
    "no proof": (lambda folder: (folder / "proof.jsonl").unlink(), "no proof"),
    "an unfinished run": (lambda folder: (folder / "summary.json").unlink(), "unfinished run"),
    "another commit": (_changed("environment.json", '"commit": ', '"commit": "0", "was": '), "code"),
    "another version": (_changed("environment.json", '"numpy": "', '"numpy": "1.'), "version"),
    "other samples": (_changed("partition.csv", "client 0,", "client zero,"), "data"),
}
"""A cheat → what is done to a folder of side B, and the kind of the refusal."""


@pytest.mark.parametrize("name", FOLDERS)
def test_folders_that_were_changed_are_refused(
    runs: Path, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = copied(runs / "b/0", tmp_path)
    edit, kind = FOLDERS[name]
    edit(folder)
    assert kinds(judged(capsys, "--a", runs / "a/0", "--b", folder)) == [kind]


def test_seeds_that_were_picked_and_runs_that_count_twice_are_refused(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def of(*words: object) -> list[str]:
        return kinds(judged(capsys, *words))

    def some(side: str, *seeds: int) -> list[Path]:
        return [runs / side / str(seed) for seed in seeds]

    assert of("--a", *some("a", 0, 1), "--b", *some("b", 0, 2)) == ["other seeds"]
    assert of("--a", runs / "a", "--b", *some("b", 0, 1)) == ["number of seeds"]
    assert of("--a", runs / "a", "--b", runs / "b", runs / "fourth") == ["number of seeds"]
    assert of("--a", *some("a", 0, 2), "--b", *some("b", 0, 2)) == ["gaps in the seeds"]
    shutil.copytree(runs / "b/1", tmp_path / "copy")
    assert of("--a", *some("a", 0, 1), "--b", *some("b", 0, 1), tmp_path / "copy") == ["copied run"]
    again = runs / "other" / "a learning rate of its own"
    assert of("--a", *some("a", 0, 1), "--b", *some("b", 0, 1), again)[0] == "repeated seed"
    assert of("--a", runs / "a", "--b", *some("a", 0), *some("b", 1, 2))[0] == "same run on both sides"
    assert "mixed settings" in of("--a", *some("a", 0, 1), "--b", again, *some("b", 1))


def test_another_start_is_refused(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = str(runs / "a/1/model.safetensors")
    trained = run(tmp_path / "trained", 0, **B, weights_file=weights)
    told = judged(capsys, "--a", runs / "a/0", "--b", trained)
    assert kinds(told) == ["initial weights"] and weights in told["refusals"][0]["b"]
    words = ["--from", "2", "--set", "learning_rate=0.3", "--output", str(tmp_path / "replay")]
    assert replay([str(runs / "b/0"), *words]) == 0
    capsys.readouterr()
    assert kinds(judged(capsys, "--a", runs / "a/0", "--b", tmp_path / "replay")) == ["another start"]


def test_measures_that_choose_or_leave_runs_out_are_refused(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for measure in ("best_accuracy", "best_loss", "validation_accuracy"):
        told = judged(capsys, runs / "a", runs / "b", "--measure", measure)
        assert kinds(told) == ["test data for choosing"]
    values = judged(capsys, runs / "a", runs / "b")["values"].values()
    target = sorted(value for pair in values for value in pair)[-1]
    told = judged(capsys, runs / "a", runs / "b", "--measure", f"rounds_to_{target:.6f}")
    assert kinds(told) == ["measure"]


def test_equal_searches_allow_an_option_and_others_do_not(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = runs / "a/0", runs / "other" / "a learning rate of its own"
    of_a = search(tmp_path / "of a", a, [0.1, 0.3])
    words = ("--a", a, "--b", b, "--tuned", "learning_rate")

    def of(name: str, *arguments: Any) -> dict[str, Any]:
        found = search(tmp_path / name, b, *arguments)
        return judged(capsys, *words, "--search-a", of_a, "--search-b", found)

    honest = of("honest", [0.2, 0.3])
    assert honest["verdict"] == "cannot tell"
    assert honest["differences"]["training.learning_rate"] == ["0.1", "0.2"]
    assert of("by loss", [0.2, 0.3], "validation_loss")["verdict"] == "cannot tell"  # the smallest one
    assert kinds(judged(capsys, *words)) == ["tuning without evidence"]
    assert kinds(of("longer", [0.2, 0.3, 0.4])) == ["trials"]
    assert kinds(of("by test", [0.2, 0.3], "accuracy")) == ["test data for choosing"]
    assert kinds(of("not chosen", [0.3, 0.2])) == ["value that was not chosen"]
    for name, kind in {"more rounds": "trials", "fewer clients": "search settings"}.items():
        other = search(tmp_path / name, runs / "other" / name, [0.2, 0.3])
        assert kinds(judged(capsys, *words, "--search-a", of_a, "--search-b", other)) == [kind]


def test_a_trial_that_was_not_trained_to_its_end_is_not_chosen(runs: Path, tmp_path: Path) -> None:
    folder = search(tmp_path / "rungs", runs / "a/0", [0.5, 0.1])  # the first has the better value
    for path in (folder / "results").iterdir():
        path.rename(path.with_name(path.name.replace("seed0.", f"seed0-rounds{2 if 'trial-2' in path.name else 1}.")))
    for path in [*(folder / "results").glob("trial-2-*")]:  # its first rung is there too, and does not count
        shutil.copy(path, path.with_name(path.name.replace("rounds2", "rounds1")))
    for path in (folder / "results").glob("*-rounds1.yaml"):
        _changed(path.name, "rounds: 2", "rounds: 1")(path.parent)
    (side, _) = read_side("A", [runs / "a/0"])
    found = tuning.read(folder, side, (), "method", [])
    assert found.chosen is not None and found.chosen["training.learning_rate"] == 0.1
    assert found.budget == "2 trials × 1 seed, 3 rounds"
    assert side.first.settings["schedule.rounds"] == 2  # which no proof holds, as a resumed run may have more


def test_a_trial_counts_that_has_a_value_for_every_seed(runs: Path, tmp_path: Path) -> None:
    folder = search(tmp_path / "seeds", runs / "a/0", [0.5, 0.1])
    for path in [*(folder / "results").iterdir()]:
        if path.name != "trial-1-seed0.csv":  # a cell of the first and better trial failed
            shutil.copy(path, path.with_name(path.name.replace("seed0", "seed1")))
    (side, _) = read_side("A", [runs / "a/0"])
    found = tuning.read(folder, side, (), "method", [])
    assert found.chosen is not None and found.chosen["training.learning_rate"] == 0.1
    assert found.budget == "2 trials × 2 seeds, 8 rounds"


def test_slips_are_one_sentence(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = str(runs / "a"), str(runs / "b")
    for words, said in {
        (a, b, "--a", a): "not both",
        (a, b, a): "3 folders: two groups are judged",
        (a,): "1 folder: two groups are judged",
        ("--a", a): "two groups are judged",
        (a, b, "--search-a", a): "name the options that were searched",
        (a, b, "--tuned", "rate"): "--tuned rate: no option",
        (a, b, "--measure", "local_gain"): "--measure local_gain",
    }.items():
        assert main([*words]) == 2
        assert said in capsys.readouterr().err


def test_a_run_of_other_code_that_its_proof_agrees_with_is_found_by_computing_it_again(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as changed:
        changed.setattr(Training, "rate_in", lambda own, round: 2 * own.learning_rate)
        forged = run(tmp_path / "forged", 0, **B)
    assert judged(capsys, "--a", runs / "a/0", "--b", forged)["verdict"] == "cannot tell"
    assert kinds(judged(capsys, "--a", runs / "a/0", "--b", forged, "--recompute", 1)) == ["forged proof"]


def test_honest_pairs_are_judged(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = judged(capsys, runs / "a", runs / "b", "--recompute", 1)
    assert told["seeds"] == [*SEEDS] and told["differences"]["method.name"] == ["fedavg", "fedprox"]
    assert told["spent"]["client tasks"] == [24, 24]
    assert main([str(runs / "a"), str(runs / "b"), "--measure", "loss"]) == 0
    text = capsys.readouterr().out
    assert "A (fedavg)" in text and "of loss" not in text and "3 paired seeds" in text


def test_a_study_that_chooses_is_the_search_of_both_sides(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def study(name: str, best: dict[str, float]) -> Path:
        """A study whose cells with these learning rates are the best on validation data."""
        words = ["--grid", "method=fedavg,fedprox", "--grid", "learning_rate=0.1,0.2", "--choose", "learning_rate"]
        words += ["--validation_share", "0.2", "--rounds", "2", "--model", "logistic", "--output", str(tmp_path / name)]
        found = read_study(command.read(words, "").study)
        for cell in found.cells():
            settings = run_config.settings(cell.config())
            good = settings["training.learning_rate"] == best[str(settings["method.name"])]
            keep(cell, accuracy=[0.5], validation_accuracy=[0.9 if good else 0.1])
        return tmp_path / name

    words = ("--a", runs / "a/0", "--b", runs / "other" / "a learning rate of its own", "--tuned", "learning_rate")
    honest = study("honest", {"fedavg": 0.1, "fedprox": 0.2})
    told = judged(capsys, *words, "--search-a", honest, "--search-b", honest)
    assert told["verdict"] == "cannot tell"
    other = study("other", {"fedavg": 0.1, "fedprox": 0.1})
    told = judged(capsys, *words, "--search-a", other, "--search-b", other)
    assert kinds(told) == ["value that was not chosen"]
    next(honest.rglob("fedprox*0.2*.csv")).unlink()
    assert main([str(word) for word in (*words, "--search-a", honest, "--search-b", honest)]) == 2
    assert "1 cell of what was to be tried is not there (fedprox, learning_rate 0.2" in capsys.readouterr().err
