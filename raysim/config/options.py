"""An option is a field of a dataclass: pydantic checks values by its annotation, and converts what was typed.

The annotation holds the range and the help text (``workloads/option_types.py``); any other constraint that pydantic
knows works too. What is text on the command line stands for what it would be in a YAML file.
"""

from __future__ import annotations

import csv
import functools
import numbers
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast, get_args, get_origin, get_type_hints

from raysim.config.nearest import STUDY, did_you_mean
from raysim.errors import ConfigError
from raysim.seeds import Seed
from raysim.workloads.option_types import Help, OnlyWith

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_KINDS = {
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a finite number",
    "string": "text",
    "null": "null",
}
_LIMITS = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}
_OUT_OF_RANGE = ("greater_than", "less_than")
_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False, "null": None, "~": None}


@dataclass(frozen=True)
class Option:
    """One option of a run: ``path`` is its full name, ``training.learning_rate``; ``default`` its dataclass's own."""

    path: str
    hint: Any
    default: object

    @functools.cached_property
    def help(self) -> Help:
        """Its meaning; empty where a class of a user's own says none."""
        for note in getattr(self.hint, "__metadata__", ()):
            if isinstance(note, Help):
                return note
        return Help(self.schema().get("description", ""))

    @functools.cached_property
    def only_with(self) -> tuple[OnlyWith, ...]:
        """The values of other options with which alone it is read."""
        return tuple(note for note in getattr(self.hint, "__metadata__", ()) if isinstance(note, OnlyWith))

    @property
    def type(self) -> Any:
        """Its type without constraints."""
        return get_args(self.hint)[0] if get_origin(self.hint) is Annotated else self.hint

    @functools.cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        return _adapter(self.hint)

    def schema(self) -> dict[str, Any]:
        """The allowed values as JSON Schema."""
        from pydantic.errors import PydanticInvalidForJsonSchema

        try:
            return self._adapter.json_schema()
        except PydanticInvalidForJsonSchema:  # a type of a user's own
            return {"title": getattr(self.type, "__name__", str(self.type))}

    def allowed(self) -> str:
        """The values that are allowed, for people: ``sgd | adamw``; ``a finite number > 0, ≤ 1``."""
        return _describe(self.schema())

    def check(self, value: object) -> None:
        """ConfigError unless ``value`` has the type and lies in the range of this option."""
        from pydantic import ValidationError

        try:
            self._adapter.validate_python(value)
        except ValidationError as error:
            raise self._error(value) from error

    def convert(self, raw: object, usual: object = None) -> object:
        """``raw``, text of a command line or a value out of a YAML file, as the type of this option; checked.

        Args:
            usual: the run's default, where its method or workload brings one.
        """
        from pydantic import ValidationError

        if isinstance(raw, str) and not _is_utf_8(raw):  # of a file that is named in Latin-1, say
            raise ConfigError(
                f"{self.path}: {raw!r} is not allowed: it is not UTF-8, as config.yaml is. Choose another name."
            )
        if isinstance(raw, numbers.Integral) and not isinstance(raw, bool):
            raw = int(raw)  # of numpy's too
        shown = raw
        for value in _readings(raw):
            try:
                return self._adapter.validate_python(value)
            except ValidationError as error:
                if any(reason["type"].startswith(_OUT_OF_RANGE) for reason in error.errors()):
                    shown = value
        raise self._error(shown, several=isinstance(raw, str | list | tuple) and self._takes_each_of(raw), usual=usual)

    def _takes_each_of(self, raw: str | Sequence[object]) -> bool:
        """Whether several values are given, each of them allowed where one is."""
        parts = raw.split(",") if isinstance(raw, str) else raw
        try:
            return len(parts) > 1 and all(self.convert(part) is not None for part in parts)
        except ConfigError:
            return False

    def _error(self, value: object, *, several: bool = False, usual: object = None) -> ConfigError:
        hint = (
            f" {STUDY}"
            if several
            else did_you_mean(str(value), map(str, get_args(self.type)))
            if get_origin(self.type) is Literal
            else ""
        )
        default = show(self.default) + (f" ({self.help.source})" if self.help.source else "")
        default = default if usual is None else show(usual)
        return ConfigError(
            f"{self.path}: {plain(value)!r} is not allowed.{hint} Allowed: {self.allowed()}; default {default}."
        )


