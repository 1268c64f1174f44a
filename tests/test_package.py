"""The wheel and the source archive, used away from the checkout and beside folders that have our folders' names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("actors", "aggregators", "workloads")
BUILD = "from setuptools import build_meta; build_meta.build_{kind}({output!r})"
LAUNCH = ["-m", "raysim.launch", "--method=fedavg", "--model=mlp", "--limit=200", "--clients=3", "--rounds=1"]
QUIET = ["--pictures=false", "--engine.dashboard=false", "--output=run"]

pytestmark = pytest.mark.slow


def build(source: Path, kind: str, output: Path) -> Path:
    """The one archive that setuptools makes of a source folder."""
    output.mkdir()
    command = [sys.executable, "-c", BUILD.format(kind=kind, output=str(output))]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (archive,) = output.iterdir()
    return archive


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Wheel and source archive of the files that git tracks."""
    folder = tmp_path_factory.mktemp("package")
    source = folder / "source"
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], check=True, capture_output=True, text=True)
    for name in filter(None, listed.stdout.split("\0")):
        if not name.startswith(("docs/", "tests/")) and (ROOT / name).exists():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, source / name, follow_symlinks=False)
    return build(source, "wheel", folder / "wheel"), build(source, "sdist", folder / "sdist")


@pytest.fixture(scope="module")
def installed(archives: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel's files, as an installer lays them out."""
    place = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(archives[0]) as wheel:
        wheel.extractall(place)
    return place


def run(installed: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python, started in a folder that is not the checkout, with the wheel's files first among what is installed."""
    environment = os.environ | {"PYTHONPATH": str(installed)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240)


@pytest.mark.parametrize("backend", ["inline", "ray"])
def test_the_wheel_works_beside_foreign_folders_of_our_names(
    installed: Path, tmp_path_factory: pytest.TempPathFactory, backend: str
) -> None:
    folder = tmp_path_factory.mktemp("at")
    for name in ROOMS:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("raise ImportError('a folder of the user was imported')\n")
    where = run(installed, folder, "-c", "import raysim.workloads; print(raysim.workloads.__file__)")
    assert where.stdout.strip() == str(installed / "raysim" / "workloads" / "__init__.py"), where.stderr
    ended = run(installed, folder, *LAUNCH, *QUIET, f"--engine.backend={backend}", "--engine.actors=1")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert (folder / "run" / "summary.json").is_file()


def test_wheel_and_source_archive_hold_one_package(archives: tuple[Path, Path], tmp_path: Path) -> None:
    """Nothing is installed beside ``raysim``, and the source archive gives the same wheel where it is unpacked."""
    wheel, source = archives
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    names = []
    for built in (wheel, build(unpacked, "wheel", tmp_path / "again")):
        with zipfile.ZipFile(built) as content:
            names.append(sorted(content.namelist()))
    assert names[0] == names[1]
    code = [name for name in names[0] if ".dist-info/" not in name]
    assert {name.partition("/")[0] for name in code} == {"raysim"}
    for room in ROOMS:
        assert f"raysim/{room}/__init__.py" in code
    assert {"raysim/py.typed", "raysim/ui/static/page.js"} <= set(code)
