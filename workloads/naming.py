"""Names of the data of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath

from raysim.workloads.errors import WorkloadError

LISTED = 3
"""Largest number of sets that a name lists."""
OF_A_PATH = ("npz", "folder", "table", "text", "huggingface")
"""Workloads of data of one's own, which is called by its file or folder."""


def data_name(section: Mapping[str, object]) -> str:
    """The name of the data that a config's workload section asks for.

    It is the stem of a file or folder of one's own, the sets or the setting of TUDatasets, the title of data given in
    Python, else the workload's name.

    Args:
        section: plain data, as it stands in a config.yaml; nothing is imported.
    """
    name, path, sets = section.get("name"), section.get("path"), section.get("sets")
    if name in OF_A_PATH and isinstance(path, str) and path:
        return PurePath(path).name.removesuffix(".npz") if name == "npz" else PurePath(path).stem
    if name == "ogb":
        return str(section.get("set") or name)
    if name == "tudataset":
        if isinstance(sets, Sequence) and not isinstance(sets, str) and sets:
            more = f" and {len(sets) - LISTED} more" if len(sets) > LISTED else ""
            return "+".join(map(str, sets[:LISTED])) + more
        return str(section.get("setting") or name)
    if name == "nodes":
        return PurePath(path).stem if isinstance(path, str) and path else str(section.get("graph") or name)
    if name == "given":
        return str(section.get("title") or "own data")
    return str(name or "?")


def model_name(section: Mapping[str, object]) -> str:
    """The name of the model that a config's model section asks for; of one given in Python that of its class."""
    name = section.get("name")
    return str(section.get("class_name") or name) if name == "given" else str(name or "?")


def synthetic_mark(synthetic: bool, partly: bool = False) -> str:
    """The mark behind a run's or a data set's name where the data is made up; empty for real data."""
    return f" ({'partly ' if partly else ''}synthetic data)" if synthetic else ""


LONGEST_NAME = 200
"""Largest number of characters of a client's name, and of a data set's title."""


def unfit(name: str) -> str:
    """Why a client or a data set cannot have this name in tables and pages; empty if it can."""
    if not name:
        return "has an empty name"
    if len(name) > LONGEST_NAME:
        return f"has a name of {len(name)} characters, and {LONGEST_NAME} are allowed"
    return "" if name.isprintable() else "has a name with signs that are no characters of a text"


def check_names(names: Iterable[str], where: str) -> None:
    """Check the names of clients.

    Args:
        where: the file and its array or column, for the error.

    Raises:
        WorkloadError: one of them cannot stand in tables and pages.
    """
    for name in dict.fromkeys(names):
        if reason := unfit(name):
            raise WorkloadError(f"{where}: client {shown(name)} {reason}; rename it")


def shown(name: str) -> str:
    """The beginning of a name of any signs, as an error may show it."""
    return ascii(name[:40]) + ("…" if len(name) > 40 else "")
