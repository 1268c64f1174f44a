"""Data sets of Hugging Face: what is read of them, and what is refused."""

from __future__ import annotations

import json
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from raysim.launch import main
from raysim.workloads.errors import WorkloadError
from raysim.workloads.huggingface.huggingface import HuggingFace
from raysim.workloads.images.federation import ImageFederation
from tests.http_server import served
from tests.workloads.conftest import Stream
from tests.workloads.huggingface.saved import (
    CLASSES,
    IMAGE,
    arrow_table,
    pets,
    png,
    save_parquet,
    save_splits,
    save_to_disk,
)

SMALL: dict[str, Any] = {"clients": 2, "min_samples": 2, "partition": "iid"}


@pytest.mark.parametrize("saved", [save_splits, save_parquet])
def test_images_are_as_they_were_saved(saved: Any, tmp_path: Path, stream: Stream) -> None:
    (train, pixels), (test, test_pixels) = pets(12, 0), pets(6, 1)
    options = HuggingFace(path=str(saved({"train": train, "test": test}, tmp_path / "pets")), **SMALL)
    found = options.load(stream)
    assert isinstance(found, ImageFederation) and found.name == "pets" and found.class_names == ("cat", "dog")
    assert np.array_equal(found.inputs, pixels) and np.array_equal(found.test_inputs, test_pixels)
    assert found.labels.tolist() == [0, 1] * 6 and found.test_labels.tolist() == [0, 1] * 3
    np.testing.assert_allclose(found.mean, pixels.mean(axis=(0, 1, 2)) / 255, rtol=1e-6)
    assert "target label (2 classes: cat, dog); images: image (6 x 6 pixels, three channels); 12 rows" in found.notes[0]
    sketch = options.sketch(stream)
    assert sketch.input_spec(0) == found.input_spec(0) and sketch.manifest().equals(found.manifest())


def test_images_are_brought_to_one_size_and_one_channel(tmp_path: Path, stream: Stream) -> None:
    gray = [np.full((4 + row % 2, 4), row, np.uint8) for row in range(10)]
    table = arrow_table({"photo": pa.array([png(one) for one in gray], IMAGE), "y": ["a", "b"] * 5})
    path = str(save_to_disk(table, tmp_path / "mixed", files=3))
    found = HuggingFace(path=path, size=8, gray=True, global_test_share=0.0, **SMALL).load(stream)
    assert found.inputs.shape == (10, 8, 8, 1) and found.inputs[:, 3, 3, 0].tolist() == [*range(10)]
    assert found.class_names == ("a", "b")


def test_a_table_with_named_classes_and_people_as_clients(tmp_path: Path, stream: Stream) -> None:
    columns = {"kind": [0, 1] * 10, "size": np.arange(20.0), "who": ["x"] * 12 + ["y"] * 8, "note": [[1, 2]] * 20}
    features = {"kind": CLASSES, "note": {"_type": "List"}}
    path = str(save_to_disk(arrow_table(columns, features), tmp_path / "table"))
    with pytest.raises(WorkloadError, match=r"the column 'note' holds .*; leave it out with ignore=note"):
        HuggingFace(path=path).load(stream)
    found = HuggingFace(path=path, client_column="who", ignore=("note",), min_samples=1).load(stream)
    assert found.manifest()["name"].tolist() == ["x", "y"] and found.class_names == ("cat", "dog")
    assert found.global_test_size == 4 and "numeric columns: size;" in found.notes[0]
    regression = HuggingFace(path=path, target="size", task="regression", ignore=("note", "who"), **SMALL)
    assert "categorical columns and their numbers of values: kind (2)" in regression.load(stream).notes[0]


def test_a_test_without_labels_is_told(tmp_path: Path, stream: Stream) -> None:
    train, test = (arrow_table({"a": [1.0, 2.0], "label": labels}, {"label": CLASSES}) for labels in ([0, 1], [-1, -1]))
    path = str(save_splits({"train": train, "test": test}, tmp_path / "saved"))
    with pytest.raises(
        WorkloadError, match=r"no row of the split 'test' has a value of 'label'.*; take this split out"
    ):
        HuggingFace(path=path, **SMALL).load(stream)
    many = arrow_table({"a": np.arange(8.0), "label": [0, 1] * 4}, {"label": CLASSES})
    path = str(save_splits({"train": many, "validation": many, "test": test}, tmp_path / "three"))
    with pytest.raises(WorkloadError, match=r"not published; set test_split to validation$"):
        HuggingFace(path=path, **SMALL).load(stream)
    assert HuggingFace(path=path, test_split="validation", **SMALL).load(stream).global_test_size == 8
    half = arrow_table({"a": [1.0, 2.0], "label": [0, -1]}, {"label": CLASSES})
    path = str(save_splits({"train": train, "test": half}, tmp_path / "half"))
    with pytest.raises(WorkloadError, match="the target 'label' is missing in 1 of 4 rows, first in row 4"):
        HuggingFace(path=path, **SMALL).load(stream)


