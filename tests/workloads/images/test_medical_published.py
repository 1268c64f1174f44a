from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import Federation, InputSpec
from raysim.workloads.images.augmentation import Augmentation
from raysim.workloads.images.ssl_fl import CovidFl, Retina
from tests.workloads.conftest import Stream
from tests.workloads.images.published_trees import SITES, name_of, values, write_image, write_tree


def test_published_split_of_five_clients(retina: Retina, stream: Stream) -> None:
    federation = retina.load(stream)
    table = federation.manifest()
    assert table["name"].tolist() == [f"client_{number}" for number in range(1, 6)]
    assert table["samples"].tolist() == [5] * 5
    assert table["test_samples"].tolist() == [1] * 5
    assert table.attrs == {"workload": "retina", "synthetic": False, "class_names": ["0", "1"]}
    assert federation.input_spec(0) == InputSpec((3, 4, 4), 2)
    for number in range(5):
        client = federation.client(number, "cpu")
        train, test = values(client.train, federation), values(client.test, federation)
        assert sorted(train + test) == list(range(6 * number, 6 * number + 6))
        labels = torch.cat([batch.y for batch in client.train.batches(4)]).tolist()
        assert labels == [value % 2 for value in train]
        assert [table[f"class_{label}"].tolist()[number] for label in (0, 1)] == [labels.count(0), labels.count(1)]
    assert sorted(values(federation.global_test(0, 10, "cpu"), federation)) == list(range(100, 110))


def test_real_sites_in_natural_order(tmp_path: Path, stream: Stream) -> None:
    write_tree(tmp_path, "12_clients/split_real", SITES)
    federation: Federation = CovidFl(path=str(tmp_path), size=4, cache_dir=str(tmp_path / "cache")).load(stream)
    assert federation.clients == 12
    names = federation.manifest()["name"].tolist()
    assert names == [*sorted(SITES[:10])[:8], "site_9", "site_10", "theta", "zeta"]


def test_training_batches_are_those_of_images_in_memory(retina: Retina, stream: Stream) -> None:
    from raysim.workloads.images.samples import ImageSamples

    federation = replace(retina, augment="crop_flip").load(stream)
    rows = federation.train.of(0)
    cached = federation.images.images(rows)
    plain = ImageSamples(
        cached[rows].copy(),
        federation.labels[rows],
        federation.mean,
        federation.deviation,
        "cpu",
        Augmentation(1),
    )
    lazy = federation.client(0, "cpu").train
    for one, two in zip(
        lazy.batches(2, torch.Generator().manual_seed(3)),
        plain.batches(2, torch.Generator().manual_seed(3)),
        strict=True,
    ):
        assert torch.equal(one.x, two.x)
        assert torch.equal(one.y, two.y)
        assert one.x.is_contiguous(memory_format=torch.channels_last)


def test_dirichlet_over_all_training_files(retina: Retina, stream: Stream) -> None:
    options = replace(retina, partition="dirichlet", clients=7, min_samples=2)
    federation = options.load(stream)
    assert federation.clients == 7
    assert federation.manifest()["samples"].sum() + federation.manifest()["test_samples"].sum() == 30
    listed = [name_of("train", number) for number in range(14)]
    (Path(retina.path) / "train.csv").write_text("\n".join(listed))
    federation = replace(options, local_test="global").load(stream)
    rows = np.concatenate([federation.train.of(client) for client in range(federation.clients)])
    assert sorted(federation.images.names[rows].tolist()) == sorted(listed)
    with pytest.raises(WorkloadError, match=r"retina: 14 training samples cannot give each of 7 clients"):
        replace(options, min_samples=5).load(stream)


def test_a_validation_set_of_published_clients(retina: Retina, stream: Stream) -> None:
    plain, federation = (replace(retina, validation_share=share).load(stream) for share in (0.0, 0.4))
    for number in range(5):
        assert len(plain.client(number, "cpu").validation) == 0
        client = federation.client(number, "cpu")
        held = values(client.validation, federation)
        assert len(held) == 2 and client.samples == 3
        assert sorted([*held, *values(client.train, federation)]) == sorted(
            values(plain.client(number, "cpu").train, plain)
        )
        assert values(client.test, federation) == values(plain.client(number, "cpu").test, plain)
    assert federation.manifest()["validation_samples"].tolist() == [2] * 5
    assert len(federation.pooled().client(0, "cpu").validation) == 10


