from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from raysim.config.command_line import parse
from raysim.errors import ConfigError
from raysim.running.simulation import run
from raysim.workloads.errors import WorkloadError
from raysim.workloads.text.text import Shakespeare, Text, TinyShakespeare
from raysim.workloads.text.windows import LEAF_CHARACTERS, cut_windows, encode, speeches
from tests.small_runs import small_run
from tests.workloads.conftest import needs_data
from tests.workloads.conftest import seeded as stream
from tests.workloads.images.leaf import write_leaf

PLAY = "First Citizen:\nSpeak, to him:\nnow.\n\nAll:\nSpeak.\n\nFirst Citizen:\nYes."


def play(path: Path, lines: int = 40) -> Path:
    """Two speakers, one of whom says abc again and again, the other xyz."""
    text = "".join(f"Ann:\n{'abc' * 10}\n\nBob:\n{'xyz' * 10}\n\n" for _ in range(lines))
    path.write_text(text, encoding="utf-8")
    return path


def test_speeches_by_hand() -> None:
    assert speeches(PLAY, "play") == {"First Citizen": "Speak, to him:\nnow.\nYes.\n", "All": "Speak.\n"}


def test_a_speaker_may_begin_with_any_capital() -> None:
    play = "Ann:\nAh.\n\nÖdipus:\nOh.\n\nÉlise:\nEh.\n\nélise:\nstill.\n"
    assert speeches(play, "play") == {"Ann": "Ah.\n", "Ödipus": "Oh.\n", "Élise": "Eh.\n\nélise:\nstill.\n"}


def test_windows_by_hand() -> None:
    """Windows of two at every second character; the last is tested, and the one before it overlaps with it."""
    train, test, left_out = cut_windows({"a": "abcabcabca", "b": "abc"}, "abc", 2, 2, 0.25, 2, "x.txt")
    assert left_out == 1
    # Starts 0, 2, 4, 6: windows ab, ca, bc, ab, and after them c, b, a, c.
    assert train.inputs.tolist() == [[0, 1], [2, 0]] and train.labels.tolist() == [2, 1]
    assert test.inputs.tolist() == [[0, 1]] and test.labels.tolist() == [2]
    assert train.sites is not None and train.sites.tolist() == ["a", "a"]


def test_characters_become_their_places() -> None:
    assert len(LEAF_CHARACTERS) == 80
    assert encode("a\n}", LEAF_CHARACTERS, "x").tolist() == [LEAF_CHARACTERS.index("a"), 0, 79]
    assert encode("zä€", "z€ä", "x").tolist() == [0, 2, 1]
    assert encode("a\ud800", "\ud800a", "x").tolist() == [1, 0]  # half of a sign, as a damaged JSON file has it


def test_speakers_are_clients_with_the_ends_of_their_texts_as_tests(tmp_path: Path) -> None:
    federation = Text(path=str(play(tmp_path / "play.txt")), length=5, stride=3).load(stream)
    assert federation.name == "play"
    table = federation.manifest()
    assert table["name"].tolist() == ["Ann", "Bob"]
    assert table["samples"].tolist() == [329, 329] and table["test_samples"].tolist() == [82, 82]
    inputs = federation.input_spec(0)
    assert (inputs.input_shape, inputs.classes, inputs.vocabulary) == ((5,), 80, 80)
    (batch,) = federation.client(0, "cpu").test.batches(1000)
    assert str(batch.x.dtype) == "torch.int64"
    assert "2 of 2 clients have 10 windows; 80 characters" in federation.notes[0]


@pytest.mark.parametrize("tests", [0.2, 0.0])
def test_no_window_to_train_on_overlaps_with_one_of_the_same_text_to_judge_by(tests: float, tmp_path: Path) -> None:
    """Windows of 7 at every second character: a window overlaps with the three before it."""
    text = Text(
        path=str(play(tmp_path / "play.txt")), length=7, stride=2, global_test_share=tests, validation_share=0.2
    )
    federation = text.load(stream)
    assert federation.validation is not None
    for client in range(federation.clients):
        held = [federation.train.of(client), federation.validation.of(client)]
        held += [] if tests else [federation.local_test.of(client)]
        assert all(len(part) for part in held)
        assert all(before[-1] + 4 == after[0] for before, after in itertools.pairwise(held))


