"""Options of commands that compute with a run's folder, which may be anybody's: whose code may be imported."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from raysim.config.all_sections import DECIDED
from raysim.config.config_file import CONFIG_NAME, check_names, check_seal, read_config_file, without_calls
from raysim.config.registry import KINDS
from raysim.config.run_config import RunConfig, build
from raysim.errors import ConfigError
from raysim.remote.address import typed_path
from raysim.storage.run_folder import RunFolder


def add_trust(parser: argparse.ArgumentParser) -> None:
    """Add the options by which a user allows code that the folder names, and downloads."""
    parser.add_argument(
        "--trust",
        type=typed_path,
        action="append",
        default=[],
        help="a folder whose config.yaml may name any code, and download data",
    )
    for kind in KINDS:
        parser.add_argument(f"--{kind}", help=f"package.module:Class of the {kind}, if config.yaml names one of yours")


def read_config(
    folder: Path,
    options: argparse.Namespace,
    changes: Mapping[str, object] = MappingProxyType({}),
    *,
    one_of_several: bool = False,
) -> RunConfig:
    """The config of a run's folder; only code that the options allow is imported.

    Args:
        changes: settings that take the place of the run's, path → value.
        one_of_several: the options may name code of other folders, too.

    Raises:
        ConfigError: it is not what the run wrote, names code that the options do not allow, or other than the options.
        ResultsError: the folder is no run.
    """
    RunFolder.open(folder)
    file = folder / CONFIG_NAME
    check_seal(file)
    settings = read_config_file(file, run_folder=True)
    named = {kind: getattr(options, kind) for kind in KINDS}
    check_names(settings, file, {f"{kind}.name": name for kind, name in named.items()}, options.trust)
    for kind, name in named.items():
        has = settings.get(f"{kind}.name")
        if name not in (None, has) and not (one_of_several and ":" in name):
            raise ConfigError(
                f"--{kind} {name}: the run in {folder} has {kind} {has}, and the option only allows code of your own "
                f"that the run had. Leave it out. With another {kind}: "
                f"python -m raysim.replay {folder} --set {kind}.name={name}"
            )
    return build([without_calls(settings, file, options.trust), changes], decided=DECIDED)
