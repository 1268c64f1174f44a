from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from raysim.config.command_line import parse
from raysim.launch import main
from raysim.running.simulation import run
from raysim.workloads.errors import WorkloadError
from raysim.workloads.files.table_files import read_table
from raysim.workloads.text.text import Text, TinyShakespeare
from tests.small_runs import small_run
from tests.workloads.conftest import needs_data
from tests.workloads.conftest import seeded as stream
from tests.workloads.huggingface.saved import arrow_table, save_splits, save_to_disk

WORDS = {"pos": ("fine", "good", "great"), "neg": ("bad", "dull", "poor")}


def reviews(count: int = 120, seed: int = 0) -> pd.DataFrame:
    """Two thirds are positive, which one word of five tells; three people wrote them."""
    generator = np.random.default_rng(seed)
    labels = np.where(np.arange(count) % 3, "pos", "neg")
    texts = []
    for label in labels:
        words = [f"w{number}" for number in generator.integers(0, 20, 4)]
        words.insert(int(generator.integers(5)), str(generator.choice(WORDS[label])))
        texts.append(", ".join(words))
    people = np.array(["ann", "bob", "eve"])[np.arange(count) % 7 % 3]
    return pd.DataFrame({"id": np.arange(count), "text": texts, "who": people, "label": labels})


def csv(path: Path, columns: Sequence[str] = ("text", "label"), header: bool = True, **changes: Any) -> str:
    reviews().assign(**changes)[[*columns]].to_csv(path, index=False, header=header)
    return str(path)


def options(path: object, **more: Any) -> Text:
    return Text(**{"path": str(path), "task": "classification", "clients": 3, "min_samples": 2, **more})


def shown(federation: Any) -> tuple[Any, ...]:
    inputs = (federation.inputs, federation.labels, federation.test_inputs, federation.test_labels)
    return (*(part.tolist() for part in inputs), federation.class_names, federation.vocabulary)


def test_a_table_with_and_without_a_header(tmp_path: Path) -> None:
    one = options(csv(tmp_path / "one.csv")).load(stream)
    two = options(csv(tmp_path / "two.csv", header=False), columns=("text", "label")).load(stream)
    three = options(csv(tmp_path / "three.csv", ["label", "text"]), target="label").load(stream)
    assert shown(one) == shown(two) == shown(three)
    assert one.class_names == ("neg", "pos") and len(one.inputs) == 96 and one.global_test_size == 24
    inputs = one.input_spec(0)
    assert (
        inputs.padded and inputs.vocabulary == one.vocabulary and inputs.input_shape == (9,)
    )  # five words, four commas
    assert "target label (2 classes: neg, pos); tokens are words, of which the" in one.notes[0]


def test_clients_by_a_column_and_other_columns_by_name(tmp_path: Path) -> None:
    path = csv(tmp_path / "x.csv", ["id", "text", "who", "label"])
    federation = options(path, client_column="who").load(stream)
    assert federation.manifest()["name"].tolist() == ["ann", "bob", "eve"]
    words = options(path, text_column="who").load(stream)
    assert words.vocabulary == 5 and words.input_spec(0).input_shape == (1,)


def test_words_of_tests_and_validation_are_unknown(tmp_path: Path) -> None:
    """Every text has a word of its own: known are those of the texts that a client trains on, and no others."""
    own = [f"only{row} fine" for row in range(120)]
    federation = options(csv(tmp_path / "x.csv", text=own), validation_share=0.2).load(stream)
    trained = federation.train.pooled().of(0)
    held = np.setdiff1d(np.arange(len(federation.inputs)), trained)
    assert len(held) and federation.vocabulary == len(trained) + 3
    assert (federation.inputs[held] == [1, 2]).all() and (federation.test_inputs == [1, 2]).all()
    assert sorted(federation.inputs[trained, 0].tolist()) == list(range(3, len(trained) + 3))


def folders(root: Path, parts: Sequence[str] = ("",)) -> Path:
    for part in parts:
        for row, (text, label) in enumerate(reviews()[["text", "label"]].itertuples(index=False)):
            path = root / part / label / f"{row}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return root