def test_lines_or_the_whole_text(tmp_path: Path) -> None:
    path = play(tmp_path / "play.txt")
    lines = Text(path=str(path), by="line", length=5, stride=3, least_windows=2).load(stream)
    assert lines.clients == 80 and lines.client_name(0) == "line 002"  # those of speech have 30 characters
    whole = Text(path=str(path), by="whole", partition="iid", clients=4, length=5, stride=3).load(stream)
    assert whole.clients == 4 and whole.client_name(0) == "client 0"


def test_users_of_leaf_are_clients_with_tests_of_their_own(tmp_path: Path) -> None:
    write_leaf(tmp_path / "plays", "train", {"ROMEO": (["ab", "bc"], ["c", "d"]), "JULIET": (["xy"], ["z"])})
    write_leaf(tmp_path / "plays", "test", {"ROMEO": (["cd"], ["e"]), "JULIET": (["zz"], ["z"])})
    federation = Text(path=str(tmp_path / "plays")).load(stream)
    table = federation.manifest()
    assert table["name"].tolist() == ["JULIET", "ROMEO"]
    assert table[["samples", "test_samples"]].to_numpy().tolist() == [[1, 1], [2, 1]]
    assert federation.class_names[federation.labels[federation.train.of(0)][0]] == "z"
    (batch,) = federation.client(1, "cpu").test.batches(9)
    assert "".join(LEAF_CHARACTERS[code] for code in batch.x[0]) == "cd"


@pytest.mark.slow
@pytest.mark.parametrize("model", ["lstm", "transformer"])
def test_one_command_learns_what_comes_next(model: str, tmp_path: Path) -> None:
    small = {"model.hidden": 16, "model.layers": 1} if model == "lstm" else {"model.width": 16, "model.layers": 1}
    base = {"workload.name": "text", "workload.path": str(play(tmp_path / "play.txt")), "model.name": model, **small}
    rate = 2.0 if model == "lstm" else 0.2
    options: dict[str, Any] = {"workload__length": 5, "workload__stride": 3, "training__learning_rate": rate}
    result = run(small_run(tmp_path / "run", base, schedule__rounds=3, training__batch_size=16, **options))
    assert result.rounds["accuracy"].iloc[-1] > 0.75
    import torch

    assert result.model(torch.zeros(1, 5, dtype=torch.int64)).shape == (1, 80)


@pytest.mark.slow
@needs_data
def test_one_command_on_tinyshakespeare(tmp_path: Path) -> None:
    base = {"workload.name": "tinyshakespeare", "schedule.sampling_rate": 0.03, "model.hidden": 32, "model.layers": 1}
    options: dict[str, Any] = {"evaluation__client_limit": 5, "schedule__local_epochs": 1}
    result = run(small_run(tmp_path / "run", base, schedule__rounds=3, training__batch_size=20, **options))
    assert result.rounds["accuracy"].iloc[-1] > 0.1


@needs_data
def test_speakers_of_tinyshakespeare() -> None:
    federation = TinyShakespeare(stride=80).load(stream)
    names = [federation.client_name(client) for client in range(federation.clients)]
    assert {"GLOUCESTER", "First Citizen", "KING RICHARD II"} <= set(names)
    assert federation.input_spec(0).vocabulary == 65


@pytest.mark.parametrize("name", ["reviews.csv", "reviews.TSV.gz", "reviews.parquet", "folder/pos/1.txt"])
def test_texts_with_labels_want_another_task(name: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("text,label\ngood,1\n", encoding="utf-8")
    with pytest.raises(WorkloadError, match="set task to classification for texts with labels"):
        Text(path=str(tmp_path / name.partition("/")[0]), by="line").load(stream)


@pytest.mark.parametrize("option", ["text_column", "target", "client_column", "columns"])
def test_columns_are_those_of_another_task(option: str, tmp_path: Path) -> None:
    words = ["--workload", "text", "--path", str(play(tmp_path / "play.txt")), f"--workload.{option}", "label"]
    with pytest.raises(ConfigError, match=rf"^workload\.{option}: .* Leave it out, or set workload\.task to classif"):
        parse(words)
    assert parse([*words, "--task", "classification"]).config.workload.path == words[3]


def test_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WorkloadError, match="workload text needs the option path"):
        Text().load(stream)
    monkeypatch.setenv("RAYSIM_DATA", str(tmp_path))
    with pytest.raises(WorkloadError, match=r"shakespeare: there is no .*text/shakespeare; python -m raysim.data list"):
        Shakespeare().load(stream)