def options_of_class(section: str, cls: type[Any]) -> Mapping[str, Option]:
    """Path → option for every field of the dataclass ``cls``; each must have a default, so that any run can start."""
    return _options_of_class(section, cast(Hashable, cls))


@functools.lru_cache(maxsize=256)  # not without an end: a notebook's cell makes a new class whenever it is run
def _options_of_class(section: str, cls: Any) -> Mapping[str, Option]:
    hints = get_type_hints(cls, include_extras=True)
    options = {}
    for field in fields(cls):
        if field.init:
            path = f"{section}.{field.name}"
            factory: Any = field.default_factory
            default = field.default if _is_missing(factory) else factory()
            if _is_missing(default):
                raise ConfigError(
                    f"{path}: {cls.__module__}.{cls.__qualname__} declares this option without a default."
                )
            options[path] = Option(path, hints[field.name], default)
    return options


def show(value: object) -> str:
    """A value in a sentence for people."""
    if value is None:
        return "null"
    return "empty" if value in ("", ()) else str(value).lower() if isinstance(value, bool) else str(plain(value))


def plain(value: object) -> object:
    """A value as YAML and JSON have it: tuples become lists."""
    if isinstance(value, Seed):
        return int(value)
    return [plain(element) for element in value] if isinstance(value, tuple) else value


def _is_utf_8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_missing(value: object) -> bool:
    # By type: a class of __main__ is sent to other processes by value, and so are the marks of what it lacks.
    return isinstance(value, type(MISSING))


@functools.cache
def _adapter(hint: Any) -> TypeAdapter[Any]:
    from pydantic import ConfigDict, TypeAdapter

    rules = ConfigDict(strict=True, allow_inf_nan=False, arbitrary_types_allowed=True)
    return TypeAdapter(hint, config=rules)


def _readings(raw: object) -> Iterator[object]:
    """The values that a text may stand for: a number rather than text, and an element rather than a list of it."""
    yield _word(raw)
    yield raw
    for listed in _lists(raw):
        yield tuple(map(_word, listed))
        yield tuple(listed)


def _lists(raw: object) -> Iterator[Sequence[object]]:
    """The lists that a value may stand for: a text's elements in YAML or, without brackets, those between commas."""
    if isinstance(raw, list | tuple):
        yield raw
    if isinstance(raw, str):
        import yaml

        bare = not raw.strip().startswith("[")
        with suppress(yaml.YAMLError, RecursionError):
            listed = yaml.load(f"[{raw}]" if bare else raw, Loader=yaml.BaseLoader)
            if isinstance(listed, list):
                yield listed
        if bare:  # "Patient #" and "weight [kg]" are names of columns, and no YAML
            with suppress(csv.Error):
                yield from csv.reader([raw], skipinitialspace=True)


def _word(text: object) -> object:
    """A word of a command line or a list as a number, true, false or null; itself where it is none of these."""
    if not isinstance(text, str):
        return text
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return _WORDS.get(text.lower(), text)


def _describe(schema: Mapping[str, Any]) -> str:
    limited = schema.get("items", schema)  # a list's limits are those of its elements
    limits = ", ".join(f"{sign} {limited[key]:g}" for key, sign in _LIMITS.items() if key in limited)
    return " ".join(filter(None, (_kind(schema), limits)))


def _kind(schema: Mapping[str, Any]) -> str:
    if choices := schema.get("enum", [schema["const"]] if "const" in schema else []):
        return " | ".join(map(str, choices))
    if "anyOf" in schema:
        return " or ".join(map(_describe, schema["anyOf"]))
    if "prefixItems" in schema:
        return "list of " + ", ".join(map(_describe, schema["prefixItems"]))
    if "items" in schema:
        return f"list of {_kind(schema['items']).removeprefix('a ')}s"
    return _KINDS.get(schema.get("type", ""), str(schema.get("title", "anything")))
