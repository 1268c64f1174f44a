"""No link in a run's folder is followed, whatever is done with the folder."""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from raysim import evaluate
from raysim.errors import DamagedError, RaysimError, ResultsError
from raysim.launch import main
from raysim.monitor.chrome_trace import Trace
from raysim.monitor.status_file import settle
from raysim.report.run_page import main as report
from raysim.results.load_model import load_model
from raysim.results.result import load_result
from raysim.running.simulation import run
from raysim.storage import checkpoint
from raysim.storage.atomic_files import append_whole, write_atomically
from raysim.storage.folder_files import LinkError, check_links, harmless, open_file, read_bytes
from raysim.storage.process_lock import launching
from raysim.storage.run_folder import RunFolder
from raysim.ui.reading import Reading
from tests.small_runs import LOGISTIC, small_run

SECRET = b"export TOKEN=of-the-user\n"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with checkpoints and a model."""
    config = small_run(tmp_path_factory.mktemp("links") / "run", LOGISTIC | {"engine.checkpoint_every": 1})
    return run(config).folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return shutil.copytree(original, tmp_path / "run")


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of the user's outside the folder."""
    path = tmp_path / "home" / "bashrc"
    path.parent.mkdir()
    path.write_bytes(SECRET)
    return path


def say(folder: Path, name: str, secret: Path) -> None:
    """Lay a link to the secret under a name of the folder."""
    path = folder / name
    path.unlink(missing_ok=True)
    path.symlink_to(secret)


PARTIAL = ("status.json", "report.html", "rounds.csv", "summary.json", "model.safetensors", "config.yaml")
OWN = (
    "run.log", "process.json", ".lock", "status.json", "rounds.csv", "clients.csv", "summary.json", "environment.json",
    "partition.png", "devices.png", "partition.csv", "config.yaml", "model.safetensors", "trace.json", "profile.csv",
    "precision.json", "report.html", "checkpoints/round-000003/manifest.json",
    "checkpoints/round-000003/server.safetensors", *(f"{name}.partial" for name in PARTIAL),
)  # fmt: skip


def resumed(folder: Path) -> int:
    return main(["--resume", str(folder)])


def longer(folder: Path) -> int:
    """More rounds: every file of the folder is written again."""
    return main(["--resume", str(folder), "--rounds", "4", "--engine.profile", "true"])


def paged(folder: Path) -> int:
    return report([str(folder)])


def judged(folder: Path) -> int:
    return evaluate.main([str(folder)])


def modeled(folder: Path) -> int:
    return _code(lambda: load_model(folder))


def watched(folder: Path) -> int:
    return _code(lambda: Reading(folder).refresh())


def read(folder: Path) -> int:
    return _code(lambda: load_result(folder))


def _code(what: Callable[[], object]) -> int:
    try:
        what()
    except RaysimError as error:
        print(f"raysim: {error}")
        return 2
    return 0


DOORS = (resumed, longer, paged, judged, modeled, watched, read)


TRIED = [*((longer, name) for name in OWN), *((door, "environment.json") for door in DOORS)]
"""A small part; ``python -m benchmarks.attack --doors link`` goes through all doors with all names."""


@pytest.mark.parametrize(("door", "name"), TRIED, ids=lambda value: getattr(value, "__name__", value))
def test_a_link_is_refused_by_its_name(
    folder: Path, secret: Path, door: Callable[[Path], int], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    say(folder, name, secret)
    assert door(folder) == 2
    output = capsys.readouterr()
    said = output.out + output.err
    assert f"{folder / name} is a link" in said and "Traceback" not in said
    assert secret.read_bytes() == SECRET
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            assert SECRET not in content and base64.b64encode(SECRET)[:24] not in content, path


@pytest.mark.parametrize("name", ["checkpoints", "checkpoints/round-000003", "tensorboard"])
def test_a_directory_that_is_a_link_is_refused(
    folder: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = tmp_path / "elsewhere"
    if (folder / name).exists():
        shutil.move(folder / name, elsewhere)
    else:
        elsewhere.mkdir()
    (folder / name).symlink_to(elsewhere)
    before = sorted(elsewhere.rglob("*"))
    assert resumed(folder) == 2
    assert f"{folder / name} is a link" in capsys.readouterr().err
    assert sorted(elsewhere.rglob("*")) == before


def test_a_comparison_reads_no_link(folder: Path, original: Path, secret: Path, tmp_path: Path) -> None:
    say(folder, "summary.json", secret)
    assert report([str(original), str(folder), "--out", str(tmp_path / "compare.html")]) == 2
    assert not (tmp_path / "compare.html").exists()


def test_honest_folders_may_be_reached_through_links(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``runs`` may be a link of the user's own, and so may the folder's own name; /tmp is one on some machines."""
    (tmp_path / "runs").symlink_to(folder.parent)
    (tmp_path / "latest").symlink_to(folder)
    for path in (tmp_path / "runs" / folder.name, tmp_path / "latest"):
        assert [door(path) for door in DOORS if door is not longer] == [0] * (len(DOORS) - 1), capsys.readouterr().err
    assert longer(tmp_path / "latest") == 0
    assert len(load_result(folder).rounds) == 4


@pytest.mark.parametrize("name", ["run.log", "process.json", ".lock", "rounds.csv"])
def test_what_is_appended_to_has_no_other_name(folder: Path, secret: Path, name: str) -> None:
    """A hard link cannot be told from the file itself but by its number of names."""
    (folder / name).unlink(missing_ok=True)
    os.link(secret, folder / name)
    _code(lambda: longer(folder))
    assert secret.read_bytes() == SECRET


@pytest.mark.parametrize("name", ["status.json", "summary.json", "report.html", "config.yaml"])
def test_what_is_replaced_leaves_its_other_name_alone(folder: Path, tmp_path: Path, name: str) -> None:
    (folder / name).touch()
    os.link(folder / name, tmp_path / "other")
    before = (tmp_path / "other").read_bytes()
    assert longer(folder) == 0 and paged(folder) == 0
    assert (tmp_path / "other").read_bytes() == before


class TestOneFile:
    """The operations themselves, where a link appears after the folder was looked through."""

    def test_a_partial_name_is_laid_anew(self, tmp_path: Path, secret: Path) -> None:
        (tmp_path / "status.json.partial").symlink_to(secret)
        write_atomically(tmp_path / "status.json", b"{}")
        assert secret.read_bytes() == SECRET
        assert (tmp_path / "status.json").read_bytes() == b"{}" and not (tmp_path / "status.json").is_symlink()
        assert not (tmp_path / "status.json.partial").exists()

    @pytest.mark.parametrize("laid", [Path.symlink_to, Path.hardlink_to])
    def test_nothing_is_appended_to_a_link(
        self, tmp_path: Path, secret: Path, laid: Callable[[Path, Path], None]
    ) -> None:
        laid(tmp_path / "run.log", secret)
        with pytest.raises(LinkError):
            append_whole(tmp_path / "run.log", b"more")
        for what in (
            lambda: RunFolder(tmp_path).log("more"),
            lambda: RunFolder(tmp_path).append_round({"round": 1}),
            lambda: launching(tmp_path).__enter__(),
            lambda: Trace(tmp_path / "trace.json").append,
        ):
            for name in ("rounds.csv", "process.json", "trace.json"):
                (tmp_path / name).unlink(missing_ok=True)
                laid(tmp_path / name, secret)
            try:
                what()
            except (ResultsError, LinkError) as error:
                assert "link" in str(error)
            assert secret.read_bytes() == SECRET

    def test_the_last_word_of_a_run_replaces_a_link(self, tmp_path: Path, secret: Path) -> None:
        (tmp_path / "status.json").symlink_to(secret)
        settle(tmp_path, "failed", "why")
        assert secret.read_bytes() == SECRET
        assert json.loads((tmp_path / "status.json").read_text())["message"] == "why"

    @pytest.mark.parametrize("inner", [1, 2])
    def test_a_directory_within_is_no_link(self, tmp_path: Path, secret: Path, inner: int) -> None:
        place = tmp_path / "run" / "checkpoints"
        place.mkdir(parents=True)
        (place / "round-000001").symlink_to(secret.parent)
        with pytest.raises(LinkError, match="link"):
            read_bytes(place / "round-000001" / secret.name, inner)
        assert read_bytes(place / "round-000001" / secret.name) == SECRET

    def test_a_pipe_or_a_device_is_no_file(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        for mode in ("rb", "ab"):
            with pytest.raises(LinkError, match="regular"):
                open_file(tmp_path / "pipe", mode)
        with pytest.raises(LinkError, match="regular"):
            open_file(Path("/dev/zero"), links=True)


@pytest.mark.parametrize("name", ["../../x", "/etc/passwd", "$(touch PWNED)", "server.json\n", "a.json", ".."])
def test_a_manifest_names_files_of_checkpoints_alone(folder: Path, name: str) -> None:
    path = folder / "checkpoints" / "round-000003"
    content = json.loads((path / "manifest.json").read_text())
    content.pop("sha256")
    content["files"][name] = {"sha256": "0", "bytes": 1}
    content["sha256"] = checkpoint._checksum(content)
    (path / "manifest.json").write_text(json.dumps(content))
    with pytest.raises(DamagedError, match="no file of a checkpoint") as found:
        checkpoint.read_manifest(path)
    assert "\n" not in str(found.value)


def test_foreign_text_is_logged_as_text(folder: Path) -> None:
    RunFolder(folder).log("a name: $(touch PWNED) `id` \x1b[2J ${HOME}")
    assert r"a name: \$(touch PWNED) \`id\` \x1b[2J \${HOME}" in (folder / "run.log").read_text()
    assert harmless("plain text, é: 2 $\n") == "plain text, é: 2 $\n"


def test_the_link_that_is_found_is_named(folder: Path) -> None:
    (folder / "a\x1bname").symlink_to("nowhere")
    with pytest.raises(ResultsError, match=r"a\\x1bname is a link"):
        check_links(folder)
