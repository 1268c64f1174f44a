from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import Federation, InputSpec, Samples
from raysim.workloads.images import decode, decoded_cache
from raysim.workloads.images.augmentation import Augmentation
from raysim.workloads.images.file_federation import FileFederation
from raysim.workloads.images.ssl_fl import CovidFl, Retina
from tests.workloads.conftest import Stream

SITES = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "site_10", "site_9"]
ENDINGS = [".png", ".jpg", ".npy"]


def name_of(part: str, number: int) -> str:
    return f"{part}_{number}{ENDINGS[number % 3]}"


def write_image(path: Path, value: int) -> None:
    pixels = np.full((7, 9, 3), value, dtype=np.uint8)
    if path.suffix == ".npy":
        np.save(path, pixels.astype(np.float32))
    else:
        Image.fromarray(pixels).save(path)


def write_tree(root: Path, split: str, clients: list[str]) -> None:
    """Image number i is of gray value i (training) or 100 + i (test) and of class i % 2; client k has 6 in a row."""
    for part, count, base in (("train", 6 * len(clients), 0), ("test", 10, 100)):
        (root / part).mkdir(parents=True)
        for number in range(count):
            write_image(root / part / name_of(part, number), base + number)
        with (root / "labels.csv").open("a") as file:
            file.writelines(f"{name_of(part, number)},{number % 2}.0\n" for number in range(count))
    (root / split).mkdir(parents=True)
    for client, name in enumerate(clients):
        lines = [name_of("train", number) for number in range(6 * client, 6 * client + 6)]
        (root / split / f"{name}.csv").write_text("\r\n".join(lines) + "\r\n")


@pytest.fixture
def retina(tmp_path: Path) -> Retina:
    write_tree(tmp_path / "data", "5_clients/split_2", [f"client_{number}" for number in range(1, 6)])
    return Retina(
        path=str(tmp_path / "data"), split=2, size=4, augment="none", cache_dir=str(tmp_path / "cache"), test_share=0.2
    )


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of images as they are decoded."""
    names: list[str] = []

    def counting(path: Path, size: int, *, truncated: bool) -> object:
        names.append(path.name)
        return decode.decode(path, size, truncated=truncated)

    monkeypatch.setattr(decoded_cache, "decode", counting)
    return names


def values(samples: Samples, federation: FileFederation) -> list[int]:
    """The gray value of each image, in order."""
    found: list[int] = []
    for batch in samples.batches(4):
        gray = (batch.x[:, 0, 0, 0] * float(federation.deviation[0]) + float(federation.mean[0])) * 255
        found += torch.round(gray).int().tolist()
    return found


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


def test_only_what_is_walked_over_is_decoded(retina: Retina, stream: Stream, decoded: list[str]) -> None:
    federation = retina.load(stream)
    client = federation.client(1, "cpu")
    assert decoded == []
    assert len(client.test) == 1
    test = values(client.test, federation)
    assert decoded == [name_of("train", test[0])]
    values(client.train, federation)
    assert len(decoded) == 6
    values(federation.global_test(3, 5, "cpu"), federation)
    assert len(decoded) == 8
    values(federation.client(1, "cpu").train, federation)
    assert len(decoded) == 8


def test_other_runs_and_splits_find_the_cache(retina: Retina, stream: Stream, decoded: list[str]) -> None:
    first = retina.load(stream)
    before = [values(first.client(number, "cpu").train, first) for number in range(5)]
    count = len(decoded)
    again = pickle.loads(pickle.dumps(retina.load(stream)))
    assert [values(again.client(number, "cpu").train, again) for number in range(5)] == before
    assert len(decoded) == count == 25
    other = replace(retina, partition="iid", clients=3, local_test="global").load(stream)
    everything = [value for number in range(3) for value in values(other.client(number, "cpu").train, other)]
    assert sorted(everything) == list(range(30))
    assert len(decoded) == 30  # the five that were cut off for tests before
    sized = replace(retina, size=5).load(stream)
    values(sized.client(0, "cpu").train, sized)
    assert len(decoded) == 35


@pytest.mark.parametrize("damage", ["pixels", "records", "cut", "gone", "longer"])
def test_a_damaged_cache_is_made_again(retina: Retina, stream: Stream, decoded: list[str], damage: str) -> None:
    federation = retina.load(stream)
    expected = values(federation.client(1, "cpu").train, federation)
    place = federation.images.place
    file = place / ("records" if damage == "records" else "pixels")
    content = file.read_bytes()
    if damage == "gone":
        file.unlink()
    elif damage == "cut":
        file.write_bytes(content[:7])
    elif damage == "longer":
        file.write_bytes(content + b"more")
    else:
        file.write_bytes(bytes(255 - byte for byte in content))
    again = retina.load(stream)
    assert values(again.client(1, "cpu").train, again) == expected
    assert len(decoded) == (5 if damage == "longer" else 10)
    if damage in ("cut", "gone", "longer"):
        assert file.read_bytes() == content


def test_a_changed_image_is_decoded_again(retina: Retina, stream: Stream, decoded: list[str]) -> None:
    federation = retina.load(stream)
    first = values(federation.client(0, "cpu").train, federation)
    write_image(Path(retina.path) / "train" / name_of("train", first[0]), 211)
    again = retina.load(stream)
    assert values(again.client(0, "cpu").train, again) == [211, *first[1:]]
    assert len(decoded) == 6


def test_two_runs_fill_the_same_cache_at_once(retina: Retina, stream: Stream, decoded: list[str]) -> None:
    runs = [replace(retina, size=64).load(stream) for _ in range(4)]

    def everything(federation: FileFederation) -> list[int]:
        return [value for number in range(5) for value in values(federation.client(number, "cpu").train, federation)]

    with ThreadPoolExecutor(len(runs)) as pool:
        found = list(pool.map(everything, runs))
    assert found == [everything(runs[0])] * len(runs)
    count = len(decoded)
    assert everything(replace(retina, size=64).load(stream)) == found[0]
    assert len(decoded) == count  # what they left is whole


def test_an_unusable_cache_folder(retina: Retina, stream: Stream, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    federation = replace(retina, cache_dir=str(tmp_path / "file")).load(stream)
    with pytest.raises(WorkloadError, match=r"image cache .*file/images/.* cannot be used .*set cache_dir"):
        values(federation.client(0, "cpu").train, federation)


def test_the_federation_holds_no_pixels(retina: Retina, stream: Stream) -> None:
    federation = replace(retina, size=224).load(stream)
    next(iter(federation.client(0, "cpu").train.batches(2)))
    assert len(pickle.dumps(federation)) < 10_000


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
