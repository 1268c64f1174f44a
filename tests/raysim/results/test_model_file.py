"""The file of a run's model: what the header holds, and in which order."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save

from raysim.results.model_file import MODEL_NAME, with_sorted_header
from raysim.running.simulation import run
from tests.small_runs import LOGISTIC, small_run

TENSORS = {
    "b": torch.arange(6.0).reshape(2, 3),
    "a": torch.tensor([1, 2], dtype=torch.int64),
    "empty": torch.zeros(0),
    "c": torch.ones(3, dtype=torch.float16),
}
FACTS = [("task", "{}"), ("round", "3"), ("format", "pt"), ("sha256", "é" * 5)]


def test_equal_models_are_equal_files_whatever_the_order_of_the_header(tmp_path: Path) -> None:
    files = set()
    for facts in itertools.permutations(FACTS):  # the library's own order changes from call to call too
        files.add(with_sorted_header(save(TENSORS, dict(facts))))
    (written,) = files
    path = tmp_path / "model.safetensors"
    path.write_bytes(written)
    found = load_file(path)
    assert {name: (value.dtype, value.tolist()) for name, value in found.items()} == {
        name: (value.dtype, value.tolist()) for name, value in TENSORS.items()
    }
    with safe_open(path, framework="pt") as file:
        assert file.metadata() == dict(FACTS)
    length = int.from_bytes(written[:8], "little")
    assert length % 8 == 0 and [*json.loads(written[8 : 8 + length])["__metadata__"]] == sorted(dict(FACTS))


def test_two_equal_runs_leave_the_same_bytes(tmp_path: Path) -> None:
    written = []
    for name in ("one", "other"):
        run(small_run(tmp_path / name, LOGISTIC))
        written.append((tmp_path / name / MODEL_NAME).read_bytes())
    assert written[0] == written[1]
