"""A Python that lacks packages which raysim needs: one sentence for all commands in the place of a traceback."""

from __future__ import annotations

import sys
from importlib.util import find_spec

NEEDED = (
    *("aiohttp", "annotated_types", "jinja2", "matplotlib", "networkx", "numpy", "pandas", "PIL", "plotly", "pyarrow"),
    *("pydantic", "ray", "rich", "safetensors", "scipy", "sklearn", "threadpoolctl", "torch", "torch_geometric"),
    *("torchvision", "yaml"),
)
"""Names that the dependencies of pyproject.toml are imported by."""


def sentence(name: str) -> str:
    """Say which package is missing, and what to do."""
    return (
        f"raysim: {sys.executable} has no package {name!r}, which raysim needs. Use the Python that it was installed "
        "for (`. .venv/bin/activate` in its folder, then the same command), or install it for this one: pip install -e "
        ". in that folder"
    )


def end_without_packages() -> None:
    """End the program where a package is missing, before a command is loaded.

    Raises:
        SystemExit: one is; the exit code is that of a request that cannot be met.
    """
    from raysim.errors import REFUSED

    missing = next((name for name in NEEDED if find_spec(name) is None), None)
    if missing is not None:
        print(sentence(missing), file=sys.stderr)
        raise SystemExit(REFUSED)
