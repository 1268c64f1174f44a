"""A run folder's config.yaml: its last line holds a checksum of the others, which a resumed run checks.

A config with one wrong digit would go on as another run. The line is a comment: the file can be read, copied and
changed as any other, and given to ``--config``; only ``--resume`` asks that it is what the run wrote.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from raysim.config.run_config import RunConfig, to_yaml
from raysim.errors import ConfigError
from raysim.storage.untrusted_files import MAX_YAML_BYTES, read_text

_SEAL = "# SHA-256 of the lines above, which --resume checks: "


def stored_text(config: RunConfig) -> str:
    """The content of config.yaml."""
    return sealed(to_yaml(config))


def sealed(text: str) -> str:
    """A YAML text with the line that vouches for it."""
    return f"{text}{_SEAL}{_checksum(text)}\n"


def check_seal(path: Path) -> None:
    """Check that a run folder's config.yaml is what the run wrote.

    Raises:
        ConfigError: it is not; the message says what to do.
    """
    try:
        text = read_text(path, MAX_YAML_BYTES)
    except (OSError, ValueError) as error:
        raise ConfigError(f"damaged: {path}: {error}") from error
    content, seal, checksum = text.rpartition(_SEAL)
    if not seal:
        raise ConfigError(
            f"damaged: {path}: its last line, the checksum, is missing: the file was cut, or an earlier version "
            "of raysim made this folder. Bring the file back, or start another run with --config and --output"
        )
    if checksum != f"{_checksum(content)}\n":
        raise ConfigError(
            f"damaged: {path}: it has changed since the run wrote it (SHA-256), and going on could change the results. "
            "Bring the file back, or start another run with --config and --output"
        )


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
