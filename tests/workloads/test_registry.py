from __future__ import annotations

from dataclasses import fields
from typing import get_type_hints

import pytest

from raysim.config.registry import resolve
from raysim.workloads.option_types import Help
from raysim.workloads.registry import WORKLOADS


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_name_leads_to_its_documented_options(name: str) -> None:
    found = resolve("workload", name)
    hints = get_type_hints(found, include_extras=True)
    for option in fields(found):
        [note] = [note for note in hints[option.name].__metadata__ if isinstance(note, Help)]
        assert note.text, option.name
    assert callable(found.load)
    assert found.name == name
