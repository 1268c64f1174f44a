"""Studies that reproduce a paper's table, and each of them at another size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from raysim.config.config_file import read_plain
from raysim.config.nearest import did_you_mean
from raysim.errors import ConfigError

FOLDER = Path(__file__).parent / "studies"
"""The project's own studies, which are installed with it."""
PICTURES = ("picture", "curves", "heat_map")
Scale = Literal["small", "kept", "paper"]
"""Some minutes anywhere; as the project's pages have it; the published protocol."""


@dataclass(frozen=True)
class Reproduction:
    """A study that reproduces a paper's table."""

    name: str
    table: str
    """The paper's table in words."""
    study: Mapping[str, Any]
    """The content of its study file."""

    def at(self, scale: Scale) -> dict[str, Any]:
        """The content of a study file for a folder of its own, without pictures.

        What the scale changes is added to ``base``, where null takes an option away, and to each of the rows, and
        replaces other keys; numbers of the paper, settings and differences of columns that are no longer there are
        left out.
        """
        own = {key: value for key, value in self.study.items() if key not in (*PICTURES, "reproduces")}
        changes = {} if scale == "kept" else self.study["reproduces"][scale]
        base, rows = ({**own[key], **changes.get(key, {})} for key in ("base", "rows"))
        rows = {name: {**(own["rows"].get(name) or {}), **(row or {})} for name, row in rows.items()}
        own |= {**changes, "base": {option: value for option, value in base.items() if value is not None}}
        columns = set(own.get("columns") or ())
        own["rows"] = {name: _of_columns(row, columns) for name, row in rows.items()}
        own["compare"] = [
            {**entry, "columns": there} if "columns" in entry else entry
            for entry in own.get("compare", ())
            if (there := [one for one in entry.get("columns", columns) if one in columns]) or not columns
        ]
        own |= {"results": "results", "table": "table.md", "latex": "table.tex", "csv": "table.csv"}
        return {**own, "title": f"{own['title']} ({self.table}, {scale})"}


def reproductions() -> dict[str, Reproduction]:
    """All of them by name, in the order of their names."""
    found: dict[str, Reproduction] = {}
    for path in sorted(FOLDER.glob("*.yaml")):
        study = read_plain(path, f"{path}: there is no such file.")
        if "reproduces" in study:
            found[path.stem] = Reproduction(path.stem, study["reproduces"]["table"], study)
    return found


def reproduction(name: str) -> Reproduction:
    """The one of this name.

    Raises:
        ConfigError: there is none.
    """
    known = reproductions()
    if name not in known:
        raise ConfigError(f"{name}: no such table.{did_you_mean(name, known)} There are {', '.join(known)}.")
    return known[name]


def _of_columns(row: Mapping[str, Any], columns: set[str]) -> dict[str, Any]:
    """A row without what it says of other columns."""
    own = dict(row)
    for key in ("in", "paper"):
        if columns and key in own:
            own[key] = {name: value for name, value in own[key].items() if name in columns}
    return own
