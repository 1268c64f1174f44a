from __future__ import annotations

import pickle
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import Samples
from raysim.workloads.images.augmentation import NO_AUGMENTATION
from raysim.workloads.images.federation import ImageFederation, channel_statistics
from raysim.workloads.images.image_set import ImageSet, image_set
from raysim.workloads.images.image_workload import ImageOptions
from raysim.workloads.splits.partition import Partition
from tests.workloads.conftest import Stream


@dataclass(frozen=True)
class Numbered(ImageOptions):
    """Images whose first pixel is their number: training 0..99, test 200..219."""

    name: ClassVar[str] = "numbered"

    def images(self, stream: Stream) -> ImageSet:
        train, test = (np.zeros((count, 8, 8, 1), dtype=np.uint8) for count in (100, 20))
        train[:, 0, 0, 0], test[:, 0, 0, 0] = np.arange(100), np.arange(200, 220)
        content: dict[str, Any] = {"train_images": train, "test_images": test}
        return image_set(
            "numbered", {**content, "train_labels": np.arange(100) % 5, "test_labels": np.arange(20) % 5}, "memory"
        )


def numbers(samples: Samples, federation: ImageFederation) -> list[int]:
    """The first pixels of a set, in order."""
    pixels = [
        torch.round((batch.x[:, 0, 0, 0] * float(federation.deviation[0]) + float(federation.mean[0])) * 255)
        for batch in samples.batches(7)
    ]
    return torch.cat(pixels).int().tolist() if pixels else []


