"""Digests of what every method computes, so that a change of the code's layout can be shown to change no bit.

``python -m tests.witness write FILE`` before the change, ``python -m tests.witness compare FILE`` after it: each method
on its small run of the tests, in this process and (with ``--ray``) on two actors, which must give the same. Exit code 1
if a digest differs or nothing could be compared. A method that FILE does not have is named as new, and not compared.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from raysim.config.run_config import RunConfig
from raysim.running.simulation import run
from tests.actors.runs import METHODS, OTHERS, options
from tests.fingerprint import fingerprint
from tests.small_runs import small_run

BASE: Mapping[str, Any] = {
    "workload.clients": 6,
    "schedule.rounds": 5,
    "schedule.local_epochs": 2,
    "engine.checkpoint_every": 1,
    "evaluation.every": 2,
    "engine.dashboard": False,
}


def digest(content: Any) -> str:
    """SHA-256 of a part of a fingerprint."""
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()[:16]
    return hashlib.sha256(repr(content).encode()).hexdigest()[:16]


def config_of(method: str, output: Path, **engine: Any) -> RunConfig:
    """The method's small run of the tests."""
    own = options(method)
    model = {} if "workload__name" in own else {"model__name": "cnn"}
    return small_run(output, BASE, **model | own | engine)


BACKENDS: Mapping[str, Mapping[str, Any]] = {
    "inline": {},
    "two actors": {"engine__backend": "ray", "engine__actors": 2},
}


def digests(backend: str, told: Callable[[str], None]) -> dict[str, dict[str, str]]:
    """Method → part of its result → digest."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for method in (*METHODS, *OTHERS):
            parts = fingerprint(run(config_of(method, Path(folder) / method, **BACKENDS[backend])).folder)
            found[method] = {part: digest(content) for part, content in parts.items()}
            told(f"{method}, {backend}: {found[method]}")
    return found


def main() -> int:
    """The command line; 1 if a digest differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.witness", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("action", choices=("write", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--ray", action="store_true", help="also on two client actors")
    asked = parser.parse_args()
    found = {name: digests(name, lambda text: print(text, flush=True)) for name in list(BACKENDS)[: 1 + asked.ray]}
    if asked.action == "write":
        asked.file.write_text(json.dumps(found["inline"], indent=1) + "\n", encoding="utf-8")
        return 0
    before = json.loads(asked.file.read_text(encoding="utf-8"))
    known = [(name, method) for name, runs in found.items() for method in runs if method in before]
    differing = [f"{method}, {name}" for name, method in known if found[name][method] != before[method]]
    print(f"{len(known) - len(differing)} of {len(known)} runs are equal")
    print("".join(f"new: {method}\n" for method in found["inline"] if method not in before), end="")
    print("".join(f"differs: {run}\n" for run in differing), end="")
    return 1 if differing or not known else 0


if __name__ == "__main__":
    sys.exit(main())
