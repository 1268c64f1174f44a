"""A finished run's folder whose files somebody wrote anew, checksums included: each reader says one sentence, soon."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from raysim.comparison import csv_files, latex, markdown
from raysim.comparison.table import Entry, Head, Page, Table
from raysim.config.config_file import sealed
from raysim.contribution.kept import KeptUtilities
from raysim.crate.__main__ import main as crate
from raysim.errors import CheckpointError, ConfigError, DamagedError, ResultsError
from raysim.judge.runs import read_side
from raysim.report import run_page
from raysim.results.measures import find
from raysim.running.simulation import run
from raysim.storage.checkpoint_digests import read_digests
from raysim.storage.folder_files import DEEPEST, check_links, without_controls
from raysim.storage.proof_file import PROOF_NAME, ProofFile, read_proof
from raysim.storage.run_record import read_environment
from raysim.storage.untrusted_files import UnreadableFileError, read_json, read_yaml
from raysim.verification.derived_files import same
from raysim.verification.folder_check import FolderCheck
from raysim.verify import main as verify
from raysim.workloads.errors import WorkloadError
from raysim.workloads.graphs.node_files import read_nodes
from raysim.workloads.graphs.tu_reader import files_in
from raysim.workloads.models.weights import read_state
from tests.attack.folders import resume, small
from tests.attack.forgeries import replaced, with_checksum

NASTY: list[Any] = [None, [], {}, "x", -1, float("inf"), True, {"a": [1]}]
ESCAPES = "\x1b]0;title\x07\x1b[2J"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("foreign") / "run"
    run(small(path, schedule__rounds=2))
    return path


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "run"))


def changed(data: Any, keys: tuple[Any, ...], value: Any) -> Any:
    """A copy with another value at one place."""
    if not keys:
        return value
    first, *rest = keys
    copied = [*data] if isinstance(data, list) else dict(data)
    copied[first] = changed(copied[first], tuple(rest), value)
    return copied


def places(data: Any, deep: int = 3) -> Iterator[tuple[Any, ...]]:
    """The places of a JSON value, of each list the first entry alone."""
    entries = (
        list(data.items()) if isinstance(data, dict) else [(0, data[0])] if isinstance(data, list) and data else []
    )
    for key, value in entries if deep else ():
        yield (key,)
        yield from ((key, *rest) for rest in places(value, deep - 1))


def said(main: Callable[[list[str]], int], words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The output of a command, which must not succeed."""
    code = main(words)
    printed = capsys.readouterr()
    assert code in (1, 2), (words, printed.out)
    return printed.out + printed.err


def test_a_chain_made_anew_with_other_values(folder: Path) -> None:
    contents = [dict(entry.content) for entry in read_proof(folder / PROOF_NAME)]
    for number in (0, 1, len(contents) - 1):
        for keys in places(contents[number], 1):
            for value in NASTY[:5]:
                (folder / PROOF_NAME).unlink()
                chain = ProofFile(folder / PROOF_NAME)
                for content in changed(contents, (number, *keys), value):
                    chain.append(content)
                assert not FolderCheck(folder).run().equal


def test_checkpoints_made_anew_with_other_values(folder: Path) -> None:
    path = sorted(folder.glob("checkpoints/round-*/manifest.json"))[-1]
    manifest = json.loads(path.read_text())
    kept = {key: manifest[key] for key in ("format", "round", "facts")} | {
        "files": {"server.json": manifest["files"]["server.json"]}
    }
    for keys in places(kept):
        for value in NASTY if keys[1:2] != ("settings",) else NASTY[:1]:
            with_checksum(path, changed(manifest, keys, value))
            try:
                read_digests(path.parent)
            except CheckpointError as error:
                assert str(path.parent) in str(error)
    with_checksum(path, manifest | {"facts": {}})
    ending = resume(folder)
    assert ending.code and not ending.fault()


STATES: list[Any] = [
    {}, [1], [[1, 2, 3]], {"dict": 1}, {"dict": [[1]]}, {"dict": [[[], 1]]}, {"list": {}}, {"fields": []},
    {"array": "no"}, {"array": 1}, {"float": "x"}, {"float": 1}, {"none": 1}, {"tuple": [], "list": []},
]  # fmt: skip


def deeper(levels: int) -> Any:
    node: Any = 1
    for _ in range(levels):
        node = {"list": [node]}
    return node


