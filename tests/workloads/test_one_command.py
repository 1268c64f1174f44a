"""Workloads on real data, each by one command line; adult, heart-disease, har, digit-domains and the plays of
Shakespeare have theirs in files of their own."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import parquet

from raysim.launch import main

pytestmark = pytest.mark.skipif("RAYSIM_DATA" not in os.environ, reason="RAYSIM_DATA is not set")
FEW = "--rounds 1 --local_epochs 1"


def real(name: str) -> Path:
    return Path(os.environ["RAYSIM_DATA"]) / name


def images(count: int) -> list[tuple[Image.Image, int]]:
    """The first images of CIFAR-10's ten classes."""
    with np.load(real("images/cifar10.npz")) as data:
        pixels, labels = data["train_images"], data["train_labels"].ravel()
    chosen = np.concatenate([np.flatnonzero(labels == label)[:count] for label in range(10)])
    return [(Image.fromarray(pixels[index]), int(labels[index])) for index in chosen]


def as_folder(folder: Path) -> str:
    for number, (image, label) in enumerate(images(12)):
        path = folder / ("test" if number % 4 == 0 else "train") / f"class-{label}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        image.save(path)
    return str(folder)


def as_parquet(folder: Path) -> str:
    def png(image: Image.Image) -> bytes:
        file = io.BytesIO()
        image.save(file, "PNG")
        return file.getvalue()

    rows = [{"image": {"bytes": png(image), "path": None}, "label": label} for image, label in images(12)]
    parquet.write_table(pa.Table.from_pylist(rows), folder / "train.parquet")
    return str(folder / "train.parquet")


def as_table(folder: Path) -> str:
    names = [f"c{number}" for number in range(13)] + ["disease"]
    table = pd.read_csv(real("tabular/heart-disease/processed.cleveland.data"), names=names, na_values="?").dropna()
    table.assign(disease=table["disease"] > 0).to_csv(folder / "heart.csv", index=False)
    return str(folder / "heart.csv")


COMMANDS = {
    "cifar10": f"--model mlp --workload.limit 300 --clients 3 {FEW}",
    "mnist": f"--model mlp --workload.limit 300 --clients 3 --partition iid {FEW}",
    "fashion-mnist": f"--model mlp --workload.limit 300 --clients 3 {FEW}",
    "npz": f"--path {{data}}/images/usps.npz --model logistic --workload.limit 300 --clients 3 {FEW}",
    "retinamnist": f"--model mlp --clients 3 {FEW}",
    "covid-xray": f"--model logistic --workload.size 16 {FEW}",
    "tudataset": f"--sets MUTAG --model gin {FEW}",
    "nodes": f"--graph cora --clients 3 --model gcn {FEW}",
    "text": "--path {data}/text/tinyshakespeare/input.txt --by whole --partition iid --clients 200 "
    f"--sampling_rate 0.01 --model lstm --model.hidden 8 --evaluation.client_limit 1 {FEW}",
    "folder": f"--path {{folder}} --cache_dir {{cache}} --workload.size 16 --clients 2 --model mlp {FEW}",
    "huggingface": f"--path {{parquet}} --clients 2 --model mlp {FEW}",
    "table": f"--path {{table}} --target disease --clients 3 --model mlp {FEW}",
}
MADE: dict[str, Callable[[Path], str]] = {"folder": as_folder, "parquet": as_parquet, "table": as_table}


@pytest.mark.slow
@pytest.mark.parametrize("workload", COMMANDS)
def test_one_command(workload: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = {name: make(tmp_path) for name, make in MADE.items() if f"{{{name}}}" in COMMANDS[workload]}
    options = COMMANDS[workload].format(data=os.environ["RAYSIM_DATA"], cache=tmp_path / "cache", **made).split()
    command = ["--method", "fedavg", "--workload", workload, *options, "--engine.backend", "inline"]
    assert main([*command, "--pictures", "false", "--output", str(tmp_path / "run")]) == 0
    assert "has no effect" not in capsys.readouterr().err
    rounds = pd.read_csv(tmp_path / "run" / "rounds.csv")
    assert rounds["train_loss"].notna().all() and 0 <= rounds["accuracy"].iloc[-1] <= 1


def test_a_number_of_clients_that_the_data_overrules_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = "--workload.size 16 --model logistic --clients 3 --engine.backend inline --pictures false"
    command = ["--method", "fedavg", "--workload", "covid-xray", *options.split(), *FEW.split()]
    assert main([*command, "--output", str(tmp_path / "run")]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "workload.clients 3 has no effect: the 4 clients are those that the data names" in said
