from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from raysim.launch import main
from raysim.running.simulation import run
from raysim.workloads.errors import WorkloadError
from raysim.workloads.images.folder import DEVIATION, MEAN, Folder
from tests.small_runs import small_run
from tests.workloads.conftest import Stream


def write(root: Path, names: Iterable[str], suffix: str = "png") -> Path:
    """Images of one brightness each, 7 x 5: that of its class for a name that ends in CLASS/NUMBER."""
    for name in names:
        path = root / f"{name}.{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        value = {"cat": 40, "dog": 200}.get(path.parent.name, 128)
        Image.fromarray(np.full((7, 5, 3), value, np.uint8)).save(path)
    return root


def numbered(folder: str, count: int) -> list[str]:
    return [f"{folder}/{number}" for number in range(count)]


@pytest.fixture
def options(tmp_path: Path) -> dict[str, Any]:
    return {"path": str(tmp_path / "pets"), "cache_dir": str(tmp_path / "cache"), "size": 4, "min_samples": 2}


@pytest.fixture
def splits(tmp_path: Path) -> Path:
    names = [name for part, count in (("train", 10), ("test", 3)) for name in numbered(f"{part}/cat", count)]
    return write(tmp_path / "pets", [*names, *numbered("train/dog", 6), *numbered("test/dog", 1)], "jpg")


def test_splits_of_a_folder(splits: Path, options: dict[str, Any], stream: Stream) -> None:
    write(splits, numbered("val/cat", 5))  # not read: there is test
    (splits / "train" / "cat" / "Thumbs.db").write_bytes(b"x")
    federation = Folder(**options, clients=2, partition="iid").load(stream)
    assert (federation.name, federation.class_names, federation.synthetic) == ("pets", ("cat", "dog"), False)
    table = federation.manifest()
    assert (table["samples"] + table["test_samples"]).tolist() == [8, 8]
    assert federation.global_test_size == 4
    (batch,) = federation.global_test(0, 4, "cpu").batches(10)
    assert batch.x.shape == (4, 3, 4, 4) and batch.y.tolist() == [0, 0, 0, 1]
    expected = (np.array([40, 200])[:, None] / 255 - np.array(MEAN)) / np.array(DEVIATION)
    np.testing.assert_allclose(batch.x[2:, :, 0, 0].numpy(), expected, atol=0.03)  # a JPEG is not exact


def test_domains_are_clients_and_there_is_no_common_test(
    tmp_path: Path, options: dict[str, Any], stream: Stream
) -> None:
    for domain, count in (("photo", 10), ("sketch", 5)):
        write(tmp_path / "pets", [*numbered(f"{domain}/cat", count), *numbered(f"{domain}/dog", count)])
    federation = Folder(**options).load(stream)
    table = federation.manifest()
    assert table["name"].tolist() == ["photo", "sketch"]
    assert table["samples"].tolist() == [16, 8] and table["test_samples"].tolist() == [4, 2]
    assert federation.global_test_size == 0
    whole = Folder(**options, partition="iid", clients=3).load(stream).manifest()
    assert whole["name"].tolist() == ["client 0", "client 1", "client 2"]
    with pytest.raises(WorkloadError, match="pets: local_test=global needs test samples, and the data has none"):
        Folder(**options, local_test="global").load(stream)


