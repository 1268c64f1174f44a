"""Federated learning, simulated in parallel on Ray.

``raysim.run(config)`` runs one configuration and returns its tables and its trained model; ``python -m raysim.launch``
does the same from a shell. ``raysim.load_model(folder)`` gives the model of an earlier run. Importing this package
imports neither torch nor Ray.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from raysim.config import RunConfig, default_config
    from raysim.simulation import run
    from raysim.trained import load_model

__all__ = ["RunConfig", "__version__", "default_config", "load_model", "run"]
__version__ = "0.1.0"
"""The only place that says it: pyproject.toml takes it from here."""


def __getattr__(name: str) -> Any:
    # Late, so that reading options or one module does not load the rest.
    if name == "run":
        from raysim.simulation import run

        return run
    if name == "load_model":
        from raysim.trained import load_model

        return load_model
    if name in ("RunConfig", "default_config"):
        from raysim import config

        return getattr(config, name)
    raise AttributeError(f"module 'raysim' has no attribute {name!r}")