def list_files(hub: Path, listing: dict[str, Any]) -> None:
    """Put the list of the files of the data set me/pets where the Hub has it."""
    (hub / "api" / "datasets" / "me" / "pets").mkdir(parents=True)
    (hub / "api" / "datasets" / "me" / "pets" / "parquet").write_text(json.dumps(listing))


def test_a_download_is_asked_for_and_whole(tmp_path: Path, stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    save_parquet({"train": pets(12, 0)[0], "test": pets(6, 1)[0]}, tmp_path / "hub" / "files")
    with served(tmp_path / "hub") as (address, asked):
        monkeypatch.setenv("HF_ENDPOINT", address)
        splits = {name: [f"{address}/files/data/{name}-00000-of-00001.parquet"] for name in ("train", "test")}
        list_files(tmp_path / "hub", {"plain": splits, "broken": {"train": [f"{address}/nothing"]}})
        options: dict[str, Any] = {"path": str(tmp_path / "new" / "pets"), "repository": "me/pets"} | SMALL
        with pytest.raises(WorkloadError, match=r"--download true .* puts me/pets there"):
            HuggingFace(**options).load(stream)
        assert not asked
        options["download"] = True
        for configuration, words in (
            ("", "the configurations plain, broken"),
            ("broken", "404"),
            ("x", "it has plain"),
        ):
            with pytest.raises(WorkloadError, match=words):
                HuggingFace(**options, configuration=configuration).load(stream)
        assert not (tmp_path / "new" / "pets").exists()
        found = HuggingFace(**options, configuration="plain").load(stream)
        assert (found.inputs.shape, found.global_test_size) == ((12, 6, 6, 3), 6)
        requests = len(asked)
        HuggingFace(**options).load(stream)
        assert len(asked) == requests


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (lambda content: content[:-20], r"x\.parquet was cut off after \d+ of \d+ bytes\); check"),
        (lambda content: content[:-1] + b"2", r"x\.parquet is no whole Parquet file: .*\); check"),
    ],
)
def test_a_download_that_is_not_whole_leaves_nothing(
    tmp_path: Path, stream: Stream, monkeypatch: pytest.MonkeyPatch, sent: Any, words: str
) -> None:
    """It became the data set, and every later run failed at it."""

    def altered(self: SimpleHTTPRequestHandler, source: Any, output: Any) -> None:
        content = source.read()
        output.write(sent(content) if self.path.endswith("x.parquet") else content)

    with served(tmp_path / "hub") as (address, _):
        monkeypatch.setenv("HF_ENDPOINT", address)
        list_files(tmp_path / "hub", {"default": {"train": [f"{address}/x.parquet"]}})
        parquet.write_table(pets(20, 0)[0], tmp_path / "hub" / "x.parquet")
        options = HuggingFace(path=str(tmp_path / "new" / "pets"), repository="me/pets", download=True, **SMALL)
        with monkeypatch.context() as patch:
            patch.setattr(SimpleHTTPRequestHandler, "copyfile", altered)
            with pytest.raises(WorkloadError, match=words):
                options.load(stream)
        assert not [*(tmp_path / "new").iterdir()]
        assert options.load(stream).labels.tolist()


@pytest.mark.parametrize(
    ("split", "place"), [("partial-train", "x/0.parquet"), ("train", "default/partial-train/0.parquet")]
)
def test_the_hubs_first_part_of_a_large_set_is_not_taken_for_the_whole(
    tmp_path: Path, stream: Stream, monkeypatch: pytest.MonkeyPatch, split: str, place: str
) -> None:
    with served(tmp_path / "hub") as (address, asked):
        monkeypatch.setenv("HF_ENDPOINT", address)
        list_files(tmp_path / "hub", {"default": {split: [f"{address}/{place}"]}})
        options = HuggingFace(path=str(tmp_path / "new" / "pets"), repository="me/pets", download=True, **SMALL)
        with pytest.raises(
            WorkloadError,
            match=r"me/pets: the Hub lists only the first part of it \(partial-train\), .*; save the whole",
        ):
            options.load(stream)
    assert len(asked) == 1 and not (tmp_path / "new").exists()


def test_a_copy_of_the_hubs_first_part_is_told(tmp_path: Path, stream: Stream) -> None:
    place = tmp_path / "partial-pets" / "default" / "partial-train"
    place.mkdir(parents=True)
    parquet.write_table(pets(20, 0)[0], place / "partial-0.parquet")
    options = HuggingFace(path=str(tmp_path / "partial-pets"), **SMALL)
    with pytest.raises(
        WorkloadError, match=r"default/partial-train holds the first part .* rename it without 'partial-'"
    ):
        options.load(stream)
    place.rename(place.with_name("train"))
    assert len(options.load(stream).inputs)  # names of the set and of its files are the user's


def test_one_command_learns_from_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save_splits({"train": pets(40, 0)[0], "test": pets(20, 1)[0]}, tmp_path / "pets")
    monkeypatch.chdir(tmp_path)
    command = f"--method fedavg --workload huggingface --path {path} --clients 2 --rounds 3 --engine.backend inline"
    assert main([*command.split(), "--output", "run", "--pictures", "false"]) == 0
    assert pd.read_csv("run/rounds.csv")["accuracy"].iloc[-1] == 1
