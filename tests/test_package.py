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

from tests.long_tests import long

ROOT = Path(__file__).parents[1]
ROOMS = ("actors", "aggregators", "workloads")
BUILD = "from setuptools import build_meta; build_meta.build_{kind}({output!r})"
LAUNCH = ["-m", "raysim.launch", "--method=fedavg", "--model=mlp", "--limit=200", "--clients=3", "--rounds=1"]
OWN_DATA = "import mine; mine.main(rounds=1, pictures=False, output='own', **{'engine.backend': 'inline'})"
QUIET = ["--pictures=false", "--engine.dashboard=false", "--output=run"]

pytestmark = pytest.mark.slow


def build(source: Path, kind: str, output: Path) -> Path:
    """The one archive that setuptools makes of a source folder."""
    output.mkdir()
    command = [sys.executable, "-c", BUILD.format(kind=kind, output=str(output))]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (archive,) = output.iterdir()
    return archive


def tracked() -> list[str]:
    """The files that git tracks, from the top of the repository."""
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], check=True, capture_output=True, text=True)
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()]


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Wheel and source archive of the files that git tracks."""
    folder = tmp_path_factory.mktemp("package")
    source = folder / "source"
    for name in tracked():
        if not name.startswith(("docs/", "tests/")):
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


def test_the_wheel_works_beside_foreign_folders_of_our_names(installed: Path, tmp_path: Path) -> None:
    folder = tmp_path
    for name in ROOMS:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("raise ImportError('a folder of the user was imported')\n")
    where = run(installed, folder, "-c", "import raysim.workloads; print(raysim.workloads.__file__)")
    assert where.stdout.strip() == str(installed / "raysim" / "workloads" / "__init__.py"), where.stderr
    ended = run(installed, folder, *LAUNCH, *QUIET, "--engine.actors=1")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert (folder / "run" / "summary.json").is_file()


def test_the_example_of_own_data_runs_with_the_wheel(installed: Path, tmp_path: Path) -> None:
    shutil.copy2(ROOT / "examples" / "own_data.py", tmp_path / "mine.py")
    ended = run(installed, tmp_path, "-c", OWN_DATA)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert (tmp_path / "own" / "model.safetensors").is_file()


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
    code = {name for name in names[0] if ".dist-info/" not in name}
    rooms = {f"raysim/{name}" for name in tracked() if name.startswith(tuple(f"{room}/" for room in ROOMS))}
    links = {f"raysim/{room}" for room in ROOMS} | {"raysim/reproduce/studies"}
    assert code == {name for name in tracked() if name.startswith("raysim/")} - links | rooms


@long
def test_a_clean_environment_has_what_the_wheel_names(tmp_path: Path) -> None:
    """Wheel and source archive of all that git tracks; the wheel with its packages from the registry, and a run."""
    source = tmp_path / "source"
    for name in tracked():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, source / name, follow_symlinks=False)
    wheel, archive = build(source, "wheel", tmp_path / "wheel"), build(source, "sdist", tmp_path / "sdist")
    with tarfile.open(archive) as opened:
        held = {name.partition("/")[2] for name in opened.getnames()}
    kept = [name for name in tracked() if not name.startswith(".") and not (ROOT / name).is_dir()]
    assert [name for name in kept if name not in held and f"raysim/{name}" not in held] == []
    with zipfile.ZipFile(wheel) as opened:
        assert "raysim/reproduce/studies/privacy.yaml" in opened.namelist()
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "clean")], check=True)
    python = str(tmp_path / "clean" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "uv"], check=True)
    install = [python, "-m", "uv", "pip", "install", "--quiet", "--python", python, "-c", str(ROOT / "constraints.txt")]
    subprocess.run([*install, str(wheel)], check=True)
    shutil.copy2(ROOT / "examples" / "own_data.py", tmp_path / "mine.py")
    for words in ([*LAUNCH, *QUIET], ["-c", OWN_DATA]):
        subprocess.run([python, *words], cwd=tmp_path, check=True)
    assert (tmp_path / "run" / "summary.json").is_file() and (tmp_path / "own" / "model.safetensors").is_file()