def test_a_domain_whose_name_is_not_utf_8(
    tmp_path: Path, options: dict[str, Any], stream: Stream, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its folder is named in Latin-1: the tables could not be written, which was found after the first round."""
    for domain in ("photo", os.fsdecode(b"m\xfcnchen")):
        write(tmp_path / "pets", [*numbered(f"{domain}/cat", 6), *numbered(f"{domain}/dog", 6)])
    words = [f"--{name}={value}" for name, value in {**options, "output": tmp_path / "run"}.items()]
    assert main(["--workload=folder", "--backend=inline", *words]) == 2
    said = capsys.readouterr().err
    assert r"pets: partition=sites: client 'm\udcfcnchen' has a name with signs that are no characters of a te" in said
    assert "Traceback" not in said and not (tmp_path / "run").exists()
    assert Folder(**options, partition="iid", clients=3).load(stream).clients == 3


def test_a_folder_whose_name_is_not_utf_8(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """config.yaml and the proof would hold it."""
    folder = write(tmp_path / os.fsdecode(b"m\xfcnchen"), [*numbered("a/cat", 6), *numbered("b/cat", 6)])
    words = [f"--path={folder}", f"--output={tmp_path / 'run'}", "--rounds=1"]
    assert main(["--workload=folder", "--backend=inline", *words]) == 2
    said = capsys.readouterr().err
    assert said.startswith("raysim: workload.path: '") and said.count("\n") == 1
    assert r"m\udcfcnchen' is not allowed: it is not UTF-8, as config.yaml is. Choose another name." in said
    assert not (tmp_path / "run").exists()


def test_a_manifest_names_path_label_client_and_split(tmp_path: Path, options: dict[str, Any], stream: Stream) -> None:
    root = write(tmp_path / "pets", [*numbered("a/cat", 4), *numbered("b/dog", 4)])
    rows = [
        f"{part}/{label}/{number}.png;{label};ward {part};{'test' if number == 3 else 'train'}"
        for part, label in (("a", "cat"), ("b", "dog"))
        for number in range(4)
    ]
    (root / "manifest.csv").write_text("\n".join(["path;label;client;split", *rows]), encoding="utf-8")
    for path in (root, root / "manifest.csv"):
        federation = Folder(**{**options, "path": str(path)}).load(stream)
        table = federation.manifest()
        assert table["name"].tolist() == ["ward a", "ward b"]
        assert table[["samples", "test_samples", "class_0", "class_1"]].to_numpy().tolist() == [
            [3, 1, 3, 0],
            [3, 1, 0, 3],
        ]
        (batch,) = federation.client(1, "cpu").test.batches(10)
        assert batch.y.tolist() == [1] and batch.x[0, 0, 0, 0].item() == pytest.approx((200 / 255 - 0.485) / 0.229)


def test_one_command_trains_on_a_folder(splits: Path, options: dict[str, Any], tmp_path: Path) -> None:
    config = small_run(
        tmp_path / "run",
        {f"workload.{name}": value for name, value in options.items()},
        workload__name="folder",
        workload__clients=2,
        model__name="mlp",
        schedule__rounds=2,
        training__learning_rate=0.1,
    )
    result = run(config)
    assert result.rounds["accuracy"].iloc[-1] == 1.0  # cats are dark, dogs are bright


def test_an_image_that_ends_early_is_found_before_the_run(
    splits: Path, options: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = splits / "train" / "dog" / "5.jpg"
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:-40])
    words = [f"--{name}={value}" for name, value in {**options, "clients": 2, "output": tmp_path / "run"}.items()]
    command = ["--method=fedavg", "--workload=folder", "--model=mlp", "--rounds=1", "--engine.backend=inline", *words]
    assert main(command) == 2
    error = capsys.readouterr().err
    assert f"{damaged} cannot be read as an image" in error and "Traceback" not in error
    assert not (tmp_path / "run").exists()
    damaged.write_bytes(whole)
    assert main([*command, "--pictures=false"]) == 0


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ([], "no folder .*pets; give the path of a folder of images or of a manifest"),
        (["readme/x.txt"], r"holds no images \(files that end in \.bmp"),
        (["1.png"], r"1\.png lies in no folder of a class"),
        (["cat/1.png", "train/dog/1.png"], r"cat/1\.png and train/dog/1\.png lie at different depths"),
        (["train/cat/1.png", "paint/cat/1.png"], "has the folders paint, train: either all are parts of the data set"),
        (["trn/cat/1.png", "test/cat/1.png"], "has the folders test, trn: either all are parts of the data set, one"),
        (["test/cat/1.png"], "has the folders test: either all"),
        (["train/cat/1.png", "training_set/cat/1.png"], "has the folders train, training_set: either all"),
        (["train/1.png", "Test-Set/1.png"], "has images in Test-Set, train, which are parts of a data set and no cla"),
        (["a/train/cat/1.png", "a/test/cat/1.png"], r"a/test/cat/1\.png lies too deep; .* Set path to .*pets/a, or"),
        (["test/cat/1.png", "train/dog/1.png"], "no training image has the class cat, .*training images have dog"),
        (["train/dog/1.png"], r"pets: 10 clients are more than the 1 training samples"),
    ],
)
def test_folders_that_are_no_data_set(
    files: list[str], words: str, tmp_path: Path, options: dict[str, Any], stream: Stream
) -> None:
    for name in files:
        path = tmp_path / "pets" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    with pytest.raises(WorkloadError, match=words):
        Folder(**options).load(stream)


@pytest.mark.parametrize("parts", [("training_set", "test_set"), ("Train", "validation set"), ("training", "TestSet")])
def test_parts_by_names_of_several_words(
    parts: tuple[str, str], tmp_path: Path, options: dict[str, Any], stream: Stream
) -> None:
    train, test = parts
    write(tmp_path / "pets", [*numbered(f"{train}/cat", 6), *numbered(f"{train}/dog", 6), *numbered(f"{test}/cat", 3)])
    federation = Folder(**options, clients=2, partition="iid").load(stream)
    assert (len(federation.labels), federation.global_test_size) == (12, 3)
    assert federation.class_names == ("cat", "dog")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"manifest\.csv cannot be read as a table \(No columns"),
        ("path,label\n", "has no rows; a table needs a header"),
        ("file,label\na/cat/0.png,cat\n", "has no column 'path'; its columns are: file, label"),
        ("path,label\na/cat/0.png,cat\na/cat/9.png,cat\n", r"row 2: there is no file .*a/cat/9\.png; paths are relat"),
        ("path,label\na/cat/0.png,\n", "row 1: the column label is empty"),
        ("path,label,client\na/cat/0.png,cat,\n", "row 1: the column client is empty"),
        ("path,label,split\na/cat/0.png,cat,dev\n", "row 1: the split 'dev' is not train or test"),
        ("path,label,split\na/cat/0.png,cat,test\n", "there are no training images, all are for the test"),
        ("path,label\n\xff,1", "cannot be read as a table"),
    ],
)
def test_manifests_with_mistakes(
    text: str, words: str, tmp_path: Path, options: dict[str, Any], stream: Stream
) -> None:
    root = write(tmp_path / "pets", numbered("a/cat", 2))
    (root / "manifest.csv").write_bytes(text.encode("latin1"))
    with pytest.raises(WorkloadError, match=words):
        Folder(**options).load(stream)


def test_a_folder_has_to_be_named(stream: Stream) -> None:
    with pytest.raises(WorkloadError, match="workload folder needs the option path"):
        Folder().load(stream)


def test_views_of_files(splits: Path, options: dict[str, Any], stream: Stream) -> None:
    federation = Folder(**options, partition="views", view_samples=5, clients=1000, alpha=1e6).load(stream)
    client = federation.client(999, "cpu")
    for samples, count in ((client.train, 4), (client.test, 1)):
        (batch,) = samples.batches(10)
        assert len(batch) == count and torch.equal(batch.x[:, 0, 0, 0] > 0, batch.y == 1)  # dogs are bright
