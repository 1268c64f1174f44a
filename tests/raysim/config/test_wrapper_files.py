"""Codecs, rules and attacks: the names of a section's option and the files of raysim/wrappers are the same."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import raysim
from raysim.config.wrapper_files import Folder, kind_class, kind_object
from raysim.config.wrappers import Attack, Compression, Defense
from raysim.workloads.option_types import OnlyWith

WRAPPERS = Path(raysim.__file__).parent / "wrappers"
OPTIONS: tuple[tuple[Folder, type[Any], str], ...] = (
    ("codecs", Compression, "kind"),
    ("codecs", Compression, "down"),
    ("rules", Defense, "rule"),
    ("attacks", Attack, "kind"),
)


@pytest.mark.parametrize(("folder", "section", "option"), OPTIONS)
def test_every_name_has_its_file_and_every_file_its_name(folder: Folder, section: type[Any], option: str) -> None:
    names = set(get_args(get_type_hints(section)[option])) - {"none"}
    files = {path.stem for path in (WRAPPERS / folder).glob("*.py") if not path.stem.startswith("_")}
    assert {name.replace("-", "_") for name in names} == files
    for name in names:
        assert kind_object(folder, name, section())


@pytest.mark.parametrize(("folder", "section", "option"), OPTIONS)
def test_a_kind_reads_the_options_that_say_so(folder: Folder, section: type[Any], option: str) -> None:
    """The note on an option names the kinds whose class has it as a field, no more and no less."""
    path = f"{section.__name__.lower()}.{option}"
    hints = get_type_hints(section, include_extras=True)
    readers: dict[str, set[str]] = {}
    for name in set(get_args(get_type_hints(section)[option])) - {"none"}:
        for field in fields(kind_class(folder, name)):
            readers.setdefault(field.name, set()).add(name)
    readers.pop("trigger", None)  # no option: it follows from the data
    readers.pop("error_feedback", None)  # every codec's errors can be fed back; random-k alone is another then
    for read, names in readers.items():
        notes = [note for note in hints[read].__metadata__ if isinstance(note, OnlyWith)]
        named = {value for note in notes for each in note.any_of if each.path == path for value in each.values}
        assert named == names, read


def test_none_leaves_the_default_of_the_kind() -> None:
    assert kind_object("attacks", "ipm", Attack("ipm")).strength == 0.5
    assert kind_object("attacks", "ipm", Attack("ipm", strength=2.0)).strength == 2.0
