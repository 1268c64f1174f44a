"""Damaged data of every workload that reads files: one sentence, exit code 2, and nothing is written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from raysim.launch import main
from tests import bad_files as make
from tests.bad_files import Kind

PNG = b"\x89PNG\r\n\x1a\n"
TABLE = make.rows("a,kind,y", "{0},x,{1}")
KINDS: list[Kind] = [
    ("folder", make.absent, (), "no folder"),
    ("folder", make.images(), (), "holds no images"),
    ("folder", make.images("a.png"), (), "lies in no folder of a class"),
    ("folder", make.images("train/a/1.png", "b/1.png"), (), "lie at different depths"),
    ("folder", make.images("train/a/1.png", "clinic/a/1.png"), (), "either all are parts of the data set"),
    ("folder", make.images("train/a/1.png", "test/b/1.png"), (), "no training image has the class b"),
    ("folder", make.manifest("path,label", "a.png,x", "b.png,y"), (), "row 2: there is no file"),
    ("folder", make.manifest("path,label,split", "a.png,x,tset"), (), "the split 'tset' is not train or test"),
    ("folder", make.manifest("path,class", "a.png,x"), (), "has no column 'label'"),
    ("table", make.text("t.parquet", b"PAR1 and no more"), (), "cannot be read as a table"),
    ("table", make.text("t.csv", ""), (), "cannot be read as a table"),
    ("table", make.text("t.csv", "a,b,y\n"), (), "has no rows"),
    ("table", make.text("t.csv", make.rows("y", "{1}", 300)), (), "has no column left to predict from"),
    ("table", make.text("t.csv", TABLE + "\n1,x"), (), "the target 'y' is missing in 1 of 41 rows, first in row 41"),
    ("table", make.text("t.csv", TABLE), ("--target=z",), "has no column 'z'; its columns are: a, kind, y"),
    (
        "table",
        make.text("t.csv", make.rows("a,kind,y", "{0},x,{1}", 300) + "\ninf,x,1"),
        (),
        "the column 'a' holds infinity",
    ),
    ("table", make.text("t.csv", make.rows("name,y", "n{0},{1}", 300)), (), "more like a name than a category"),
    ("table", make.text("t.csv", TABLE + "\n1,,0"), ("--client_column=kind",), "'kind' is missing in row 41"),
    ("table", make.text("t.csv", TABLE + "\n1,2,3,4,5"), (), "cannot be read as a table"),
    ("table", make.text("t.csv", b"a,y\n\xff\xfe,1"), (), "cannot be read as a table"),
    ("text", make.absent, (), "no file"),
    ("text", make.text("t.txt", b"Ann:\n\xff\xfe"), (), "cannot be read as text in UTF-8"),
    ("text", make.text("t.txt", " \n"), (), "has no text in it"),
    ("text", make.text("t.txt", "no speaker here\n"), (), "has no speeches, which follow a line NAME:; set by to line"),
    (
        "text",
        make.text("t.txt", "Ann:\nshort\n"),
        (),
        "no client has 10 windows of 80 characters; lower length, stride",
    ),
    ("text", make.text("t.txt", "abc" * 200), ("--by=whole", "--partition=iid", "--clients=500"), "t: 500 clients are"),
    ("text", make.text("folder/notes.md", "x"), (), "is a folder without train/*.json"),
    ("text", make.leaf('{"users": ['), (), "all.json is no file of LEAF"),
    ("text", make.leaf({"users": ["a"]}), (), "all.json is no file of LEAF (KeyError: 'user_data')"),
    ("text", make.leaf_of(["ab"], []), (), "x and y of user a are no lists of one length"),
    ("text", make.leaf_of(["ab", "abc"], ["c", "d"]), (), "user a has a sample that is not 2 characters"),
    ("text", make.leaf_of([[0.5]], [1]), (), "that is not some characters"),
    ("text", make.leaf({"users": [], "user_data": {}}), (), "holds no samples"),
    ("huggingface", make.absent, (), "no folder"),
    ("huggingface", make.absent, ("--repository=a/b",), "puts a/b there"),
    ("huggingface", make.text("folder/notes.md", "x"), (), "has no .parquet or .arrow files, and save_to_disk did not"),
    ("huggingface", make.changed("state.json", '{"_data_files": ['), (), "state.json cannot be read"),
    ("huggingface", make.changed("state.json", '{"_data_files": [{"filename": "../x"}]}'), (), "no files of rows"),
    ("huggingface", make.changed("state.json", '{"_indices_files": [1]}'), (), "after flatten_indices()"),
    ("huggingface", make.changed("dataset_dict.json", '{"splits": ["/etc"]}'), (), "it names no splits"),
    ("huggingface", make.changed("data-00000-of-00001.arrow", "text"), (), "00001.arrow cannot be read"),
    ("huggingface", make.cut_off(make.TWO_ROWS, "data-00000-of-00001.arrow"), (), "00001.arrow cannot be read"),
    ("huggingface", make.TWO_ROWS, ("--test_split=tset",), "has no split 'tset', it has train; set"),
    ("huggingface", make.TWO_ROWS, ("--test_split=train",), "are both 'train'"),
    ("huggingface", make.TWO_ROWS, ("--target=y",), "has no column 'y'; its columns are: a, label"),
    ("huggingface", make.TWO_ROWS, ("--ignore=b",), "has no column 'b'; its columns are: a, label"),
    ("huggingface", make.saved(a=[]), (), "the split 'train' has no rows"),
    ("huggingface", make.cut_off(make.in_parquet, "data/train-00000-of-00001.parquet"), (), "parquet cannot be read"),
    (
        "huggingface",
        make.saved(image=make.pixels((4, 4), (5, 4)), label=[0, 1]),
        (),
        "row 2: the image has 5 x 4 pixels",
    ),
    ("huggingface", make.saved(image=[{"bytes": PNG, "path": None}], label=[0]), (), "row 1: the image cannot be read"),
    (
        "huggingface",
        make.saved(image=[{"bytes": PNG, "path": "x"}, {"bytes": None, "path": "x"}], label=[0, 1]),
        (),
        "or only a path to one",
    ),
    ("huggingface", make.saved(a=[1, 2], label=[0, 5]), (), "'label' has the class 5 of 2"),
    ("npz", make.cut_off(make.archive()), (), "may be truncated"),
    ("npz", make.text("data.npz", "a,b\n1,2\n"), (), "no .npz file"),
    ("npz", make.archive(test_labels=None), (), "no array test_labels"),
    ("npz", make.archive(train_images=np.zeros((60, 64), np.uint8)), (), "train_images is uint8 (60, 64); expected"),
    ("npz", make.archive(train_labels=np.arange(59) % 2), (), "one whole number for each of the 60 images"),
    ("npz", make.archive(train_labels=np.full(60, -1)), (), "train_labels holds -1"),
    ("npz", make.archive(test_images=np.zeros((20, 5, 4), np.uint8)), (), "they must agree"),
    ("npz", make.archive(train_images=np.array([{}] * 60)), (), "holds Python objects"),
    ("tudataset", make.cut_off(make.graphs(), "SET.zip"), (), "SET"),
    ("tudataset", make.graphs(graph_labels=None), (), "graph_labels"),
    ("tudataset", make.graphs(A=None), (), "SET_A"),
    ("tudataset", make.graphs(A="1, 99"), (), "A has an edge of node 99"),
    ("tudataset", make.graphs(A="1, 3"), (), "which are in different graphs"),
    ("tudataset", make.graphs(graph_indicator="1\n2"), (), "graph 3 has no node"),
    ("nodes", make.text("nodes.npz", "no archive"), (), "it is no graph of nodes with classes"),
    ("nodes", make.nodes(edges=np.array([[0, 99]])), (), "an edge names node 99"),
    ("nodes", make.nodes(node_features=np.full((30, 2), np.nan)), (), "no finite numbers"),
    ("nodes", make.nodes(node_labels=np.array([{}] * 30)), (), "it holds Python objects"),
    ("nodes", make.text("set/ind.set.allx", b"cos\nsystem\n(S'touch made'\ntR."), (), "ind.set.x"),
]


def test_there_are_thirty_kinds_and_some_of_every_workload_of_files() -> None:
    assert len(KINDS) >= 30
    assert {kind[0] for kind in KINDS} == {"folder", "table", "text", "huggingface", "npz", "tudataset", "nodes"}


@pytest.mark.parametrize("kind", KINDS, ids=[f"{number}-{kind[0]}" for number, kind in enumerate(KINDS)])
def test_one_sentence_and_nothing_is_written(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    workload, made, options, words = kind
    (tmp_path / "data").mkdir()
    path = made(tmp_path / "data")
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.chdir(tmp_path)
    place = (f"--path={path}", *(("--sets=SET", "--parts=2") if workload == "tudataset" else ()))
    arguments = ["--method=fedavg", f"--workload={workload}", *place, "--engine.backend=inline", *options]
    assert main([*arguments, "--output=run"]) == 2
    *progress, told = capsys.readouterr().err.splitlines()
    assert told.startswith("raysim: ") and words in told
    # The edges of a TUDataset are read when the run loads its data, and not to check its options.
    assert not progress or (workload == "tudataset" and progress[-1] == "loading the data …")
    assert sorted(tmp_path.rglob("*")) == before
