from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

from raysim.config.run_config import build
from raysim.errors import ConfigError
from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import InputSpec
from raysim.workloads.files import cache_files
from raysim.workloads.graphs.federation import GraphFederation
from raysim.workloads.graphs.tudataset import SETTINGS, TuDataset
from tests.workloads.conftest import Stream
from tests.workloads.graphs.tu_texts import texts, zipped

SHARED = os.environ.get("RAYSIM_DATA")
real = pytest.mark.skipif(SHARED is None, reason="RAYSIM_DATA is not set")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sets ONE (90 graphs of classes 0 0 1, in this order over and over) and TWO (40 of classes 0 to 3)."""
    monkeypatch.delenv("RAYSIM_DATA", raising=False)
    zipped(tmp_path, "ONE", texts([0, 0, 1] * 30))
    zipped(tmp_path, "TWO", texts([0, 1, 2, 3] * 10))
    return tmp_path


def test_the_settings_are_the_papers() -> None:
    assert {name: len(sets) for name, sets in SETTINGS.items()} == {
        "SM": 7, "SM-BIO": 10, "SM-CV": 10, "SM-BIO-SN": 12, "BIO-SN-CV": 8, "SM-SN-CV": 12,
    }  # fmt: skip
    assert get_args(get_type_hints(TuDataset)["setting"]) == tuple(SETTINGS)
    assert TuDataset().names == ("MUTAG", "BZR", "COX2", "DHFR", "PTC_MR", "AIDS", "NCI1")
    assert TuDataset(setting="SM-CV", sets=("ONE",)).names == ("ONE",)
    for sets in SETTINGS.values():
        assert len(set(sets)) == len(sets)


def test_one_client_a_set(folder: Path, stream: Stream) -> None:
    federation = TuDataset(sets=("ONE", "TWO"), path=str(folder), laplacian="combinatorial").load(stream)
    assert [federation.client_name(client) for client in range(federation.clients)] == ["ONE", "TWO"]
    assert [federation.input_spec(client) for client in range(2)] == [
        InputSpec((3,), 2, "graph", "ONE"),
        InputSpec((3,), 4, "graph", "TWO"),
    ]
    assert (federation.samples(0), len(federation.parts[0].validation), federation.test_samples(0)) == (72, 9, 9)
    assert (federation.samples(1), len(federation.parts[1].validation), federation.test_samples(1)) == (32, 4, 4)
    assert np.bincount(federation.parts[0].graphs.labels[federation.parts[0].test]).tolist() == [6, 3]
    assert federation.laplacian == "combinatorial"
    assert not federation.synthetic


def test_the_split_of_a_set_depends_on_nothing_but_its_stream(folder: Path, stream: Stream) -> None:
    asked: list[str] = []

    def noted(purpose: str) -> np.random.Generator:
        asked.append(purpose)
        return stream(purpose)

    both = TuDataset(sets=("ONE", "TWO"), path=str(folder)).load(noted)
    assert asked == ["split ONE", "split TWO"]
    alone = TuDataset(sets=("TWO",), path=str(folder)).load(stream)
    assert np.array_equal(both.parts[1].test, alone.parts[0].test)
    other = TuDataset(sets=("TWO",), path=str(folder)).load(lambda purpose: np.random.default_rng(99))
    assert not np.array_equal(other.parts[0].train, alone.parts[0].train)


def test_the_published_split_is_the_same_for_all_seeds(folder: Path, stream: Stream) -> None:
    options = TuDataset(sets=("ONE", "TWO"), split="published", path=str(folder))
    one, other = options.load(stream), options.load(lambda purpose: np.random.default_rng(99))
    assert [len(part.train) for part in one.parts] == [72, 32]
    for first, second in zip(one.parts, other.parts, strict=True):
        assert np.array_equal(first.train, second.train) and np.array_equal(first.test, second.test)
    drawn = TuDataset(sets=("ONE",), path=str(folder)).load(stream).parts[0]
    assert not np.array_equal(one.parts[0].test, drawn.test)
    cut = TuDataset(sets=("TWO",), parts=13, partition="iid", split="published", path=str(folder))
    with pytest.raises(WorkloadError, match=r"TWO part 0: its . graphs cannot be split as published"):
        cut.load(stream)


def test_ten_folds_test_every_graph_of_every_set_once_whatever_the_seed(folder: Path, stream: Stream) -> None:
    options = TuDataset(sets=("ONE", "TWO"), split="folds", path=str(folder))
    folds = [replace(options, fold=fold).load(stream) for fold in range(10)]
    for client, part in enumerate(folds[0].parts):
        tested = np.concatenate([federation.parts[client].test for federation in folds])
        assert sorted(tested.tolist()) == list(range(len(part.graphs)))
    other = replace(options, fold=3).load(lambda purpose: np.random.default_rng(99))
    assert all(np.array_equal(one.train, two.train) for one, two in zip(folds[3].parts, other.parts, strict=True))
    sketched = replace(options, fold=3).sketch(stream)
    assert sketched is not None and np.array_equal(sketched.parts[0].test, folds[3].parts[0].test)
    with pytest.raises(ConfigError, match=r"workload\.fold: 3 has no effect with workload\.split drawn"):
        build([{"workload.name": "tudataset", "model.name": "gin", "workload.fold": 3}])


@pytest.mark.parametrize("split", ["drawn", "published", "folds"])
def test_graphs_without_edges_are_left_out_on_request(tmp_path: Path, stream: Stream, split: Any) -> None:
    """Nothing else changes: the same graphs train, validate and test, but for those without edges."""
    content = texts([0, 0, 1] * 30)
    graph_of = content["graph_indicator"].split()
    with_edges = [line for line in content["A"].splitlines() if int(graph_of[int(line.split(",")[0]) - 1]) % 2]
    zipped(tmp_path, "ONE", content | {"A": "\n".join(with_edges) + "\n"})
    options = TuDataset(sets=("ONE",), split=split, path=str(tmp_path))
    every, rest = options.load(stream).parts[0], replace(options, keep_edgeless=False).load(stream).parts[0]
    assert (every.graphs.edge_counts == 0).any()
    for name in ("train", "validation", "test"):
        before, after = getattr(every, name), getattr(rest, name)
        assert after.tolist() == [graph for graph in before if every.graphs.edge_counts[graph]]
        assert 0 < len(after) < len(before)


@pytest.mark.parametrize("kind", ["iid", "dirichlet"])
def test_one_set_cut_over_clients(folder: Path, stream: Stream, kind: Any) -> None:
    options = TuDataset(sets=("ONE",), parts=4, partition=kind, alpha=0.3, path=str(folder))
    federation = options.load(stream)
    assert [part.name for part in federation.parts] == [f"ONE part {part}" for part in range(4)]
    assert {part.input_spec for part in federation.parts} == {InputSpec((3,), 2, "graph", "ONE")}
    assert sum(len(part.graphs) for part in federation.parts) == 90
    labels = np.concatenate([part.graphs.labels for part in federation.parts])
    assert np.bincount(labels).tolist() == [60, 30]
    for part in federation.parts:
        assert min(len(part.train), len(part.validation), len(part.test)) >= 1
        assert sorted(np.concatenate([part.train, part.validation, part.test])) == list(range(len(part.graphs)))
    shares = [float(part.graphs.labels.mean()) for part in federation.parts]
    assert (max(shares) - min(shares) > 0.3) == (kind == "dirichlet")
    again = options.load(stream)
    assert all(
        np.array_equal(one.graphs.features, two.graphs.features) and np.array_equal(one.train, two.train)
        for one, two in zip(federation.parts, again.parts, strict=True)
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parts": 2}, r"parts = 2 cuts one set over clients, but there are 7: MUTAG, BZR"),
        ({"parts": 2, "sets": ("ONE", "TWO")}, r"there are 2: ONE, TWO; set sets to one name, or parts to 1"),
        ({"sets": ("ONE", "TWO", "ONE")}, r"sets: ONE is there 2 times"),
        ({"sets": ("../ONE",)}, r"sets: '\.\./ONE' is no name of a TUDataset; they are listed on https://"),
        ({"sets": ("",)}, r"sets: '' is no name"),
        ({"test_share": 0.5, "validation_share": 0.5}, r"test_share \+ validation_share = 1 leaves nothing to train"),
    ],
)
def test_options_that_contradict_each_other(options: Any, message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        TuDataset(**options)


def test_more_parts_than_graphs(folder: Path, stream: Stream) -> None:
    message = r"TWO: its 40 graphs cannot be cut over parts = 14 clients with at least 3 each; set parts to at most 13"
    with pytest.raises(WorkloadError, match=message):
        TuDataset(sets=("TWO",), parts=14, path=str(folder)).load(stream)
    assert TuDataset(sets=("TWO",), parts=13, path=str(folder)).load(stream).clients == 13


def test_all_missing_sets_are_named_with_where_to_put_them(
    folder: Path, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_files, "CACHE", str(folder / "cache"))
    with pytest.raises(WorkloadError, match=r"no files of A, B in .*\. Put A\.zip, B\.zip from https://"):
        TuDataset(sets=("A", "ONE", "B"), path=str(folder)).load(stream)
    with pytest.raises(WorkloadError, match=r"no files of ONE in /.*/cache/tudataset\. "):
        TuDataset(sets=("ONE",)).load(stream)
    monkeypatch.setenv("RAYSIM_DATA", str(folder / "shared"))
    with pytest.raises(WorkloadError, match=r"no files of ONE in /.*/shared/tudataset or /.*/cache/tudataset\. "):
        TuDataset(sets=("ONE",)).load(stream)


def test_the_shared_folder_comes_before_the_cache(
    folder: Path, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_files, "CACHE", str(folder))
    shutil.copytree(folder, folder / "tudataset")
    assert TuDataset(sets=("ONE",)).load(stream).samples(0) == 72
    zipped(folder / "shared" / "tudataset", "ONE", texts([0, 1] * 5))
    monkeypatch.setenv("RAYSIM_DATA", str(folder / "shared"))
    assert TuDataset(sets=("ONE",)).load(stream).samples(0) == 8
    assert TuDataset(sets=("ONE",), path=str(folder)).load(stream).samples(0) == 72


def test_a_command_line_names_sets_with_commas() -> None:
    from raysim.config import run_config
    from raysim.errors import ConfigError

    # Another model than the workload asks for: this test is about the workload's options alone.
    common = {"workload.name": "tudataset", "model.name": "mlp", "method.name": "fedavg"}
    built = run_config.build([{**common, "workload.sets": "MUTAG,ENZYMES"}])
    assert built.workload == TuDataset(sets=("MUTAG", "ENZYMES"))
    assert (built.training.optimizer, built.training.learning_rate) == ("adamw", 1e-3)
    assert (built.training.batch_size, built.schedule.rounds) == (128, 200)
    with pytest.raises(ConfigError, match=r"workload: parts = 3 cuts one set"):
        run_config.build([{**common, "workload.parts": "3"}])
    with pytest.raises(ConfigError, match=r"workload\.setting: 'SM-XX' is not allowed"):
        run_config.build([{**common, "workload.setting": "SM-XX"}])


@real
def test_small_real_sets(stream: Stream) -> None:
    federation: GraphFederation = TuDataset(sets=("MUTAG", "PTC_MR", "Letter-low", "OHSU")).load(stream)
    assert [federation.input_spec(client).input_shape[0] for client in range(4)] == [7, 18, 2, 190]
    assert [federation.input_spec(client).classes for client in range(4)] == [2, 2, 15, 2]
    assert [federation.test_samples(client) for client in range(4)] == [19, 34, 225, 8]
    letters = federation.parts[2]
    assert np.bincount(letters.graphs.labels[letters.test]).tolist() == [15] * 15
    assert (letters.graphs.sizes == 1).any()
    assert (letters.graphs.edge_counts == 0).sum() == 7
