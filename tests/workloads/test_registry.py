from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from typing import get_type_hints

import pytest

from workloads.errors import WorkloadError
from workloads.option_types import Help
from workloads.registry import WORKLOADS, workload_class


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_name_leads_to_its_documented_options(name: str) -> None:
    found = workload_class(name)
    hints = get_type_hints(found, include_extras=True)
    for option in fields(found):
        [note] = [note for note in hints[option.name].__metadata__ if isinstance(note, Help)]
        assert note.text, option.name
    assert callable(found.load)
    assert found.name == name


def test_an_unknown_name_is_told_the_nearest() -> None:
    with pytest.raises(WorkloadError, match=r"unknown workload 'cifar'; did you mean 'cifar10'\?"):
        workload_class("cifar")
    with pytest.raises(WorkloadError, match=r"unknown workload 'xyzzy'\. Known: digits, "):
        workload_class("xyzzy")


def test_reading_options_imports_nothing_heavy() -> None:
    program = (
        "import sys; from workloads.registry import WORKLOADS, workload_class; "
        "[workload_class(n)() for n in WORKLOADS]; "
        "heavy = 'torch pandas sklearn matplotlib torchvision torch_geometric networkx'; "
        "print([m for m in heavy.split() if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
