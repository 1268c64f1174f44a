from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from raysim.storage.untrusted_files import UnreadableFileError, check_types, read_json, read_yaml

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGES = "a: &a {x: 1}\n" + "".join(
    f"k{n}: &k{n} {{<<: [{', '.join(['*' + b] * 9)}]}}\n"
    for n, b in [(0, "a"), *((n, f"k{n - 1}") for n in range(1, 12))]
)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (LAUGHS, "aliases written out"),
        (MERGES, "aliases written out"),
        ("a: &a [*a]", "aliases written out"),
        ("[" * 1000 + "]" * 1000, "nested deeper than 32"),
        ("{a: " * 1000 + "1" + "}" * 1000, "nested deeper than 32"),
        ("a: 1\nb: {c: 1,\n  c: 2}", "line 3: the key c is there a second time \\(the first is in line 2\\)"),
        ("a: [", "not valid YAML"),
        ("a: !!python/object/apply:os.getcwd []", "could not determine a constructor"),
        ("a: 2024-13-45", "not valid YAML"),
        ("a: !!timestamp x", "not valid YAML: a value is not what its tag .* says"),
        ("a: !!bool x", "not valid YAML: a value is not what its tag .* says"),
        ("a: !!int ''", "not valid YAML: a value is not what its tag .* says"),
        ("? [a]\n: b", "not valid YAML"),
        ("x: " + "y" * 2**18, "larger than 262 kB"),
        (b"\xff\xfe", "not UTF-8"),
    ],
)
def test_hostile_yaml_is_refused_at_once(tmp_path: Path, content: str | bytes, said: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    started = time.monotonic()
    with pytest.raises(UnreadableFileError, match=said):
        read_yaml(path)
    assert time.monotonic() - started < 20  # without limits: minutes, or all memory


def test_plain_yaml_with_aliases_and_merges_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("base: &b {x: 1, y: [1, 2.5]}\nother: *b\nmore: {<<: *b, z: true}\n")
    base = {"x": 1, "y": [1, 2.5]}
    assert read_yaml(path) == {"base": base, "other": base, "more": {**base, "z": True}}
    path.write_text("# nothing\n")
    assert read_yaml(path) is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"a": Infinity}', "holds Infinity"),
        ('{"a": [NaN]}', "holds NaN"),
        ("[" * 100_000, "nested too deep"),
        ("[]", "a list where an object is expected"),
        ("{", "not valid JSON"),
        ("", "not valid JSON"),
    ],
)
def test_hostile_json_is_refused(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(UnreadableFileError, match=said):
        read_json(path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.yaml")
    with pytest.raises(UnreadableFileError, match="not a regular file"):
        read_yaml(tmp_path / "config.yaml")
    with pytest.raises(OSError, match="No such file"):
        read_yaml(tmp_path / "other.yaml")


def test_types_of_entries() -> None:
    check_types({"a": 1, "b": None, "other": []}, {"a": (int, float), "b": (str, type(None)), "absent": dict})
    with pytest.raises(UnreadableFileError, match="a is text where a number is expected"):
        check_types({"a": "1"}, {"a": (int, float)})
    with pytest.raises(UnreadableFileError, match="a is true or false where a number is expected"):
        check_types({"a": True}, {"a": int})
    with pytest.raises(UnreadableFileError, match="engine is null where a section is expected"):
        check_types({"engine": None}, {"engine": dict})
