"""Federated learning, simulated in parallel on Ray.

``raysim.run(config)`` runs one configuration and returns its tables and its trained model; ``python -m raysim.launch``
does the same from a shell. ``raysim.load_model(folder)`` gives the model of an earlier run. Importing this package
imports neither torch nor Ray.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from raysim.version import __version__ as __version__

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig, default_config
    from raysim.simulation import run
    from raysim.trained import load_model

__all__ = ["RunConfig", "__version__", "default_config", "load_model", "run"]


def __getattr__(name: str) -> Any:
    # Late, so that reading options or one module does not load the rest.
    if name == "run":
        from raysim.simulation import run

        return run
    if name == "load_model":
        from raysim.trained import load_model

        return load_model
    if name in ("RunConfig", "default_config"):
        from raysim.config import run_config

        return getattr(run_config, name)
    raise AttributeError(f"module 'raysim' has no attribute {name!r}")