def test_folders_of_text_files(tmp_path: Path) -> None:
    plain = options(folders(tmp_path / "plain")).load(stream)
    assert plain.class_names == ("neg", "pos") and plain.global_test_size == 24
    parts = options(folders(tmp_path / "parts", ["train", "test"])).load(stream)
    assert len(parts.inputs) == parts.global_test_size == 120
    sites = options(folders(tmp_path / "sites", ["north", "south"])).load(stream)
    assert sites.manifest()["name"].tolist() == ["north", "south"]


def test_a_column_of_hugging_face(tmp_path: Path) -> None:
    names = {"label": {"names": ["neg", "pos"], "_type": "ClassLabel"}, "text": {"dtype": "string", "_type": "Value"}}
    tables = [
        arrow_table({"text": frame["text"].tolist(), "label": (frame["label"] == "pos").astype(int).tolist()}, names)
        for frame in (reviews(), reviews(30, 1))
    ]
    federation = options(save_splits({"train": tables[0], "test": tables[1]}, tmp_path / "saved")).load(stream)
    assert federation.class_names == ("neg", "pos") and federation.global_test_size == 30
    one = options(save_to_disk(tables[0], tmp_path / "one"), tokens="bytes", max_tokens=12).load(stream)
    assert one.global_test_size == 24 and one.vocabulary == 257 and one.input_spec(0).input_shape == (12,)


def test_who_speaks(tmp_path: Path) -> None:
    path = tmp_path / "play.txt"
    path.write_text("".join(f"Ann:\nabc {n}\n\nBob:\nxyz\n\n" for n in range(30)) + "Eve:\nonce\n\n")
    federation = options(path).load(stream)
    assert federation.class_names == ("Ann", "Bob") and len(federation.inputs) == 48


BAD = [
    (csv, {"text_column": "txt"}, r"x.csv has no column 'txt'; its columns are: text, label"),
    (csv, {"client_column": "who"}, r"x.csv has no column 'who'"),
    (csv, {"client_column": "label"}, r"target 'label' is also the client_column"),
    (lambda path: csv(path, ["id", "who", "label"]), {}, r"holds the texts \(target 'label'\).*: id, who$"),
    (lambda path: csv(path, ["label"]), {}, r"set text_column to one of: none, as there is no other"),
    (lambda path: csv(path, label=np.arange(120) / 2), {}, r"numbers with a fraction, first 0.5 in row 2, and class"),
    (lambda path: csv(path, label=["", *["pos"] * 119]), {}, r"'label' is missing in 1 of 120 rows, first in row 1"),
    (lambda path: csv(path, text=["", *["a"] * 119]), {}, r"x: 1 of the texts are empty, first that of row 1; leave"),
    (lambda path: csv(path, header=False), {}, r"'(pos|neg)' also has the value .* no header; name its 2 columns"),
    (csv, {"columns": ("Text", "label")}, r"x.csv has a header, the names that columns has \(text, label\); leave col"),
    (lambda path: csv(path, header=False), {"columns": ("id", "text", "label")}, r"3 names \(id, text, label\), .* 2"),
    (lambda path: csv(path, ["id", "text", "label"], False), {"columns": ("text", "label")}, "2 names .* has 3 values"),
]  # fmt: skip


@pytest.mark.parametrize(("write", "more", "message"), BAD)
def test_odd_tables_get_a_sentence(write: Any, more: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=message):
        options(write(tmp_path / "x.csv"), **more).load(stream)


FILES = [
    ("x.csv", b"text,label\nH\xf6ren,pos\n", r"x.csv cannot be read as a table in UTF-8 .*; save it as CSV in UTF-8$"),
    (
        "x.csv",
        b"text,label\nWell, yes,pos\nno,neg\n",
        r"a row with more values than columns; put .* into double quotes",
    ),
    ("a/x.txt", b"H\xf6ren", r"x.txt cannot be read as text in UTF-8"),
    ("x.txt", b"no one speaks", r"x.txt has no speeches after lines NAME:"),
    ("train/x.json", b"{}", r"has LEAF's layout, whose texts have no labels"),
    ("none/x.md", b"", r"holds no texts \(files that end in .txt\)"),
]


