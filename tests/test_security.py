"""Files from elsewhere run no code and write nothing outside their folder; nothing listens to the world by itself."""

from __future__ import annotations

import ast
import json
import os
import pickle
import re
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from raysim.launch import main
from raysim.results.result import load_result
from raysim.running.open_run import stored_config
from raysim.study import main as study
from raysim.ui.reading import Reading
from raysim.workloads.errors import WorkloadError
from raysim.workloads.graphs.spectra import SpectraCache
from raysim.workloads.graphs.tu_reader import files_in, read_graphs
from raysim.workloads.images.decode import decode
from raysim.workloads.images.image_set import read_npz
from raysim.workloads.images.torchvision_sets import Cifar10, Mnist
from raysim.workloads.models.weights import read_state
from tests.http_server import served

ROOT = Path(__file__).parents[1]
PACKAGES = ("raysim", "actors", "aggregators", "workloads", "monitoring")


class Bomb:
    """Unpickled, it makes a file."""

    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self._marker),)


@pytest.fixture
def marker(tmp_path: Path) -> Iterator[Path]:
    """What must not be there after the test."""
    path = tmp_path / "was-here"
    yield path
    assert not path.exists(), "code from the file has run"


def test_the_bomb_works(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(Bomb(tmp_path / "was-here")))
    assert (tmp_path / "was-here").exists()


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("name", ["weights.pt", "weights.pth", "weights.safetensors"])
def test_weights(tmp_path: Path, marker: Path, name: str, zipped: bool) -> None:
    torch.save({"weight": Bomb(marker)}, tmp_path / name, _use_new_zipfile_serialization=zipped)
    with pytest.raises(WorkloadError, match="cannot be read"):
        read_state(str(tmp_path / name))


