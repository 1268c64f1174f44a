"""The halves of the benchmarks that run in other systems' environments, with raysim's own dependencies hidden."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
THERE = ("torch", "torchvision", "torch_geometric")
"""What every such environment has, beside the system itself."""
PROGRAM = """
import importlib.abc, importlib.machinery, json, sys, warnings
hidden = set(json.loads(sys.argv[1]))
class Hidden(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self) if name.partition(".")[0] in hidden else None
    def exec_module(self, module):
        raise ModuleNotFoundError(f"No module named {module.__name__!r}: hidden", name=module.__name__)
sys.meta_path.insert(0, Hidden())
warnings.simplefilter("ignore")
import benchmarks.rounds.pfl_app, benchmarks.rounds.flower_app
from benchmarks.rounds import data, models
for name in models.BUILDERS:
    models.build(name)
"""


def _closure(names: tuple[str, ...]) -> set[str]:
    """These distributions and all that they need here."""
    found: set[str] = set()
    open_names = list(names)
    while open_names:
        name = open_names.pop().lower().replace("_", "-")
        try:
            needs = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        if name not in found:
            found.add(name)
            open_names += [_name(need) for need in needs if "extra ==" not in need]
    return found


def _name(requirement: str) -> str:
    return requirement.split(";")[0].split("[")[0].split("(")[0].strip().rstrip("<>=!~.*0123456789, ")


def _hidden() -> list[str]:
    """The modules of what raysim depends on and the other environments need not have."""
    names = _closure(("raysim",)) - _closure(THERE) - {"raysim"}
    owners = metadata.packages_distributions()
    return [module for module, dists in owners.items() if {name.lower().replace("_", "-") for name in dists} <= names]


def test_models_and_data_need_torch_alone() -> None:
    hidden = _hidden()
    assert {"annotated_types", "pydantic", "scipy", "ray"} <= set(hidden)
    command = [sys.executable, "-c", PROGRAM, json.dumps(hidden)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
