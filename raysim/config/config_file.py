"""Files with settings: how they are read, whose code they may name, and whether a run's is what the run wrote.

Importing a module runs it, so a file of unknown origin must not choose what is imported. The last line of a run
folder's config.yaml holds a checksum of the others, which a resumed run checks: a config with one wrong digit would go
on as another run. The line is a comment: the file can be read, copied and changed as any other, and given to
``--config``; only ``--resume`` asks that it is what the run wrote.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from raysim.config import registry
from raysim.config.run_config import RunConfig, flatten, to_yaml
from raysim.errors import ConfigError
from raysim.remote.address import is_remote
from raysim.storage.folder_files import check_links, harmless
from raysim.storage.untrusted_files import MAX_YAML_BYTES, UnreadableFileError, read_text, read_yaml

CONFIG_NAME = "config.yaml"
ADDRESS = "engine.address"
DOWNLOAD = "workload.download"
OBSERVER = "engine.observer"
CACHE = "workload.cache_dir"
CALLING = (ADDRESS, DOWNLOAD, OBSERVER, CACHE)
"""Options by which a run calls another machine, imports observers or writes elsewhere: no file alone can ask for it."""
OUTPUT = "output"
OFF: Mapping[str, object] = {DOWNLOAD: False, CACHE: ""}
"""Values of these for a look at a run's folder."""
_SEAL = "# SHA-256 of the lines above, which --resume checks: "


def read_config_file(path: Path, *, run_folder: bool = False) -> dict[str, object]:
    """A YAML file's options as path → value; ConfigError that names the file if it is missing or not such YAML."""
    absent = f"--config {path}: there is no such file (looked in {Path.cwd()})."
    if run_folder:
        absent = (
            f"--resume {path.parent}: no {CONFIG_NAME} in it, so this is not the folder of a run. "
            "Give the folder that the run printed when it started."
        )
        check_links(path.parent)
    data = read_plain(path, absent, own=run_folder)
    if run_folder and data is None:
        raise ConfigError(f"damaged: {path}: it is empty, and a run's names its settings. Bring the file back.")
    return flatten({} if data is None else data, str(path))