def test_arrays(tmp_path: Path, marker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bombs = np.array([Bomb(marker)], dtype=object)
    np.savez(tmp_path / "set.npz", train_images=bombs, values=bombs, vectors=bombs)
    np.save(tmp_path / "image.npy", bombs)
    with pytest.raises(WorkloadError, match="holds Python objects, which are refused"):
        read_npz(tmp_path / "set.npz")
    with pytest.raises(WorkloadError, match="cannot be read as an image"):
        decode(tmp_path / "image.npy", 8, truncated=False)
    monkeypatch.setattr(SpectraCache, "path", lambda *_: tmp_path / "set.npz")  # of a shared cache
    assert SpectraCache(tmp_path).read(None, "normalized") is None  # type: ignore[arg-type]


@pytest.fixture
def without_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAYSIM_DATA", raising=False)


@pytest.mark.usefixtures("without_data")
def test_pickles_in_the_place_of_torchvisions_files(tmp_path: Path, marker: Path) -> None:
    """CIFAR-10's own files are pickles: only those with the published checksum are opened."""
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch", "batches.meta"):
        (folder / name).write_bytes(pickle.dumps(Bomb(marker)))
    with pytest.raises(WorkloadError, match="cifar10 is not to be had"):
        Cifar10(path=str(tmp_path)).images(lambda _: np.random.default_rng())
    processed = tmp_path / "MNIST" / "processed"
    processed.mkdir(parents=True)
    for name in ("training.pt", "test.pt"):
        torch.save((Bomb(marker), Bomb(marker)), processed / name)
    with pytest.raises(WorkloadError, match="mnist is not to be had"):
        Mnist(path=str(tmp_path)).images(lambda _: np.random.default_rng())


@pytest.mark.usefixtures("without_data")
def test_a_downloaded_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is unpacked only with the published checksum, so that what leads out of the folder in another never is."""
    import io
    import tarfile

    from torchvision.datasets import CIFAR10

    (tmp_path / "served").mkdir()
    with tarfile.open(tmp_path / "served" / "cifar-10-python.tar.gz", "w:gz") as archive:
        for name in ("../escaped", str(tmp_path / "absolute"), "inside"):
            member = tarfile.TarInfo(name)
            member.size = 1
            archive.addfile(member, io.BytesIO(b"x"))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
        archive.addfile(link)
    target = tmp_path / "target"
    with served(tmp_path / "served") as (address, _), pytest.raises(WorkloadError, match="checksum"):
        monkeypatch.setattr(CIFAR10, "url", f"{address}/cifar-10-python.tar.gz")
        Cifar10(path=str(target), download=True).images(lambda _: np.random.default_rng())
    assert {path.name for path in tmp_path.rglob("*")} <= {"served", "target", "cifar-10-python.tar.gz"}


def test_a_zip_archive_is_read_and_never_unpacked(tmp_path: Path) -> None:
    """Members that lead elsewhere are left alone, and a link in it is its text, not what it points to."""
    (tmp_path / "secret").write_text("1, 2\n2, 1\n")
    path = tmp_path / "sets" / "S.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("../escaped", str(tmp_path / "absolute"), "../S/S_graph_indicator.txt"):
            archive.writestr(name, "x")
        link = zipfile.ZipInfo("S/S_A.txt")
        link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, str(tmp_path / "secret"))
    files = files_in(path, "S")
    assert files.read("A") == str(tmp_path / "secret").encode()
    with pytest.raises(WorkloadError, match="S_"):
        read_graphs(files)
    assert {found.name for found in tmp_path.rglob("*")} == {"secret", "sets", "S.zip"}


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.mkdir", "!!python/object/new:os.mkdir"])
def test_yaml(tmp_path: Path, marker: Path, capsys: pytest.CaptureFixture[str], tag: str) -> None:
    """As a --config, in the folder of a run that is resumed, shown or reported, and as a study."""
    path = tmp_path / "config.yaml"
    path.write_text(f"seed: {tag} ['{marker}']\n")
    assert main(["--config", str(path)]) == 2 and "not valid YAML" in capsys.readouterr().err
    assert main(["--resume", str(tmp_path)]) == 2 and "not valid YAML" in capsys.readouterr().err
    assert study([str(path)]) == 2 and "not valid YAML" in capsys.readouterr().err
    for reader in (stored_config, load_result, Reading):
        with pytest.raises(Exception, match="could not determine a constructor"):
            reader(tmp_path)


HARMLESS = ("exec('')", "Loader=yaml.BaseLoader)")
"""How calls end that run nothing (raysim/cli/interruption.py says what for), or make texts and lists of them only."""


def calls(tree: ast.AST) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Line, dotted name and constant keyword arguments of every call."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and not ast.unparse(node).endswith(HARMLESS):
            constants = {word.arg or "": getattr(word.value, "value", "?") for word in node.keywords}
            yield node.lineno, ast.unparse(node.func), constants


def forbidden(source: str) -> list[str]:
    """What must not be in our own code, with its line."""
    tree, found = ast.parse(source), []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        names = [alias.name for alias in node.names]
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        pickles = {"pickle", "dill", "cloudpickle", "marshal", "shelve", "joblib"} & {
            name.split(".")[0] for name in names
        }
        found += [f"{node.lineno}: import of {name}" for name in pickles]
    for line, name, words in calls(tree):
        last = name.rpartition(".")[2]
        if (
            (last == "load" and name.startswith("torch") and words.get("weights_only") is not True)
            or words.get("allow_pickle", False) is not False
            or words.get("shell", False) is not False
            or name in ("eval", "exec", "os.system", "os.popen")
            or (name.startswith("yaml.") and "load" in last and last != "safe_load")
            or last in ("extractall", "unpack_archive", "read_pickle", "load_state_dict_from_url")
        ):
            found.append(f"{line}: {name}")
    return found


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from joblib import load",
        "import torch\ntorch.load(path)",
        "torch.load(path, weights_only=False)",
        "torch.load(path, weights_only=flag)",
        "np.load(path, allow_pickle=True)",
        "numpy.load(path, allow_pickle=flag)",
        "yaml.load(text, Loader=yaml.Loader)",
        "yaml.unsafe_load(text)",
        "archive.extractall(folder)",
        "subprocess.run(text, shell=True)",
        "eval(text)",
        "exec('exit()')",
    ],
)
def test_the_search_finds(source: str) -> None:
    assert forbidden(source)


UNPICKLER = "workloads/files/array_pickles.py"
"""For data that is published as pickles alone; tests/workloads/files/test_array_pickles.py holds it to arrays."""


def test_our_own_code_has_no_dangerous_call() -> None:
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    assert len(files) > 100
    found = {str(path.relative_to(ROOT)): forbidden(path.read_text(encoding="utf-8")) for path in files}
    (own,) = found.pop(UNPICKLER)
    assert own.endswith("import of pickle")
    assert not re.search(r"pickle\.loads?\(", (ROOT / UNPICKLER).read_text(encoding="utf-8"))
    assert {path: lines for path, lines in found.items() if lines} == {}


STARTED = """
import json, os
os.umask(0)
from raysim.actors.ray_start import start_ray
from raysim.config.run_config import Engine
started, dashboard = start_ray(Engine())
import psutil, ray
from raysim.actors import cluster_probe
@ray.remote
def task(): return 1
ray.get(task.remote())
mine = {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}
places = [c.laddr.ip for c in psutil.net_connections("tcp") if c.status == "LISTEN" and c.pid in mine]
gcs = ray.get_runtime_context().gcs_address
with_token = cluster_probe._ask(gcs, "/ray.rpc.NodeInfoGcsService/CheckAlive")
os.environ["RAY_AUTH_MODE"] = "disabled"
without = cluster_probe._ask(gcs, "/ray.rpc.NodeInfoGcsService/CheckAlive")
session = ray._private.worker._global_node.get_session_dir_path()
found = {"places": places, "dashboard": dashboard, "with": with_token, "without": without, "session": session}
print(json.dumps(found))
"""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.slow
def test_a_ray_that_is_started_here_keeps_to_this_machine_and_this_user(tmp_path: Path) -> None:
    """In a fresh home: where it listens, whom it asks for a token, and who may read that and its session."""
    own = ("RAY_AUTH", "RAY_TMPDIR", "TMPDIR")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    environment["HOME"] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", STARTED], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found["places"]) > 5
    assert {place for place in found["places"] if place.removeprefix("::ffff:") != "127.0.0.1"} == set()
    assert found["dashboard"].startswith("127.0.0.1:")
    assert (found["with"], found["without"]) == ("OK", "UNAUTHENTICATED")
    token, place = tmp_path / ".ray" / "auth_token", Path(found["session"]).parents[1]
    assert (mode(token.parent), mode(token)) == (0o700, 0o600) and len(token.read_text()) == 64
    assert mode(place) == 0o700 and place.stat().st_uid == os.getuid() and place.name.startswith("ray-")
