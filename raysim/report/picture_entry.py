"""An entry of a study file that asks for a picture: its keys, its path and its measures, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from raysim.errors import ConfigError
from raysim.report.measures import Column, Measure, find


class PictureEntry:
    """The values of one entry; each mistake in it is a ConfigError that names the file and the entry.

    Args:
        data: what the study file has there.
        study: the file.
        name: the entry's key in the file.
        keys: what an entry of this kind has, no more and no less.
        own: columns of the rounds table that the study declares itself.
    """

    def __init__(self, data: object, study: Path, name: str, keys: Sequence[str], own: Mapping[str, Column]) -> None:
        self._study, self._name, self._own = study, name, own
        if not isinstance(data, Mapping) or set(data) != set(keys):
            there = ", ".join(map(str, data)) if isinstance(data, Mapping) else repr(data)
            raise self.error(f"it has exactly {', '.join(keys)}, and this one {there}.")
        self._data = data

    def __getitem__(self, key: str) -> Any:
        return self._data[key]

    def error(self, text: str) -> ConfigError:
        """What is wrong, behind the names of file and entry."""
        return ConfigError(f"{self._study}: {self._name}: {text}")

    @property
    def path(self) -> Path:
        """Where the picture goes: beside the study file, if it is no absolute path."""
        return (self._study.parent / str(self["path"])).resolve()

    def measure(self, name: object) -> Measure:
        """The measure of this name."""
        try:
            return find(str(name), self._own)
        except ConfigError as error:
            raise self.error(str(error)) from error