def read_plain(path: Path, absent: str, *, own: bool = False) -> Any:
    """Read a YAML file as plain data; ConfigError if it cannot be read, which says ``absent`` if there is none."""
    try:
        return read_yaml(path, own=own)
    except FileNotFoundError as error:
        raise ConfigError(absent) from error
    except (OSError, UnreadableFileError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error


def check_names(
    settings: Mapping[str, object],
    file: Path,
    named: Mapping[str, object],
    trusted: Sequence[Path] = (),
    *,
    advice: str = "",
) -> None:
    """Refuse a file that names code (``package.module:Class``) which the user has not named or trusted.

    Args:
        named: names that the user gave directly (on the command line), ``method.name`` → name.
        trusted: folders and files whose configurations may name any code (``--trust``).
        advice: how to name or trust it; empty: on the command line.

    Raises:
        ConfigError: the first name that is neither raysim's own, nor named, nor in a trusted file.
    """
    if is_trusted(file, trusted):
        return
    for kind in registry.KINDS:
        name = settings.get(f"{kind}.name")
        if isinstance(name, str) and ":" in name and named.get(f"{kind}.name") != name:
            words = f"add --{kind} {name}, or --trust {file.parent} for all that files in that folder name"
            raise ConfigError(
                f"{file} names code of its own: {kind} {name!r}. Importing it would run that code, so a file alone "
                f"cannot ask for it. If you know it, {advice or words}."
            )


def check_calls(
    settings: Mapping[str, object],
    file: Path,
    given: Collection[str],
    trusted: Sequence[Path] = (),
    *,
    advice: str = "",
) -> None:
    """Refuse a file by which a run would call another machine, import observers or write where the user has not said.

    A Ray cluster is shown its token, and is sent the code and the data of the run; a download tells its server who asks
    for what the file names; importing an observer runs its code; and decoded images are written into a cache.

    Args:
        given: the options that the user gave directly; those of ``CALLING`` among them are used instead of the file's.
        trusted: as of :func:`check_names`.
        advice: how to name the option; empty: on the command line.

    Raises:
        ConfigError: the file names a cluster's address (other than ``local`` and ``auto``), turns the download of data
            on, names an observer of its own or a folder for decoded images, and is not trusted.
    """
    if is_trusted(file, trusted):
        return
    folder = f"or --trust {file.parent} for files in that folder"
    address = settings.get(ADDRESS)
    if _calls(ADDRESS, address) and ADDRESS not in given:
        words = f"add --{ADDRESS} {address}, {folder}; --{ADDRESS} local stays on this machine"
        raise ConfigError(
            f"{file} names a Ray cluster, {ADDRESS} {address!r}, which would be shown your token, so a file alone "
            f"cannot ask for it. If you know that cluster, {advice or words}."
        )
    if _calls(DOWNLOAD, settings.get(DOWNLOAD)) and DOWNLOAD not in given:
        words = f"add --{DOWNLOAD} true, {folder}; --{DOWNLOAD} false takes what is on this machine"
        source = settings.get("workload.repository") or settings.get("workload.name")
        raise ConfigError(
            f"{file} downloads data ({DOWNLOAD}; {source}), and a file alone cannot ask for that. If you want it, "
            f"{advice or words}."
        )
    observers = settings.get(OBSERVER)
    if _calls(OBSERVER, observers) and OBSERVER not in given:
        words = f"add --observer {_typed(observers)}, {folder}; --observer [] leaves them out"
        raise ConfigError(
            f"{file} names code of its own: observer {_typed(observers)!r}. Importing it would run that code, so a "
            f"file alone cannot ask for it. If you know it, {advice or words}."
        )
    cache = settings.get(CACHE)
    if _calls(CACHE, cache) and CACHE not in given:
        words = f"add --{CACHE} {shlex.quote(str(cache))}, {folder}; --{CACHE} '' takes the usual cache"
        raise ConfigError(
            f"{file} writes decoded images into {harmless(str(cache))} ({CACHE}), and a file alone cannot ask for "
            f"that. If you want it, {advice or words}."
        )


def check_output(settings: Mapping[str, object], file: Path, given: Collection[str], trusted: Sequence[Path]) -> None:
    """Refuse a file of a new run that names a remote folder, unless the user has named one too.

    What the run writes would be sent there, with the user's credentials. A run that is resumed does not go by it.

    Raises:
        ConfigError: the file is not trusted, and ``output``, which is such an address, is not among the ``given``.
    """
    output = settings.get(OUTPUT)
    if OUTPUT not in given and is_remote(output) and not is_trusted(file, trusted):
        raise ConfigError(
            f"{file} names a remote folder, {OUTPUT} {output!r}, where the run would be sent with your credentials, so "
            f"a file alone cannot ask for it. If you want it, add --{OUTPUT} {shlex.quote(str(output))}, or --trust "
            f"{file.parent} for files in that folder; --{OUTPUT} '' takes a folder of this machine."
        )


def without_calls(settings: Mapping[str, object], file: Path, trusted: Sequence[Path] = ()) -> dict[str, object]:
    """The settings for a look at a run folder: this machine's data and usual cache, unless the folder is trusted."""
    if is_trusted(file, trusted):
        return dict(settings)
    return {option: OFF.get(option, value) for option, value in settings.items()}


def given_calls(names: Iterable[str]) -> list[str]:
    """Options that a file alone cannot ask for among these names, as they were typed: in full, or the last part."""
    typed = {name.replace("-", "_") for name in names}
    return [option for option in (*CALLING, OUTPUT) if typed & {option, option.rpartition(".")[2]}]


def _calls(option: str, value: object) -> bool:
    """Whether a file alone cannot ask for this value; of values that no option allows, too."""
    if option in (ADDRESS, OBSERVER):
        return ":" in _typed(value)
    if option == CACHE:
        return value not in (None, "")
    return value not in (None, False) and str(value).lower() != "false"


def _typed(value: object) -> str:
    """A value as it is typed on a command line."""
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return "true" if value is True else str(value)


def is_trusted(file: Path, trusted: Sequence[Path]) -> bool:
    """Whether a file lies in a folder that the user trusts."""
    place = file.resolve()
    return any(place.is_relative_to(path.resolve()) for path in trusted)


def naming_words(settings: Mapping[str, object]) -> str:
    """The command-line words that name a configuration's own code and calls again: `` --method mine:Method``."""
    code = [(kind, settings.get(f"{kind}.name")) for kind in registry.KINDS]
    given = [(kind, name) for kind, name in code if isinstance(name, str) and ":" in name]
    calls = [(option, settings[option]) for option in CALLING if _calls(option, settings.get(option))]
    words = [(option, shlex.quote(_typed(value))) for option, value in [*given, *calls]]
    return "".join(f" --{option} {value}" for option, value in words)


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
        text = read_text(path, MAX_YAML_BYTES, own=True)
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
