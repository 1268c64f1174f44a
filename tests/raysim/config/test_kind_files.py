"""Codecs, rules, attacks and timing modes: the names of a section's option and the files of its kinds are the same."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import raysim
from raysim.config.command_line import parse
from raysim.config.kind_files import Folder, kind_class, kind_object
from raysim.config.sections import Schedule
from raysim.config.timing import MODES, Timing
from raysim.config.wrappers import Attack, Compression, Defense
from raysim.workloads.option_types import OnlyWith

ROOMS = Path(raysim.__file__).parent
OPTIONS: tuple[tuple[Folder, type[Any], str], ...] = (
    ("wrappers.codecs", Compression, "kind"),
    ("wrappers.codecs", Compression, "down"),
    ("wrappers.rules", Defense, "rule"),
    ("wrappers.attacks", Attack, "kind"),
    ("virtual_time.rules", Timing, "mode"),
    ("samplers", Schedule, "sampling"),
)


@pytest.mark.parametrize(("folder", "section", "option"), OPTIONS)
def test_every_name_has_its_file_and_every_file_its_name(folder: Folder, section: type[Any], option: str) -> None:
    names = set(get_args(get_type_hints(section)[option])) - {"none"}
    files = {path.stem for path in (ROOMS / folder.replace(".", "/")).glob("*.py") if not path.stem.startswith("_")}
    assert {name.replace("-", "_") for name in names} == {file.rstrip("_") for file in files}
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
    readers.pop("sampling_rate", None)  # every sampler has it
    readers.pop("error_feedback", None)  # every codec's errors can be fed back; random-k alone is another then
    for read, names in readers.items():
        notes = [note for note in hints[read].__metadata__ if isinstance(note, OnlyWith)]
        named = {value for note in notes for each in note.any_of if each.path == path for value in each.values}
        assert named == names, read


def test_none_leaves_the_default_of_the_kind() -> None:
    assert kind_object("wrappers.attacks", "ipm", Attack("ipm")).strength == 0.5
    assert kind_object("wrappers.attacks", "ipm", Attack("ipm", strength=2.0)).strength == 2.0


def test_each_option_of_a_mode_is_read_by_some_rule() -> None:
    """But for the weights of stale updates, which all modes share."""
    read = {field.name for mode in MODES for field in fields(kind_class("virtual_time.rules", mode))}
    shared = {"mode", "staleness", "staleness_slope", "staleness_delay"}
    assert read | shared == {field.name for field in fields(Timing)}


def test_help_tells_of_every_mode() -> None:
    text = " ".join(parse(["--help"]).text.split())
    assert all(f"{mode}: {kind_class('virtual_time.rules', mode).when}" in text for mode in MODES)