def test_states_that_nothing_packs_are_damage_and_no_crash(folder: Path) -> None:
    path = sorted(folder.glob("checkpoints/round-*/manifest.json"))[-1].parent
    (name,) = (found.name for found in path.glob("clients-*.json"))
    honest = (path / name).read_text()
    states = [json.dumps(state) for state in (*STATES, *([[0, state]] for state in STATES), [[0, deeper(70)]])]
    states += ["[" * 100_000, honest.replace('"shape": [', '"shape": [1, ')]  # whose bytes are those of the digest
    assert states[-1] != honest
    for state in states:
        put(path, name, state.encode())
        with pytest.raises(DamagedError, match="clients-"):
            read_digests(path)


def put(checkpoint: Path, name: str, content: bytes) -> None:
    """Another content of a checkpoint's file, for which its manifest vouches."""
    replaced(checkpoint / name, content)
    manifest = json.loads((checkpoint / "manifest.json").read_text())
    manifest["files"][name] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    with_checksum(checkpoint / "manifest.json", manifest)


def test_an_environment_is_short_texts_and_packages(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing vouches for it: none of it may run, end a command with a traceback, or steer the terminal."""
    found = json.loads((folder / "environment.json").read_text()) | {"sources": {}}
    values: list[Any] = [[], {"a": [1]}, ESCAPES, "1\n--index-url x", "9" * 500]
    for keys in [
        ("python",),
        ("commit",),
        ("cpu",),
        ("versions",),
        ("versions", "torch"),
        ("caps",),
        ("dirty",),
        ("sources",),
    ]:
        for value in values:
            (folder / "environment.json").write_text(json.dumps(changed(found, keys, value)))
            with pytest.raises(ResultsError, match=r"environment\.json"):
                read_environment(folder)
    assert "environment.json" in said(crate, [str(folder)], capsys)
    assert verify([str(folder)]) == 0  # what it says of the machine is no part of the proof


def test_settings_of_other_types(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (folder / "config.yaml").read_text().rpartition("# SHA-256")[0]
    for old, new in (
        ("rounds: 2", "rounds: [1]"), ("rounds: 2", "rounds: 2026-01-01"), ("rounds: 2", "rounds: .inf"),
        ("epochs: 0", "epochs: x"), ("seed: 0", "seed: 0x" + "f" * 6000), ("seed: 0", "seed: !!set {a}"),
    ):  # fmt: skip
        assert old in text
        (folder / "config.yaml").write_text(sealed(text.replace(old, new, 1)))
        assert "Traceback" not in said(verify, [str(folder)], capsys)
        assert "Traceback" not in said(crate, [str(folder)], capsys)


def test_whole_numbers_of_thousands_of_digits_are_refused(tmp_path: Path) -> None:
    for name, text in (("a.yaml", "a: 0b" + "1" * 20_000), ("b.yaml", "a: " + "9" * 200)):
        (tmp_path / name).write_text(text)
        with pytest.raises(UnreadableFileError, match="whole number of"):
            read_yaml(tmp_path / name)
    (tmp_path / "c.json").write_text('{"a": ' + "9" * 400 + "}")
    with pytest.raises(UnreadableFileError, match="whole number of"):
        read_json(tmp_path / "c.json")


def test_a_column_twice_is_found_also_before_the_end(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Readers that take the first of two columns would see another result than the one in the proof."""
    (folder / "summary.json").unlink()
    lines = (folder / "rounds.csv").read_text().splitlines()
    (folder / "rounds.csv").write_text("".join(f"{'accuracy' if not n else '1.0'},{x}\n" for n, x in enumerate(lines)))
    assert "names a column twice" in said(verify, [str(folder)], capsys)


def test_a_parquet_file_of_more_rows_than_the_table_is_not_read(folder: Path) -> None:
    few = pandas.DataFrame({"round": [1, 2]})
    few.to_parquet(folder / "few.parquet")
    pandas.DataFrame({"round": np.zeros(2_000_000)}).to_parquet(folder / "many.parquet")
    assert same(folder / "few.parquet", few) and not same(folder / "many.parquet", few)


def test_folders_in_folders_and_names_that_are_not_utf8(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.close(os.open(os.fsencode(folder) + b"/\xff.txt", os.O_CREAT))
    assert "is no name for a file" in said(crate, [str(folder)], capsys)
    (folder / "/".join("d" * (DEEPEST + 2))).mkdir(parents=True)
    with pytest.raises(ResultsError, match="deep"):
        check_links(folder)
    assert "deep" in said(verify, [str(folder)], capsys)


def test_pipes_are_not_waited_for(tmp_path: Path) -> None:
    for name in ("weights.safetensors", "weights.pt", "graph.npz", "SET.zip", "utilities.csv"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "request.yaml").write_text("proof: a\n")
    for name in ("weights.safetensors", "weights.pt"):
        with pytest.raises(WorkloadError, match="cannot be read"):
            read_state(str(tmp_path / name))
    with pytest.raises(WorkloadError, match="not a regular file"):
        read_nodes(tmp_path)
    with pytest.raises(WorkloadError, match="cannot be read"):
        files_in(tmp_path / "SET.zip", "SET").read("A")
    with pytest.raises((ResultsError, ConfigError), match="utilities"):
        KeptUtilities(tmp_path, {"proof": "a"})


def test_utilities_beside_a_run_are_no_way_to_another_file(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("of the user, without an end")
    (tmp_path / "u").mkdir()
    (tmp_path / "u" / "request.yaml").write_text("proof: a\n")
    (tmp_path / "u" / "utilities.csv").symlink_to(tmp_path / "notes")
    with pytest.raises(ResultsError, match="link"):
        KeptUtilities(tmp_path / "u", {"proof": "a"})
    assert (tmp_path / "notes").read_text() == "of the user, without an end"


def test_a_page_and_a_judgment_of_names_that_are_code(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_page, "run_picture", lambda *_: b"")
    monkeypatch.setattr(run_page, "cost_picture", lambda *_: b"")
    text = (folder / "config.yaml").read_text().replace("name: local", "name: '<script>alert(1)</script>'")
    (folder / "config.yaml").write_text(text)
    (folder / "summary.json").unlink()
    clients = (folder / "clients.csv").read_text().splitlines()
    place = clients[0].split(",").index("name") if "name" in clients[0].split(",") else 0
    cells = clients[1].split(",")
    cells[place] = "<img src=x onerror=alert(1)>" if place else cells[place]
    (folder / "clients.csv").write_text("\n".join([clients[0], ",".join(cells), *clients[2:], ""]))
    content = run_page.page(folder).read_bytes()
    assert b"<script>alert" not in content and b"<img src=x" not in content
    _, refusals = read_side("A", [folder])
    assert refusals


EVIL = (
    "<script>alert(1)</script>", "a|b", "a\\|b", "![x](http://t/p.png)", "x\n\\input{/etc/passwd}", "x\r\\input{y}",
    "=cmd()", "-1+1", "+1", "@a", ESCAPES, "\u202eright to left",
)  # fmt: skip


def test_names_in_tables_are_text() -> None:
    rows = tuple((name, (Entry(name),)) for name in EVIL)
    table = Table("", "", (Head("", EVIL[0]),), rows, tuple({"row": name, "mean": -1.5} for name in EVIL), EVIL)
    page = Page(EVIL[4], (table,), EVIL, origin=EVIL)
    text = markdown.page(page)
    assert "<script" not in text and "](" not in text and not re.search("[\x1b\r\u202e]", text)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in lines} == {3} and len(lines) == len(EVIL) + 2
    paper = latex.page(page, "t")
    assert "\\input" not in re.sub(r"(?m)^%.*$", "", paper) and not re.search("[\x1b\r\u202e]", paper)
    read = [*csv.DictReader(io.StringIO(csv_files.text(table.records), newline=""))]
    assert not any(row["row"].startswith(("=", "+", "-", "@")) for row in read)
    assert [row["row"].removeprefix("'") for row in read] == [*map(without_controls, EVIL)] and {
        row["mean"] for row in read
    } == {"-1.5"}


def test_a_paper_installs_nothing_that_a_folder_names(folder: Path) -> None:
    pytest.importorskip("mlcroissant")
    from raysim.paper import instructions
    from raysim.paper.collected import collect

    found = json.loads((folder / "environment.json").read_text())
    found["versions"] |= {"evil-package": "6.6.6"}
    (folder / "environment.json").write_text(json.dumps(found))
    lines = instructions.requirements(collect([folder], "", [find("loss")]), "").splitlines()
    assert "# not a package that raysim needs: evil-package==6.6.6" in lines
    assert not any(line.startswith("evil") for line in lines)
    for name, version in (("a @ https://x", "1"), ("a", "1\n--index-url https://x"), ("-r /etc/x", ""), ("a", "1;b")):
        (folder / "environment.json").write_text(json.dumps(found | {"versions": {name: version}}))
        with pytest.raises(ResultsError, match="no package"):
            collect([folder], "", [find("loss")])
