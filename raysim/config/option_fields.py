"""An option is a field of a dataclass: its type hint and metadata check and convert every value given for it.

Metadata: ``help``, ``low``/``high`` (inclusive unless ``low_open``/``high_open``; of each element for a tuple),
``source`` of the default, ``placement`` (True: cannot change results). Choices are ``Literal[...]`` hints.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from raysim.config.nearest import nearest
from raysim.errors import ConfigError

_KINDS = {bool: "true or false", int: "a whole number", float: "a finite number", str: "text", NoneType: "null"}


@dataclass(frozen=True)
class Option:
    """One option of a run: ``path`` is its full name, ``training.learning_rate``; ``default`` its dataclass's own."""

    path: str
    hint: Any
    default: object
    metadata: Mapping[str, Any]

    @property
    def placement(self) -> bool:
        return bool(self.metadata.get("placement", False))

    def allowed(self) -> str:
        """The values that are allowed, for people: ``sgd, adamw``; ``a finite number > 0, ≤ 1``."""
        low, high = self.metadata.get("low"), self.metadata.get("high")
        parts = [] if low is None else [f"{'>' if self.metadata.get('low_open') else '≥'} {low:g}"]
        parts += [] if high is None else [f"{'<' if self.metadata.get('high_open') else '≤'} {high:g}"]
        return " ".join(filter(None, (describe(self.hint), ", ".join(parts))))

    def check(self, value: object) -> None:
        """ConfigError unless ``value`` has the type and lies in the range of this option."""
        if not fits(value, self.hint):
            suggestion = ""
            if get_origin(self.hint) is Literal and (close := nearest(str(value), map(str, get_args(self.hint)))):
                suggestion = f" Did you mean {close[0]}?"
            raise self.error(value, suggestion)
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, (int, float)) and not self._in_range(number):
                raise self.error(value)

    def convert(self, raw: object) -> object:
        """``raw``, text of a command line or a value out of a YAML file, as the type of this option; checked."""
        bare_list = isinstance(raw, str) and not raw.strip().startswith("[") and _is_list(self.hint, raw)
        try:
            value = _parser(self.hint).parse_object({"value": f"[{raw}]" if bare_list else raw}).value
        except ImportError:
            raise  # a package that is missing says nothing of the value
        except Exception as error:  # jsonargparse documents no closed set of exceptions for values it cannot convert
            raise self._wrong(raw) from error
        self.check(value)
        return value

    def error(self, value: object, suggestion: str = "") -> ConfigError:
        source = self.metadata.get("source")
        default = show(self.default) + (f" ({source})" if source else "")
        return ConfigError(
            f"{self.path}: {plain(value)!r} is not allowed.{suggestion} Allowed: {self.allowed()}; default {default}."
        )

    def _wrong(self, raw: object) -> ConfigError:
        try:
            self.check(raw)
        except ConfigError as error:
            return error
        return self.error(raw)

    def _in_range(self, number: float) -> bool:
        low, high = self.metadata.get("low"), self.metadata.get("high")
        if low is not None and (number < low or (number == low and self.metadata.get("low_open"))):
            return False
        return not (high is not None and (number > high or (number == high and self.metadata.get("high_open"))))


def options_of_class(section: str, cls: type[Any]) -> dict[str, Option]:
    """Path → option for every field of the dataclass ``cls``; each must have a default, so that any run can start."""
    hints = get_type_hints(cls)
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
            options[path] = Option(path, hints[field.name], default, field.metadata)
    return options


def _is_missing(value: object) -> bool:
    # By type: a class of __main__ is sent to other processes by value, and so are the marks of what it lacks.
    return isinstance(value, type(MISSING))


def fits(value: object, hint: Any) -> bool:
    """Whether a value is of a hint's type: never a bool for a number, a whole number for a float, floats finite."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return any(value == choice and type(value) is type(choice) for choice in arguments)
    if origin in (Union, UnionType):
        return any(fits(value, argument) for argument in arguments)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if arguments[-1] is Ellipsis:
            return all(fits(element, arguments[0]) for element in value)
        return len(value) == len(arguments) and all(map(fits, value, arguments))
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def describe(hint: Any) -> str:
    """A type hint for people."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return " | ".join(map(str, arguments))
    if origin in (Union, UnionType):
        return " or ".join(map(describe, arguments))
    if origin is tuple:
        return (
            f"list of {describe(arguments[0]).removeprefix('a ')}s"
            if arguments[-1] is Ellipsis
            else "list of " + (", ".join(map(describe, arguments)))
        )
    return _KINDS.get(hint, getattr(hint, "__name__", str(hint)))


def show(value: object) -> str:
    """A value in a sentence for people."""
    return "empty" if value in ("", ()) else str(value).lower() if isinstance(value, bool) else str(plain(value))


def plain(value: object) -> object:
    """A value as YAML and JSON have it: tuples become lists."""
    return [plain(element) for element in value] if isinstance(value, tuple) else value


def _is_list(hint: Any, text: str) -> bool:
    """Whether text without brackets is meant as a list; where one value is allowed too, a comma tells."""
    if get_origin(hint) in (Union, UnionType):
        return "," in text and any(get_origin(argument) is tuple for argument in get_args(hint))
    return get_origin(hint) is tuple


@functools.cache
def _parser(hint: Any) -> Any:
    # jsonargparse does what plain YAML gets wrong: 1e-3 is a number, `12` and `no` stay text where text is asked for.
    from jsonargparse import ArgumentParser

    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--value", type=hint)
    return parser