@pytest.mark.parametrize(("name", "content", "message"), FILES)
def test_odd_files_get_a_sentence(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "data" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(WorkloadError, match=message):
        options(path if path.parent.name == "data" else tmp_path / "data").load(stream)


def test_the_separator_of_a_table_without_a_header_is_the_one_that_fits(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("one; two; three,pos\n" * 30 + "four,neg\n" * 30)
    assert options(path, columns=("text", "label")).load(stream).class_names == ("neg", "pos")


def test_names_of_columns_fit_a_first_row_with_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('# x\n\n"one, two\nthree",pos\nfour\n', encoding="utf-8")
    table = read_table(path, ("text", "label"), as_text=True, skip=1)
    assert table["text"].tolist() == ["one, two\nthree", "four"]


@pytest.mark.parametrize("name", ["x.parquet", "x.txt", ""])
def test_names_of_columns_that_nothing_reads(name: str, tmp_path: Path) -> None:
    with pytest.raises(
        WorkloadError, match=rf"a CSV file without a header, and {tmp_path / name} is none; leave columns"
    ):
        options(tmp_path / name, columns=("text", "label")).load(stream)
    reviews().to_parquet(tmp_path / "x.parquet")
    with pytest.raises(
        WorkloadError, match=r"a CSV file without a header, and .*x\.parquet is none; leave columns out"
    ):
        read_table(tmp_path / "x.parquet", ("id", "text", "who", "label"))


def test_the_default_model_goes_by_the_task(tmp_path: Path) -> None:
    words = ["--workload", "text", "--path", csv(tmp_path / "x.csv")]
    assert parse([*words, "--task", "classification", "--embedding", "8"]).config.model.embedding == 8
    assert parse(words).config.model.name == "lstm"
    assert parse([*words, "--task", "classification", "--model", "cnn1d"]).config.model.name == "cnn1d"
    assert parse([*words, "--task=classification", "--help"]).text.count("embedding-bag")


@pytest.mark.parametrize("model", ["embedding-bag", "cnn1d", "transformer"])
def test_a_short_run_is_above_the_majority(model: str, tmp_path: Path) -> None:
    """Two thirds of the reviews are positive."""
    reviews(600).to_csv(tmp_path / "x.csv", index=False)
    base = {
        "workload.name": "text",
        "workload.path": str(tmp_path / "x.csv"),
        "workload.task": "classification",
        "workload.clients": 3,
        "workload.partition": "iid",
        "workload.text_column": "text",
        "model.name": model,
        "training.learning_rate": {"embedding-bag": 2.0, "cnn1d": 0.1, "transformer": 0.1}[model],
        "training.batch_size": 16,
        "schedule.rounds": 6,
    }
    result = run(small_run(tmp_path / "run", base))
    assert result.rounds["accuracy"].iloc[-1] > 0.8


def test_one_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["--method", "fedavg", "--workload", "text", "--task", "classification", "--path"]
    quick = ["--rounds", "1", "--clients", "3", "--partition", "iid", "--engine.backend", "inline"]
    options = ["--columns", "text,label", "--pictures", "false", "--output", str(tmp_path / "run")]
    assert main([*command, csv(tmp_path / "x.csv", header=False), *options, *quick]) == 0
    assert "target label (2 classes: neg, pos)" in capsys.readouterr().err
    assert main([*command, csv(tmp_path / "x.csv"), "--target", "stars", *quick]) == 2
    assert "x.csv has no column 'stars'; its columns are: text, label" in capsys.readouterr().err


@needs_data
def test_who_speaks_in_shakespeare() -> None:
    federation = TinyShakespeare(task="classification", least_windows=100).load(stream)
    assert len(federation.class_names) == 14 and "GLOUCESTER" in federation.class_names
    assert len(federation.inputs) + federation.global_test_size == 1968  # of 2014 speeches 46 are empty


def test_labels_that_are_equal_numbers_and_other_texts_are_other_classes(tmp_path: Path) -> None:
    codes = np.array(["01", "1", "2"])[np.arange(120) % 3]
    federation = Text(path=csv(tmp_path / "codes.csv", label=codes), task="classification", clients=3).load(stream)
    assert federation.class_names == ("01", "1", "2")
    numbers = np.array(["1", "1 ", "1.0", "2"])[np.arange(120) % 4]  # as two tables have them that became one
    federation = Text(path=csv(tmp_path / "n.csv", label=numbers), task="classification", clients=3).load(stream)
    assert federation.class_names == ("1", "2")
