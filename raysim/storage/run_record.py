"""A run's ``config.yaml`` and ``summary.json`` as plain data that is read safely, and the run's title."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

from raysim import columns
from raysim.errors import ResultsError
from raysim.storage.folder_files import check_links
from raysim.storage.untrusted_files import UnreadableFileError, check_types, read_json, read_yaml
from raysim.workloads.naming import data_name, synthetic_mark

Part = Literal["method", "workload", "model"]
_SECTIONS: Mapping[str, Any] = {
    **dict.fromkeys(("method", "workload", "model"), (dict, str)),
    **dict.fromkeys(("training", "schedule", "evaluation", "devices", "timing", "engine"), dict),
    **dict.fromkeys(("events", "attack", "privacy", "compression", "defense"), dict),
    "seed": int,
    "output": str,
}
_NUMBER = (int, float, type(None))
LONGEST = 300
"""Most signs of a text in environment.json."""
_PACKAGE, _VERSION = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,99}"), re.compile("[A-Za-z0-9][A-Za-z0-9.!+_-]{0,99}")
_COMMIT, _DIGEST = re.compile("[0-9a-f]{1,64}"), re.compile("[0-9a-f]{64}")
_ENVIRONMENT: Mapping[str, Any] = {
    **dict.fromkeys(("date", "python", "platform", "cpu", "commit"), (str, type(None))),
    **dict.fromkeys(("versions", "caps"), dict),
    "cpu_count": (int, type(None)),
    "dirty": (bool, type(None)),
    "sources": dict,
}
_SUMMARY: Mapping[str, Any] = {
    "method": str,
    "workload": str,
    "proof": str,
    "synthetic": bool,
    **dict.fromkeys(("seed", "clients", "rounds", "best_round", "validated_round", "seconds"), _NUMBER),
    **{start + name: _NUMBER for name, _ in columns.shown("summary") for start in ("", "best_", "validated_")},
}


def read_run_config(folder: Path) -> dict[str, Any]:
    """The sections of a run's ``config.yaml`` as plain data; nothing that it names is imported.

    Raises:
        ResultsError: there is none, it cannot be read as one, or there is a link in the folder.
    """
    path = folder / "config.yaml"
    check_links(folder)
    try:
        config = read_yaml(path, own=True)
        if not isinstance(config, dict):
            raise UnreadableFileError("it holds no sections such as 'training:'")
        check_types(config, _SECTIONS)
        for kind in ("method", "workload", "model"):
            if isinstance(config.get(kind), dict):
                check_types(config[kind], {"name": str})
    except FileNotFoundError as error:
        raise ResultsError(
            f"{folder} is no run folder: config.yaml is missing. Give the folder a run has written."
        ) from error
    except (OSError, UnreadableFileError) as error:
        raise ResultsError(f"Cannot read the run in {folder}: config.yaml: {error}") from error
    return {str(section): content for section, content in config.items()}


def read_summary(folder: Path) -> dict[str, Any]:
    """Read a run's ``summary.json``; empty before the run's end.

    Raises:
        ResultsError: it cannot be read as one.
    """
    return read_facts(folder, "summary.json", partial(check_types, expected=_SUMMARY))


def read_environment(folder: Path) -> dict[str, Any]:
    """The facts in a run's ``environment.json``, which nothing vouches for; empty if there is none.

    Texts are short and printable, and names and versions of packages are such: they get into lists that pip reads.

    Raises:
        ResultsError: it cannot be read as one.
    """
    return read_facts(folder, "environment.json", _check_environment)


def _check_environment(found: dict[str, Any]) -> None:
    check_types(found, _ENVIRONMENT)
    for section in ("versions", "caps"):
        check_types(found.get(section, {}), dict.fromkeys(found.get(section, {}), (str, type(None))))
    texts = [(name, found.get(name)) for name in ("date", "python", "platform", "cpu", "commit")]
    for name, text in [*texts, *found.get("caps", {}).items()]:
        if text is not None and not (len(text) <= LONGEST and text.isprintable()):
            raise UnreadableFileError(f"{name} is no short text of one line")
    packages = {**found.get("versions", {}), "Python": found.get("python")}
    for name, version in packages.items():
        if not _PACKAGE.fullmatch(name) or not _VERSION.fullmatch(version or "0"):
            raise UnreadableFileError(f"versions names {name[:40]!a} {str(version)[:40]!a}, which is no package")
    if not _COMMIT.fullmatch(found.get("commit") or "0"):
        raise UnreadableFileError("commit is none")
    for name, digests in found.get("sources", {}).items():
        if not (len(name) <= LONGEST and name.isprintable() and isinstance(digests, list) and digests):
            raise UnreadableFileError(f"sources names {name[:40]!a} without digests of it")
        if not all(isinstance(digest, str) and _DIGEST.fullmatch(digest) for digest in digests):
            raise UnreadableFileError(f"sources has a digest of {name[:40]!a} that is none")


def read_facts(folder: Path, name: str, check: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """The object in a JSON file of a run's folder; empty if there is none.

    Args:
        check: raises UnreadableFileError for one that is not as it should be.

    Raises:
        ResultsError: it cannot be read as one.
    """
    try:
        found = read_json(folder / name)
        check(found)
    except FileNotFoundError:
        return {}
    except (OSError, UnreadableFileError) as error:
        raise ResultsError(f"Cannot read the run in {folder}: {name}: {error}") from error
    return found


def part_name(part: Part, config: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    """The name of a run's method, workload or model, from its ``summary.json`` or, before its end, its config."""
    section = config.get(part)
    fallback = section.get("name", "?") if isinstance(section, Mapping) else section
    return str(summary.get(part, fallback or "?"))


def is_synthetic(config: Mapping[str, Any], summary: Mapping[str, Any]) -> bool:
    """Whether the data is made up: as the summary says; before there is one, by the workload's name."""
    return bool(summary.get("synthetic", "synthetic" in part_name("workload", config, summary)))


def run_title(config: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    """Method and data of a run.

    Args:
        summary: its ``summary.json``; empty before its end.
    """
    section, data = config.get("workload"), part_name("workload", config, summary)
    if isinstance(section, Mapping) and (named := data_name(section)) not in ("?", section.get("name")):
        data = named
    method = part_name("method", config, summary)
    return f"{method} on {data}{synthetic_mark(is_synthetic(config, summary))}"
