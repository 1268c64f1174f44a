"""The chain of a run's proof: it grows, is cut, and says which line is not what was written."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from raysim.errors import DamagedError
from raysim.storage.proof_file import NO_LINES, ProofFile, read_proof


@pytest.fixture
def path(tmp_path: Path) -> Path:
    chain = ProofFile(tmp_path / "proof.jsonl")
    for number in range(4):
        chain.append({"round": number, "rounds": "é"})
    return chain.path


def test_a_head_is_the_digest_of_the_head_before_it_and_of_the_line(path: Path) -> None:
    head = ""
    for line, entry in zip(path.read_text().splitlines(), read_proof(path), strict=True):
        body = line[: line.index(',"head":')] + "}"
        head = hashlib.sha256((head + body).encode()).hexdigest()
        assert entry.head == head and line.endswith(f',"head":"{head}"}}')


def test_it_goes_on_from_a_file_as_if_it_had_never_stopped(path: Path, tmp_path: Path) -> None:
    again = ProofFile(tmp_path / "again.jsonl")
    for number in range(5):
        again.append({"round": number, "rounds": "é"})
    ProofFile(path).append({"round": 4, "rounds": "é"})
    assert path.read_bytes() == again.path.read_bytes()
    assert ProofFile(path).head == again.head


def test_a_cut_leaves_the_lines_of_a_mark(path: Path) -> None:
    mark = {"lines": 2, "head": read_proof(path)[1].head}
    chain = ProofFile(path)
    chain.check(mark)
    chain.cut(mark)
    assert [entry.content["round"] for entry in chain.entries] == [0, 1] and chain.mark() == mark
    chain.cut(NO_LINES)
    assert not path.exists() and chain.head == ""


def test_what_follows_the_marked_lines_may_be_anything(path: Path) -> None:
    mark = ProofFile(path).mark()
    path.write_bytes(path.read_bytes() + b'{"torn')
    chain = ProofFile(path)
    chain.check(mark)
    chain.cut(mark)
    assert len(chain.entries) == 4


@pytest.mark.parametrize("line", [1, 3])
@pytest.mark.parametrize("change", ["digit", "gone", "doubled", "swapped", "torn", "nul"])
def test_a_changed_line_is_named(path: Path, line: int, change: str) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    changed = {
        "digit": [lines[line - 1].replace(b'"round":', b'"round":1')],
        "gone": [],
        "doubled": [lines[line - 1], lines[line - 1]],
        "swapped": [lines[line], lines[line - 1]],
        "torn": [lines[line - 1][:-9] + b"\n"],
        "nul": [bytes(len(lines[line - 1]) - 1) + b"\n"],
    }[change]
    rest = lines[line + (change == "swapped") :]
    path.write_bytes(b"".join([*lines[: line - 1], *changed, *rest]))
    at = line + (change == "doubled")
    with pytest.raises(DamagedError, match=f"line {at} does not follow the lines before it"):
        read_proof(path)


def test_a_mark_finds_a_short_chain_and_one_made_anew(path: Path, tmp_path: Path) -> None:
    mark = ProofFile(path).mark()
    anew = ProofFile(tmp_path / "anew.jsonl")
    for number in range(4):
        anew.append({"round": number, "rounds": "other"})
    with pytest.raises(DamagedError, match="the chain of another run"):
        anew.check(mark)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    with pytest.raises(DamagedError, match="ends after 3 of 4 lines"):
        ProofFile(path).check(mark)
