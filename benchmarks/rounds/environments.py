"""An environment of its own for each of the other systems, made with uv on first use and kept."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

CACHE = Path.home() / ".cache" / "raysim" / "benchmarks"
GRAPHS = "torch_geometric==" + version("torch_geometric")
"""The package that the network of P4 is built from."""
REQUIREMENTS = {
    "flower": ["flwr[simulation]==1.41.0", GRAPHS],
    "pfl": ["pfl[pytorch]==0.6.0", GRAPHS],
    "appfl": ["appfl==1.12.0"],
}
"""The newest versions on PyPI when this was measured; raysim and the bare loop use this environment."""


def python(system: str, cache: Path) -> str:
    """The interpreter to run a system with: this one, or that of its environment, which is made if need be."""
    if system not in REQUIREMENTS:
        return sys.executable
    # The same torch as raysim's and the bare loop's: otherwise two versions of torch would be compared.
    torch = [f"{name}=={version(name).partition('+')[0]}" for name in ("torch", "torchvision")]
    return environment(system, [*REQUIREMENTS[system], *torch], cache)


def environment(name: str, requirements: Sequence[str], cache: Path = CACHE) -> str:
    """The interpreter of an environment with these packages, which is made if need be."""
    key = hashlib.sha256(" ".join([sys.version, *requirements]).encode()).hexdigest()[:10]
    folder = cache / f"{name}-{key}"
    interpreter = folder / "bin" / "python"
    if not (folder / "complete").exists():
        print(f"making {folder}: {' '.join(requirements)}", file=sys.stderr, flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        uv = [sys.executable, "-m", "uv"] if shutil.which("uv") is None else ["uv"]
        subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, str(folder)], check=True)
        # Compiled now: the first run would otherwise pay for it.
        install = [*uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", str(interpreter)]
        subprocess.run([*install, *requirements], check=True)
        (folder / "complete").touch()
    return str(interpreter)