def frozen(federation: ImageFederation) -> ImageFederation:
    """With every array read-only, as a shared object store hands them out."""

    def lock(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
        elif hasattr(value, "__dataclass_fields__"):
            for part in fields(value):
                lock(getattr(value, part.name))
        return value

    locked: ImageFederation = lock(pickle.loads(pickle.dumps(federation)))
    return locked


@pytest.mark.parametrize("kind", ["iid", "dirichlet", "shards", "quantity", "lognormal"])
def test_every_training_image_is_somewhere_once(stream: Stream, kind: Any) -> None:
    federation = frozen(Numbered(clients=5, partition=kind, min_samples=3).load(stream))
    seen = []
    for number in range(5):
        client = federation.client(number, "cpu")
        assert (client.samples, len(client.test)) == (federation.samples(number), federation.test_samples(number))
        train, test = numbers(client.train, federation), numbers(client.test, federation)
        assert train == federation.train.of(number).tolist()
        assert test == federation.local_test.of(number).tolist()
        labels = torch.cat([batch.y for batch in client.train.batches(7)])
        assert labels.tolist() == [value % 5 for value in train]
        seen += train + test
    assert sorted(seen) == list(range(100))


def test_views_of_a_population_larger_than_the_data(stream: Stream) -> None:
    federation = frozen(Numbered(clients=10**6, partition="views", view_samples=10, alpha=1e6).load(stream))
    assert federation.clients == 10**6
    assert len(pickle.dumps(federation)) < 20_000
    client = federation.client(999_999, "cpu")
    assert numbers(client.train, federation) == federation.train.of(999_999).tolist()
    assert numbers(client.test, federation) == federation.local_test.of(999_999).tolist()
    assert (client.samples, len(client.test)) == (8, 2) == (federation.samples(5), federation.test_samples(5))
    assert federation.client_name(999_999) == "client 999999"
    pooled = federation.pooled().client(0, "cpu")
    assert sorted(numbers(pooled.train, federation) + numbers(pooled.test, federation)) == list(range(100))
    with pytest.raises(WorkloadError, match=r"numbered: samples_per_client = 20 .* set view_samples instead"):
        Numbered(partition="views", samples_per_client=20).load(stream)


def test_pooled_is_one_client_with_everything(stream: Stream) -> None:
    federation = frozen(Numbered(clients=5, samples_per_client=40, partition="iid").load(stream))
    pooled = federation.pooled()
    assert (pooled.clients, pooled.client_name(0)) == (1, "all clients")
    assert pooled.samples(0) == 5 * 40 == sum(federation.samples(client) for client in range(5))
    assert pooled.test_samples(0) == 20
    client = pooled.client(0, "cpu")
    assert client.samples == 200
    parts = [federation.client(number, "cpu") for number in range(5)]
    for batch_of in ("train", "test"):
        one = torch.cat([batch.x.flatten(1) for batch in getattr(client, batch_of).batches(1000)])
        many = torch.cat([batch.x.flatten(1) for part in parts for batch in getattr(part, batch_of).batches(1000)])
        order = [sorted(map(tuple, rows.tolist())) for rows in (one, many)]
        assert order[0] == order[1]


def test_fill_takes_no_local_test_sample_and_keeps_labels(stream: Stream) -> None:
    federation = Numbered(clients=5, samples_per_client=60, partition="iid").load(stream)
    assert isinstance(federation.local_test, Partition) and federation.fill is not None
    assert not set(federation.fill.sources.indices) & set(federation.local_test.indices)
    for number in range(5):
        client = federation.client(number, "cpu")
        assert client.samples == federation.samples(number) == 60
        labels = torch.cat([batch.y for batch in client.train.batches(1000)])
        sources = np.concatenate([federation.train.of(number), federation.fill.sources.of(number)])
        assert labels.tolist() == (sources % 5).tolist()


def test_manifest_counts_what_clients_hold(stream: Stream) -> None:
    federation = Numbered(clients=5, samples_per_client=70, min_samples=3).load(stream)
    table = federation.manifest()
    assert list(table.columns) == [
        "client", "name", "samples", "test_samples", *(f"class_{label}" for label in range(5)), "filled",
    ]  # fmt: skip
    for number, row in table.iterrows():
        labels = torch.cat([batch.y for batch in federation.client(int(str(number)), "cpu").train.batches(1000)])
        assert row[[f"class_{label}" for label in range(5)]].tolist() == torch.bincount(labels, minlength=5).tolist()
        assert (row["client"], row["name"], row["samples"]) == (number, f"client {number}", 70)
        assert row["filled"] == 70 - federation.train.size(int(str(number)))
    assert table["test_samples"].sum() + sum(map(federation.train.size, range(5))) == 100
    assert table.attrs == {"workload": "numbered", "synthetic": False, "class_names": ["0", "1", "2", "3", "4"]}


def test_manifest_counts_what_views_hold(stream: Stream) -> None:
    federation = Numbered(clients=3, partition="views", view_samples=20).load(stream)
    table = federation.manifest()
    for client in range(3):
        labels = np.bincount(federation.train.of(client) % 5, minlength=5)
        assert table[[f"class_{label}" for label in range(5)]].iloc[client].tolist() == labels.tolist()
    assert table[["samples", "test_samples", "filled"]].to_numpy().tolist() == [[16, 4, 0]] * 3


def test_channel_statistics_are_exact() -> None:
    images = np.random.default_rng(0).integers(256, size=(5000, 4, 4, 3), dtype=np.uint8)
    images[..., 2] = 9
    mean, deviation = channel_statistics(images)
    assert np.allclose(mean, images.mean(axis=(0, 1, 2)) / 255, atol=1e-6)
    assert np.allclose(deviation[:2], images.std(axis=(0, 1, 2))[:2] / 255, atol=1e-6)
    assert deviation[2] == 1
    backwards = channel_statistics(images[::-1])
    assert np.array_equal(mean, backwards[0])
    assert np.array_equal(deviation, backwards[1])


def test_same_streams_same_federation(stream: Stream) -> None:
    one, two = (Numbered(clients=5, samples_per_client=70, min_samples=3).load(stream) for _ in range(2))
    assert isinstance(one.train, Partition) and isinstance(two.train, Partition) and one.fill and two.fill
    assert np.array_equal(one.train.indices, two.train.indices)
    assert np.array_equal(one.fill.copies(one.inputs, 3), two.fill.copies(two.inputs, 3))
    other = Numbered(clients=5, min_samples=3).load(lambda purpose: np.random.default_rng(99))
    assert isinstance(other.train, Partition) and not np.array_equal(one.train.indices, other.train.indices)


def test_augment_is_for_training_sets_only(stream: Stream) -> None:
    federation = Numbered(clients=2, augment="crop_flip").load(stream)
    assert federation.augment.padding == 1
    client, plain = federation.client(0, "cpu"), replace(federation, augment=NO_AUGMENTATION).client(0, "cpu")
    for part, same in (("train", False), ("test", True)):
        one, two = (
            torch.cat([b.x for b in getattr(data, part).batches(50, torch.Generator().manual_seed(0))])
            for data in (client, plain)
        )
        assert torch.equal(one, two) is same


def test_limit_keeps_the_first_and_is_named_when_too_small(stream: Stream) -> None:
    federation = Numbered(clients=2, limit=30).load(stream)
    assert len(federation.labels) == 30
    assert federation.global_test_size == 20
    with pytest.raises(WorkloadError, match=r"numbered: 30 training .* 4 clients .*\(limit = 30 keeps 30 training"):
        Numbered(clients=4, limit=30).load(stream)
    with pytest.raises(WorkloadError, match=r"numbered: 101 clients are more than the 100 training samples"):
        Numbered(clients=101).load(stream)


@pytest.mark.parametrize("kind", ["iid", "dirichlet", "views"])
def test_a_validation_set_is_cut_off_the_training_part(stream: Stream, kind: Any) -> None:
    options = Numbered(clients=5, partition=kind, min_samples=10, view_samples=20, augment="crop_flip")
    plain, federation = (frozen(replace(options, validation_share=share).load(stream)) for share in (0.0, 0.25))
    assert plain.validation is None
    everybody: dict[str, set[int]] = {"train": set(), "test": set(), "validation": set()}
    for number in range(5):
        client, before = federation.client(number, "cpu"), plain.client(number, "cpu")
        assert len(before.validation) == 0
        # The local test set is the same with and without; nothing of the training part is lost, or augmented.
        assert numbers(client.test, federation) == numbers(before.test, plain)
        assert federation.validation is not None
        held = numbers(client.validation, federation)
        assert held == federation.validation.of(number).tolist()
        labels = torch.cat([batch.y for batch in client.validation.batches(7)])
        assert labels.tolist() == [value % 5 for value in held]
        assert client.samples == federation.samples(number) == before.samples - len(held)
        assert len(held) == int(before.samples * 0.25 + 0.5)
        if kind != "views":  # whose draws are from other pools
            assert sorted([*federation.train.of(number), *held]) == plain.train.of(number).tolist()
        for part, samples in (("train", federation.train.of(number)), ("validation", held)):
            everybody[part] |= set(samples)
        everybody["test"] |= set(numbers(client.test, federation))
    assert not everybody["train"] & everybody["validation"]
    assert not everybody["test"] & everybody["validation"]
    pooled = federation.pooled()
    assert pooled.validation is not None and federation.validation is not None
    assert len(pooled.client(0, "cpu").validation) == len(pooled.validation.of(0))
    assert set(federation.manifest()["validation_samples"]) == {len(federation.validation.of(n)) for n in range(5)}


def test_copies_that_fill_up_are_never_of_validation_samples(stream: Stream) -> None:
    federation = Numbered(clients=5, samples_per_client=60, partition="iid", validation_share=0.25).load(stream)
    assert federation.fill is not None and isinstance(federation.validation, Partition)
    assert not set(federation.fill.sources.indices) & set(federation.validation.indices)
    assert [federation.samples(number) for number in range(5)] == [60] * 5


@pytest.mark.parametrize("kind", ["dirichlet", "views"])
def test_a_common_local_test_set_takes_nothing_from_training(stream: Stream, kind: Any) -> None:
    options = Numbered(clients=4, partition=kind, view_samples=12, alpha=1e6, local_test="global")
    federation = frozen(options.load(stream))
    for number in range(4):
        client = federation.client(number, "cpu")
        assert numbers(client.test, federation) == list(range(200, 220))
        assert federation.test_samples(number) == 20
        assert numbers(client.train, federation) == federation.train.of(number).tolist()
    trained = [sample for number in range(4) for sample in federation.train.of(number).tolist()]
    assert len(trained) == (48 if kind == "views" else 100)
    with pytest.raises(IndexError):
        federation.local_test.of(4)
    pooled = federation.pooled()
    assert pooled.test_samples(0) == 20 and numbers(pooled.client(0, "cpu").test, federation) == list(range(200, 220))


def test_a_common_local_test_set_of_a_million_clients_is_stored_once(stream: Stream) -> None:
    options = Numbered(clients=10**6, partition="views", view_samples=10, local_test="global")
    assert len(pickle.dumps(options.load(stream))) < 20_000
