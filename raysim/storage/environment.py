"""Where a run was made, as its folder records it."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from raysim.portable import VARIABLES
from raysim.version import __version__

PACKAGES = ("ray", "torch", "torchvision", "torch-geometric", "numpy", "scipy", "pandas")
"""Packages whose versions are recorded."""
_SOURCES = ("raysim", "actors", "aggregators", "workloads", "pyproject.toml")


def environment() -> dict[str, Any]:
    """Where a run was made: versions, processor and its caps, commit, date. No names of hosts or users, no paths."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": " ".join(filter(None, (platform.system(), platform.machine(), *platform.libc_ver()))),
        "cpu": processor(),
        "cpu_count": os.cpu_count(),
        "versions": {"raysim": __version__} | {name: _version(name) for name in PACKAGES},
        "caps": {name: os.environ[name] for name in VARIABLES if name in os.environ},
        **_own_commit(),
    }


@cache
def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def processor() -> str | None:
    """The processor's name, with family and model on Linux: rented machines often name its make alone."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not Linux
        return platform.processor() or None
    facts: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        facts.setdefault(name.strip(), value.strip())
    numbers = [
        f"{short} {facts[name]}" for short, name in (("family", "cpu family"), ("model", "model")) if name in facts
    ]
    return ", ".join([facts["model name"], *numbers]) if "model name" in facts else None


@cache
def _own_commit() -> dict[str, Any]:
    """That of the code as it was when this process first asked."""
    return _commit(Path(__file__).resolve().parents[2])


def _commit(source: Path) -> dict[str, Any]:
    """Commit and dirty flag of the source tree; both null where it is not itself the top of a git checkout.

    A package installed inside somebody's own repository must not take that repository's commit.
    """
    try:
        if Path(_git(source, "rev-parse", "--show-toplevel")).resolve() == source:
            changes = _git(source, "status", "--porcelain", "--", *_SOURCES)
            return {"commit": _git(source, "rev-parse", "HEAD"), "dirty": bool(changes)}
    except (OSError, subprocess.SubprocessError):
        pass
    return {"commit": None, "dirty": None}


def _git(source: Path, *arguments: str) -> str:
    command = ["git", "-C", str(source), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
