"""Codecs, rules, attacks, timing modes and samplers: each is found by its file, as methods are by theirs.

The section's option lists the name, and the file of that name (``top-k``: ``wrappers/codecs/top_k.py``; a keyword of
Python has an underscore behind it, ``async_.py``) defines ``KIND``, a frozen dataclass whose fields are the section's
options that it reads, by their names. But for timing modes and samplers nothing is imported that no run asks for.
"""

from __future__ import annotations

import importlib
import keyword
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Folder = Literal["wrappers.codecs", "wrappers.rules", "wrappers.attacks", "virtual_time.rules", "samplers"]


def kind_class(folder: Folder, name: str) -> type[Any]:
    """The class of this kind's file."""
    module = name.replace("-", "_") + "_" * keyword.iskeyword(name)
    found: type[Any] = importlib.import_module(f"raysim.{folder}.{module}").KIND
    return found


def kind_object(folder: Folder, name: str, section: DataclassInstance) -> Any:
    """The kind with those of its fields that are options of the section; None leaves the kind's own default."""
    cls, own = kind_class(folder, name), {field.name: getattr(section, field.name) for field in fields(section)}
    return cls(**{each.name: own[each.name] for each in fields(cls) if own.get(each.name) is not None})
