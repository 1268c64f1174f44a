from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.config.run_config import default_config, from_dict
from raysim.config.stored_config import check_seal, stored_text
from raysim.errors import ConfigError


def test_it_is_yaml_with_a_checksum_in_its_last_line(tmp_path: Path) -> None:
    config = default_config("fedavg")
    (tmp_path / "config.yaml").write_text(stored_text(config))
    check_seal(tmp_path / "config.yaml")
    assert from_dict(yaml.safe_load(stored_text(config))) == config
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