def test_global_local_tests_and_pooling(retina: Retina, stream: Stream) -> None:
    (Path(retina.path) / "test.csv").write_text("\n".join(name_of("test", number) for number in range(4)))
    federation = replace(retina, local_test="global").load(stream)
    assert federation.global_test_size == 4
    assert [federation.samples(number) for number in range(5)] == [6] * 5
    for number in range(5):
        assert sorted(values(federation.client(number, "cpu").test, federation)) == [100, 101, 102, 103]
    pooled = federation.pooled()
    assert (pooled.clients, pooled.samples(0), pooled.test_samples(0)) == (1, 30, 4)
    assert sorted(values(pooled.client(0, "cpu").train, pooled)) == list(range(30))
    assert retina.load(stream).pooled().test_samples(0) == 5


def test_a_first_run_is_told_what_is_missing(tmp_path: Path, stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAYSIM_DATA", raising=False)
    with pytest.raises(WorkloadError, match=r"path is empty and RAYSIM_DATA is not set.*Retina .*rui-yan/SSL-FL"):
        Retina().load(stream)
    monkeypatch.setenv("RAYSIM_DATA", str(tmp_path))
    with pytest.raises(WorkloadError, match=r"missing: .*/covid-fl/\. Download the COVID-FL .*12_clients/split_real"):
        CovidFl().load(stream)
    (tmp_path / "retina" / "train").mkdir(parents=True)
    with pytest.raises(WorkloadError, match=r"missing: \S*/test/, \S*/5_clients/split_3/, \S*/labels\.csv\. "):
        Retina(split=3).load(stream)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("labels.csv", "name,label\n", r"labels\.csv, line 1: 'label' is not a class number"),
        ("labels.csv", "a.png,0\n\nb.png\n", r"line 3: 'b\.png' is not a file name, a comma"),
        ("labels.csv", "a.png,2\n", r"line 1: class 2 of a\.png is not one of 0\.\.1"),
        ("labels.csv", "a.png,0.5\n", r"class 0\.5 of a\.png is not one of 0\.\.1"),
        ("labels.csv", "a.png,nan\n", r"class nan of a\.png is not one of"),
        ("labels.csv", "a.png,0\na.png,1\n", r"line 2: a\.png has class 1, but 0 further up"),
        ("labels.csv", "a.png,0\n", r"labels\.csv has no line for 30 of 30 images in .*train"),
        ("5_clients/split_2/client_3.csv", "\n", r"client_3\.csv names no images"),
        ("5_clients/split_2/client_3.csv", "gone.png\n", r"names 1 of 1 images that are not in .*train: gone\.png"),
        ("5_clients/split_2/client_3.csv", "../a.png\n", r"client_3\.csv, line 1: '\.\./a\.png' is not the name"),
        ("5_clients/split_2/client_3.csv", "ÿ\xff", r"client_3\.csv cannot be read as text"),
        ("5_clients/split_2/client_6.csv", "train_0.png", r"holds 6 \.csv files .*each of 5 clients"),
        ("test.csv", "train_0.png", r"test\.csv names 1 of 1 images that are not in .*test"),
    ],
)
def test_wrong_tables(retina: Retina, stream: Stream, file: str, content: str, message: str) -> None:
    (Path(retina.path) / file).write_bytes(content.encode("latin-1"))
    with pytest.raises(WorkloadError, match=message):
        retina.load(stream)


def test_wrong_images(retina: Retina, stream: Stream) -> None:
    federation = retina.load(stream)
    damaged, missing = federation.images.names[federation.train.of(2)[:2]]
    (Path(retina.path) / "train" / damaged).write_bytes(b"broken")
    with pytest.raises(WorkloadError, match=f"{damaged} cannot be read as an image"):
        values(federation.client(2, "cpu").train, federation)
    write_image(Path(retina.path) / "train" / damaged, 1)
    (Path(retina.path) / "train" / missing).unlink()
    with pytest.raises(WorkloadError, match=f"no image file .*{missing}"):
        values(federation.client(2, "cpu").train, federation)
    for path in (Path(retina.path) / "test").iterdir():
        path.unlink()
    with pytest.raises(WorkloadError, match="test holds no images"):
        retina.load(stream)
