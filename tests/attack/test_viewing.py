"""Whatever is in a run folder, showing it gives a page or one sentence, soon."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from raysim.errors import ResultsError
from raysim.launch import main
from raysim.report import run_page
from raysim.storage.run_folder import RunFolder
from raysim.ui.reading import Reading

CONFIG = "method: {name: fedavg}\nworkload: {name: digits}\nmodel: {name: cnn}\nseed: 3\nengine: {backend: ray}\n"
LAUGHS = "a: &a [x, x, x]\n" + "".join(
    f"k{n}: &k{n} [*{b}, *{b}, *{b}]\n" for n, b in [(0, "a"), *((n, f"k{n - 1}") for n in range(1, 30))]
)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of two rounds and two clients, with every file that a page shows."""
    path = tmp_path_factory.mktemp("viewing") / "run"
    made = RunFolder.create(path, CONFIG, {"seed": 3})
    for number in (1, 2):
        made.append_round({"round": number, "accuracy": 0.4, "loss": 1.0, "local_epochs": 1, "seconds_round": 1.0})
        made.append_clients([{"round": number, "client": client, "name": "a", "accuracy": 0.5} for client in (0, 1)])
        made.append_profile(
            [{"round": number, "lane": "driver", "stage": "train", "phase": "", "times": 1, "seconds": 1, "share": 1}]
        )
    made.finish({"method": "fedavg", "workload": "digits", "synthetic": False, "accuracy": 0.4, "rounds": 2})
    made.log("a line")
    (path / "status.json").write_text('{"state": "finished", "round": 2, "counts": {"done": 4}, "lost": {"1": 2}}')
    return path


def attacks() -> dict[str, tuple[str, Callable[[Path], object]]]:
    """Name → the file, and what is done to it."""

    def text(content: str) -> Callable[[Path], object]:
        return lambda path: path.write_text(content)

    def data(content: bytes) -> Callable[[Path], object]:
        return lambda path: path.write_bytes(content)

    def pipe(path: Path) -> None:
        path.unlink()
        os.mkfifo(path)

    def folder(path: Path) -> None:
        path.unlink()
        path.mkdir()

    def changed(old: bytes, new: bytes) -> Callable[[Path], object]:
        return lambda path: path.write_bytes(path.read_bytes().replace(old, new, 1))

    found: dict[str, tuple[str, Callable[[Path], object]]] = {}
    files = (
        "config.yaml",
        "summary.json",
        "status.json",
        "rounds.csv",
        "clients.csv",
        "profile.csv",
        "environment.json",
        "run.log",
        "process.json",
        ".lock",
    )
    for file in files:
        bytes_of_nothing = b"\xff\xfe\x00\x00" * 50
        for name, attack in {
            "pipe": pipe, "folder": folder, "empty": data(b""), "no UTF-8": data(bytes_of_nothing),
            "NUL": lambda path: path.write_bytes(path.read_bytes()[:20] + b"\0" * 50),
            "brackets": text("[" * 5000), "list": text("[1, 2]"), "text": text('"x"'), "number": text("7"),
        }.items():  # fmt: skip
            found[f"{file}: {name}"] = (file, attack)
    found["aliases"] = ("config.yaml", text(LAUGHS))
    found["nesting"] = ("config.yaml", text("a: " + "[" * 1000 + "]" * 1000))
    for section in ("method", "workload", "model", "engine", "training", "seed"):
        for value in ("null", "[1]", "text", "{name: {a: b}}", "1.5"):
            found[f"{section}: {value}"] = ("config.yaml", text(f"{section}: {value}\n"))
    for name in ("accuracy", "synthetic", "method", "rounds"):
        for value in ('"x"', "[]", "{}", "Infinity", "NaN", "1e999"):
            found[f"summary {name}: {value}"] = ("summary.json", text(f'{{"{name}": {value}}}'))
    for name in ("state", "started", "round", "counts", "lost", "slots", "faults", "out", "current", "message"):
        for value in ('"x"', "[1]", '{"a": "b"}', "Infinity", "null", "-1", "1e308"):
            found[f"status {name}: {value}"] = ("status.json", text(f'{{"{name}": {value}}}'))
    for file in ("rounds.csv", "clients.csv", "profile.csv"):
        found[f"{file}: a word"] = (file, changed(b"\n1,", b"\nword,"))
        found[f"{file}: a cell more"] = (file, changed(b"\n1,", b"\n1,1,1,"))
        found[f"{file}: no header"] = (file, lambda path: path.write_bytes(path.read_bytes().partition(b"\n")[2]))
        found[f"{file}: a huge number"] = (file, changed(b"\n1,", b"\n" + b"9" * 400 + b","))
        found[f"{file}: a quote"] = (file, changed(b"\n1,", b'\n"1,'))
        found[f"{file}: a wide cell"] = (file, changed(b"\n1,", b"\n" + b"x" * 200_000 + b","))
    return found


ATTACKS = attacks()


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_a_damaged_folder_gives_a_page_or_one_sentence(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(original, folder)
    file, attack = ATTACKS[name]
    if file not in ("rounds.csv", "clients.csv"):  # pictures are of nothing else, and take most of the time
        monkeypatch.setattr(run_page, "run_picture", lambda *_: b"")
        monkeypatch.setattr(run_page, "cost_picture", lambda *_: b"")
    (folder / file).touch()
    attack(folder / file)
    started = time.monotonic()
    for show in (lambda: Reading(folder).refresh(), lambda: run_page.page(folder)):
        try:
            show()
        except ResultsError as error:
            assert "\n" not in str(error).strip() or "YAML" in str(error)
            assert str(folder) in str(error)
    assert time.monotonic() - started < 60


@pytest.mark.parametrize("words", [["--help"], ["--print-config"], []])
@pytest.mark.parametrize(
    "content", [LAUGHS, "a: " + "[" * 1000, "engine: [1]", "events: 3", "engine: null\nseed: x", "\xff"]
)
def test_a_hostile_config_ends_with_one_sentence(
    tmp_path: Path, content: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.yaml").write_text(content, encoding="latin-1")
    for given in (["--resume", str(tmp_path)], ["--config", str(tmp_path / "config.yaml")]):
        code = main([*words, *given])
        said = capsys.readouterr().err
        assert code == 2 or (words == ["--help"] and code == 0)
        assert "Traceback" not in said
