"""The cache of decoded images: filled as far as it is read, shared, and mended."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from raysim.workloads.errors import WorkloadError
from raysim.workloads.images.file_federation import FileFederation
from raysim.workloads.images.ssl_fl import Retina
from tests.workloads.conftest import Stream
from tests.workloads.images.published_trees import name_of, values, write_image


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
