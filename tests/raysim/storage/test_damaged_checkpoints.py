"""Checkpoints that are damaged, foreign, or do not fit the run."""

from __future__ import annotations

import hashlib
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.errors import CheckpointError, DamagedError
from raysim.storage import checkpoint, pytree, state_files
from tests.raysim.storage.saved_checkpoints import SERVER_TEMPLATE, Kept, Server, load, save


@given(data=st.data())
@settings(deadline=None, max_examples=40)
@pytest.mark.parametrize("in_manifest", [False, True])
def test_one_changed_byte_is_found_or_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, in_manifest: bool, data: st.DataObject
) -> None:
    path = save(tmp_path_factory.mktemp("c"))
    file = data.draw(st.sampled_from([f for f in sorted(path.iterdir()) if (f.name == "manifest.json") == in_manifest]))
    content = bytearray(file.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    before = checkpoint.read_manifest(path)
    file.write_bytes(content)
    try:
        load(path)
        assert in_manifest and checkpoint.read_manifest(path) == before  # a blank that became another blank
    except DamagedError as error:
        assert str(error).startswith(f"damaged: {file}: " + ("" if in_manifest else "its content has changed"))


def test_a_manifest_in_the_directory_of_another_round_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path, 3)
    with pytest.raises(DamagedError, match="it is of round 3"):
        load(path.rename(tmp_path / "round-000007"))


@pytest.mark.parametrize("name", ["manifest.json", "server.json", "server.safetensors", "clients-00000.safetensors"])
@pytest.mark.parametrize("part", [None, 0.0, 0.5])
def test_truncated_and_missing_files_are_named(tmp_path: Path, name: str, part: float | None) -> None:
    path = save(tmp_path)
    content = (path / name).read_bytes()
    if part is None:
        (path / name).unlink()
    else:
        (path / name).write_bytes(content[: int(len(content) * part)])
    with pytest.raises(CheckpointError, match=f"^damaged: .*{name}"):
        load(path)


@pytest.mark.parametrize(
    "manifest",
    [[], {"format": 3}, {"format": 3, "round": 1, "facts": {}, "files": {"../x": {"sha256": "", "bytes": 0}}}],
)
def test_a_foreign_manifest_is_refused(tmp_path: Path, manifest: Any) -> None:
    path = save(tmp_path)
    if isinstance(manifest, dict):
        manifest["sha256"] = checkpoint._checksum(manifest)
    (path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(CheckpointError, match=r"^damaged: .*manifest\.json"):
        load(path)


def test_another_format_is_named(tmp_path: Path) -> None:
    path = save(tmp_path)
    (path / "manifest.json").write_text(json.dumps({"format": 2}))
    with pytest.raises(CheckpointError, match="has format 2, this raysim reads 3"):
        load(path)


@pytest.mark.parametrize(
    ("server", "kept", "message"),
    [
        (
            Server(np.zeros((2, 4), np.float32)),
            Kept(np.zeros(2)),
            r"server\.weights: expected float32 array of shape \(2, 4\)",
        ),
        (SERVER_TEMPLATE, Kept(np.zeros(3)), r"clients\[0\]\.control: expected .* \(3\), found .* \(2\)"),
    ],
)
def test_a_wrong_template_names_the_leaf(tmp_path: Path, server: Any, kept: Any, message: str) -> None:
    path = save(tmp_path)
    with pytest.raises(CheckpointError, match=f"does not fit this run: .*{message}"):
        checkpoint.load(path, server, lambda client: kept)


class Trap:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.target,)


@pytest.mark.parametrize("name", ["manifest.json", "server.json", "server.safetensors", "clients-00000.json"])
def test_pickle_is_never_loaded(tmp_path: Path, name: str) -> None:
    """Even with the right checksum, a pickle in the place of a file is an error and runs nothing."""
    path = save(tmp_path)
    trap = pickle.dumps(Trap(tmp_path / "sprung"))
    (path / name).write_bytes(trap)
    if name != "manifest.json":
        manifest = json.loads((path / "manifest.json").read_text())
        manifest["files"][name] = {"sha256": hashlib.sha256(trap).hexdigest(), "bytes": len(trap)}
        manifest["sha256"] = checkpoint._checksum({key: manifest[key] for key in manifest if key != "sha256"})
        (path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(CheckpointError, match=r"^damaged: "):
        load(path)
    assert not (tmp_path / "sprung").exists()
    for module in (checkpoint, state_files, pytree):
        assert "import pickle" not in Path(str(module.__file__)).read_text()
