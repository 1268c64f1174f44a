from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.http_server import served
from tests.workloads.conftest import Stream
from workloads.errors import WorkloadError
from workloads.graphs.tu_files import download, find
from workloads.graphs.tudataset import TuDataset

Zipped = Callable[[Path, str, Mapping[str, str]], Path]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, list[str]]]:
    """(served folder, requests so far) of a server that PyG's TUDataset is pointed to."""
    from torch_geometric.datasets import TUDataset

    with served(tmp_path / "served") as (address, asked):
        monkeypatch.setattr(TUDataset, "url", address)
        yield tmp_path / "served", asked


def test_the_first_folder_that_has_a_set_counts(tmp_path: Path, zipped: Zipped, small: dict[str, str]) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    assert find("S", [one, two]) is None
    zipped(two, "S", small)
    files = find("S", [one, two])
    assert files is not None
    assert files.place == two / "S.zip"
    assert files.read("graph_labels") == b"5\n-1\n5\n"
    assert files.read("edge_labels") is None
    for place in (one / "S", one / "S" / "raw"):
        place.mkdir(parents=True, exist_ok=True)
        assert find("S", [one, two]) != find("S", [one]) or place.name == "raw"
        (place / "S_A.txt").write_text("1, 1\n")
        files = find("S", [one, two])
        assert files is not None
        assert files.place == place
        assert files.read("A") == b"1, 1\n"
        assert files.read("graph_labels") is None


def test_download_once_then_offline(
    server: tuple[Path, list[str]], tmp_path: Path, zipped: Zipped, small: dict[str, str], stream: Stream
) -> None:
    folder, asked = server
    zipped(folder, "S", small)
    data = tmp_path / "data" / "sets"
    with pytest.raises(WorkloadError, match=r"no files of S in .*sets\. Put S\.zip .* or set download=true"):
        TuDataset(sets=("S",), data=str(data)).load(stream)
    assert asked == []
    federation = TuDataset(sets=("S",), data=str(data), download=True).load(stream)
    assert asked == ["GET /S.zip"]
    assert [path.name for path in data.iterdir()] == ["S.zip"]
    again = TuDataset(sets=("S",), data=str(data), download=True).load(stream)
    assert len(asked) == 1
    assert np.array_equal(again.parts[0].graphs.features, federation.parts[0].graphs.features)
    assert np.array_equal(again.parts[0].train, federation.parts[0].train)


def test_any_number_may_download_at_once(
    server: tuple[Path, list[str]], tmp_path: Path, zipped: Zipped, small: dict[str, str]
) -> None:
    path = zipped(server[0], "S", {**small, "edge_labels": "1\n" * 300_000})
    data = tmp_path / "data"
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: download("S", data).read("graph_labels"), range(4)))
    assert found == [b"5\n-1\n5\n"] * 4
    assert [entry.name for entry in data.iterdir()] == ["S.zip"]
    assert (data / "S.zip").read_bytes() == path.read_bytes()


def test_what_a_server_may_do_wrong(server: tuple[Path, list[str]], tmp_path: Path, zipped: Zipped) -> None:
    folder, _ = server
    data = tmp_path / "data"
    with pytest.raises(
        WorkloadError, match=r"ABSENT: http://127.*ABSENT\.zip cannot be downloaded .*404.*check the name"
    ):
        download("ABSENT", data)
    (folder / "PAGE.zip").write_text("<html>sorry</html>")
    with pytest.raises(WorkloadError, match=r"PAGE: what http.* sends is no whole zip archive \(18 bytes\)"):
        download("PAGE", data)
    assert list(data.iterdir()) == []


def test_no_server_and_no_place(
    server: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkloadError, match=r"cannot be downloaded into .*file/data"):
        download("S", tmp_path / "file" / "data")
    from torch_geometric.datasets import TUDataset

    monkeypatch.setattr(TUDataset, "url", "http://127.0.0.1:9")
    with pytest.raises(WorkloadError, match=r"cannot be downloaded .*refused.*put S\.zip there by hand"):
        download("S", tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []
