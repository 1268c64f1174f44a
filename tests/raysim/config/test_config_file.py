"""Files with settings: whose code they may name, and whether a run's is what the run wrote."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import raysim
from raysim.config.command_line import given_config, parse
from raysim.config.config_file import check_seal, naming_words, sealed, stored_text
from raysim.config.run_config import default_config
from raysim.engine.load_federation import load_federation
from raysim.errors import ConfigError, RaysimError
from raysim.evaluate import main as evaluate
from raysim.launch import main
from raysim.results.load_model import trusted_config
from raysim.running.open_run import prepare
from raysim.storage.run_folder import RunFolder
from raysim.study import main as study
from raysim.workloads.images.folder import Folder
from raysim.workloads.parallel_map import Sequential
from tests.http_server import served

EVIL = """
from pathlib import Path
Path({marker!r}).touch()
from raysim.methods.fedavg import FedAvg as Method
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run folder whose config names a module that lies beside it, in the working directory."""
    (tmp_path / "evil_method.py").write_text(EVIL.format(marker=str(tmp_path / "ran")))
    run = tmp_path / "run"
    RunFolder.create(run, sealed("method: {name: 'evil_method:Method'}\nengine: {backend: inline}\n"), {})
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "evil_method", raising=False)
    return run


@pytest.mark.parametrize(
    "words",
    [
        ["--resume", "run"],
        ["--print-config", "--resume", "run"],
        ["--help", "--config", "run/config.yaml"],
        ["--config", "run/config.yaml", "--method", "other:Method"],
        ["--config", "run/config.yaml", "--trust", "elsewhere"],
    ],
)
def test_a_file_alone_runs_no_code(folder: Path, words: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"method 'evil_method:Method'.*--method evil_method:Method, or --trust"):
        parse(words)
    assert not (folder.parent / "ran").exists()


@pytest.fixture
def listener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, socket.socket]]:
    """A folder ``run`` and a study that name the address of a socket; the test has a token that must not get there."""
    monkeypatch.setenv("RAY_AUTH_TOKEN", "of-the-user")
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        text = f"method: {{name: fedavg}}\nmodel: {{name: logistic}}\nengine: {{address: '{address}'}}\n"
        RunFolder.create(tmp_path / "run", sealed(text), {})
        study = {"title": "s", "results": "r", "table": "t.md", "seeds": [0], "measures": {"accuracy": "accuracy"}}
        study |= {"base": {"engine.address": address}, "columns": {"c": {}}, "rows": {"r": {"method": "fedavg"}}}
        (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
        yield address, server


@pytest.mark.parametrize("start", ["", "ray://"])
def test_a_file_alone_sends_no_token_to_an_address(
    listener: tuple[str, socket.socket], start: str, capsys: pytest.CaptureFixture[str]
) -> None:
    address, server = listener
    config = Path("run") / "config.yaml"
    content = config.read_text().rpartition("# SHA")[0].replace(address, f"{start}{address}")
    config.write_text(sealed(content))
    for words in (
        ["--resume", "run"],
        ["--config", "run/config.yaml"],
        ["--config", "run/config.yaml", "--trust", "x"],
    ):
        assert main(words) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and f"engine.address '{start}{address}'" in said and "--trust run" in said
    assert study(["study.yaml"]) == 2
    assert "engine.address" in capsys.readouterr().err
    with pytest.raises(ConfigError, match=r"engine\.address .*name it in the settings too"):
        raysim.run("fedavg", resume="run")
    server.setblocking(False)
    with pytest.raises(BlockingIOError):  # nobody has called
        server.accept()


def test_a_cluster_that_is_named_or_trusted_is_used(listener: tuple[str, socket.socket]) -> None:
    address, _ = listener
    file = ["--config", "run/config.yaml"]
    for words, wanted in (
        (["--trust", "run"], address),
        (["--engine.address", address], address),
        (["--address", "local"], "local"),
    ):
        assert parse([*file, *words]).config.engine.address == wanted
    assert given_config({"engine": {"address": "local"}}, resume="run").engine.address == "local"
    assert given_config({"address": address}, resume="run").engine.address == address
    assert naming_words({"engine.address": address}) == f" --engine.address {address}"
    Path("own.yaml").write_text("engine: {address: auto}\n")  # that of the user's own environment
    assert parse(["--config", "own.yaml"]).config.engine.address == "auto"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A folder ``run`` and a study that download a repository; what was asked of the server there."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "served").mkdir()
    data: dict[str, Any] = {"workload.name": "huggingface", "workload.repository": "me/pets", "workload.path": "new"}
    data |= {"workload.download": True, "model.name": "logistic", "engine.backend": "inline"}
    text = "method: {name: fedavg}\n" + yaml.safe_dump(nested(data))
    RunFolder.create(tmp_path / "run", sealed(text), {})
    study = {"title": "s", "results": "r", "table": "t.md", "seeds": [0], "measures": {"accuracy": "accuracy"}}
    study |= {"base": data, "columns": {"c": {}}, "rows": {"r": {"method": "fedavg"}}}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
    with served(tmp_path / "served") as (address, asked):
        monkeypatch.setenv("HF_ENDPOINT", address)
        yield asked


@pytest.fixture
def pets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of images; a run folder and a study of it, whose cache of decoded images is the returned place."""
    monkeypatch.chdir(tmp_path)
    for kind, gray in (("cat", 40), ("dog", 200)):
        (tmp_path / "pets" / kind).mkdir(parents=True)
        for number in range(8):
            Image.new("RGB", (4, 4), (gray + number,) * 3).save(tmp_path / "pets" / kind / f"{number}.png")
    place = tmp_path / "else where"
    data: dict[str, Any] = {"workload.name": "folder", "workload.path": str(tmp_path / "pets"), "workload.size": 4}
    data |= {"workload.cache_dir": str(place), "workload.clients": 2, "workload.min_samples": 2}
    data |= {"model.name": "logistic", "engine.backend": "inline", "schedule.rounds": 1}
    own = nested({"method.name": "fedavg"} | data)
    RunFolder.create(tmp_path / "shared/run", stored_text(given_config(own)), {"seed": 0})
    study: dict[str, Any] = {"title": "s", "results": "r", "table": "t.md", "measures": {"accuracy": "accuracy"}}
    study |= {"base": data, "rows": {"r": {"method.name": "fedavg"}}, "seeds": [0]}
    (tmp_path / "shared/study.yaml").write_text(yaml.safe_dump(study))
    return place


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (main, ["--resume", "shared/run"]),
        (main, ["--config", "shared/run/config.yaml"]),
        (main, ["--config", "shared/run/config.yaml", "--trust", "pets"]),
        (study, ["shared/study.yaml", "--workers", "1"]),
    ],
)
def test_a_file_alone_chooses_no_cache_folder(
    pets: Path, command: Callable[[list[str]], int], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(words) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and f"writes decoded images into {pets}" in said and "--trust shared" in said
    assert not pets.exists()


def test_a_cache_folder_that_is_named_or_trusted_is_used(pets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = pets.parent / "own"
    file = ["--config", "shared/run/config.yaml", "--output", "run"]
    assert main([*file, "--cache_dir", str(other)]) == 0 and other.exists() and not pets.exists()
    assert main(["--resume", "shared/run", "--trust", "shared"]) == 0 and pets.exists()
    assert naming_words({"workload.cache_dir": str(pets)}) == f" --workload.cache_dir '{pets}'"
    assert naming_words({"workload.cache_dir": ""}) == ""


def test_a_look_at_a_run_decodes_images_into_the_usual_cache(pets: Path) -> None:
    for trust, cache in ((), ""), (True, str(pets)):
        config = trusted_config(Path("shared/run"), trust)
        assert isinstance(config.workload, Folder) and config.workload.cache_dir == cache


def nested(settings: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for path, value in settings.items():
        section, _, option = path.partition(".")
        found.setdefault(section, {})[option] = value
    return found


@pytest.mark.parametrize("word", ["true", "'yes'", "1", "'True'"])
def test_a_file_alone_downloads_nothing(hub: list[str], word: str, capsys: pytest.CaptureFixture[str]) -> None:
    config = Path("run") / "config.yaml"
    config.write_text(sealed(config.read_text().rpartition("# SHA")[0].replace("download: true", f"download: {word}")))
    for words in (
        ["--resume", "run"],
        ["--config", "run/config.yaml"],
        ["--config", "run/config.yaml", "--trust", "x"],
    ):
        assert main(words) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and "workload.download; me/pets" in said and "--trust run" in said
    assert study(["study.yaml"]) == 2
    assert "workload.download" in capsys.readouterr().err
    with pytest.raises(ConfigError, match=r"workload\.download.*name it in the settings too"):
        raysim.run("fedavg", resume="run")
    assert evaluate(["run"]) == 2
    with pytest.raises(RaysimError, match=r"--download true .* puts me/pets there"):
        load_federation(trusted_config(Path("run"), trust=()), Sequential())
    assert not hub


def test_a_download_that_is_asked_for_is_tried(hub: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--resume", "run", "--trust", "run"], ["--config", "run/config.yaml", "--workload.download"]):
        assert main(words) != 0
        assert "me/pets cannot be downloaded" in capsys.readouterr().err and hub
        hub.clear()
    assert main(["--config", "run/config.yaml", "--download", "false"]) == 2 and not hub
    assert naming_words({"workload.download": True, "engine.address": "auto"}) == " --workload.download true"


@pytest.mark.parametrize("words", [["--method", "evil_method:Method"], ["--trust", "run"], ["--trust", "."]])
def test_named_or_trusted_code_is_imported(folder: Path, words: list[str]) -> None:
    config = parse(["--print-config", "--resume", "run", *words]).config
    assert type(config.method).__name__ == "FedAvg"
    assert (folder.parent / "ran").exists()


def test_a_trusted_folder_is_no_word_for_others(folder: Path) -> None:
    other = folder.parent / "other.yaml"
    other.write_text("method: {name: 'evil_method:Method'}")
    with pytest.raises(ConfigError, match=r"other\.yaml"):
        parse(["--config", "other.yaml", "--trust", "run"])


def test_a_link_in_a_trusted_folder_counts_by_its_target(folder: Path) -> None:
    trusted = folder.parent / "trusted"
    trusted.mkdir()
    (trusted / "config.yaml").symlink_to(folder / "config.yaml")
    with pytest.raises(ConfigError, match="evil_method"):
        parse(["--config", "trusted/config.yaml", "--trust", "trusted"])


def test_a_folder_to_resume_from_python_runs_no_code(folder: Path) -> None:
    with pytest.raises(ConfigError, match="evil_method"):
        prepare(parse(["--method", "fedavg"]).config, folder)
    assert not (folder.parent / "ran").exists()


def test_the_words_that_name_own_code_again() -> None:
    assert naming_words({"method.name": "mine:Method", "model.name": "cnn"}) == " --method mine:Method"
    assert naming_words({"method.name": "fedavg"}) == ""


def test_it_is_yaml_with_a_checksum_in_its_last_line(tmp_path: Path) -> None:
    config = default_config("fedavg")
    (tmp_path / "config.yaml").write_text(stored_text(config))
    check_seal(tmp_path / "config.yaml")
    assert given_config(yaml.safe_load(stored_text(config))) == config
    assert stored_text(config).splitlines()[-1].startswith("# SHA-256 of the lines above")


@given(data=st.data())
@settings(deadline=None, max_examples=80)
def test_any_changed_byte_is_found(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("c") / "config.yaml"
    content = bytearray(stored_text(default_config("fedavg")).encode())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"^damaged: "):
        check_seal(path)


def test_a_file_that_is_cut_or_gone_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    with pytest.raises(ConfigError, match=r"^damaged: .*No such file"):
        check_seal(path)
    text = stored_text(default_config("fedavg"))
    for size in (0, 10, len(text) - 70, len(text) - 1):
        path.write_text(text[:size])
        with pytest.raises(ConfigError, match=r"^damaged: "):
            check_seal(path)
