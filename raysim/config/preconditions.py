"""With which values of others an option is read (``OnlyWith`` on its field), in words and as a check of a config."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from raysim.config.nearest import did_you_mean
from raysim.config.options import Option, plain, show
from raysim.errors import ConfigError

if TYPE_CHECKING:
    from raysim.config.all_sections import Sections
    from raysim.workloads.option_types import Condition, OnlyWith, Value


def check_exist(options: Mapping[str, Option]) -> None:
    """ConfigError if one of all a run's options depends on one, or a value of one, that is not there: a slip."""
    for path, option in options.items():
        for note in option.only_with:
            for other, values, say in note.any_of:
                if other not in options:
                    hint = did_you_mean(other, options)
                    raise ConfigError(f"{path}: OnlyWith names {other}, which is no option of this run.{hint}")
                _check_values(path, options[other], values)
                if not values and say is None and not _choices(options[other].type):
                    raise ConfigError(f"{path}: OnlyWith({other!r}) needs values, or say, one to advise.")
            _check_values(path, option, note.of)


def check(config: Sections, options: Mapping[str, Option]) -> None:
    """ConfigError if an option is set, and others have values with which it is not read."""
    if error := refusal(config, options):
        raise error


def refusal(config: Sections, options: Mapping[str, Option], typed: Collection[str] = ()) -> ConfigError | None:
    """The error for the first option that is set, and others have values with which it is not read; None: all are.

    An option is set if it differs from the default of its class, or if it was typed with a value that switches nothing
    off. Values that the run has decided do not count.

    Args:
        config: a run's, with its sections by their names.
        options: those that are looked at, and all that their notes name.
        typed: options of a command line: who types ``--privacy.clip 1`` believes that updates are clipped, also where
            1 is the default.
    """
    for path, option in options.items():
        value = _value(config, path)
        for note in option.only_with:
            is_set = value != option.default or (path in typed and bool(value) and value != "none")
            depends = value in note.of if note.of else is_set
            if not depends or any(condition.path in config.decided for condition in note.any_of):
                continue
            if not any(_holds(config, options, condition) for condition in note.any_of):
                now = " and ".join(f"{other} {show(_value(config, other))}" for other, *_ in note.any_of)
                advice = ", or ".join(_advice(condition, options[condition.path]) for condition in note.any_of)
                return ConfigError(f"{path}: {show(value)} {note.why} with {now}. Leave it out, or set {advice}.")
    return None


def in_words(option: Option) -> list[str]:
    """For ``--help``: ``only with timing.mode async, buffered``, one text for each note."""
    return [" ".join([*map(show, note.of), "only with", " or ".join(_conditions(note))]) for note in option.only_with]


def _conditions(note: OnlyWith) -> Iterator[str]:
    for path, values, _ in note.any_of:
        yield f"{path} {', '.join(map(show, values))}" if values else f"{path} set"


def _advice(condition: Condition, option: Option) -> str:
    if condition.say is not None:
        return f"{condition.path}, {show(condition.say)} say"
    values = condition.values or [value for value in _choices(option.type) if value != option.default]
    *others, last = map(show, values)
    return f"{condition.path} to {', '.join(others)} or {last}" if others else f"{condition.path} to {last}"


def _holds(config: object, options: Mapping[str, Option], condition: Condition) -> bool:
    value = _value(config, condition.path)
    return value in condition.values if condition.values else value != options[condition.path].default


def _value(config: object, path: str) -> Any:
    section, _, name = path.rpartition(".")
    return getattr(getattr(config, section) if section else config, name)


def _check_values(path: str, option: Option, values: tuple[Value, ...]) -> None:
    """Refuse values by their types alone, without pydantic: modules that declare options are imported early."""
    choices = _choices(option.type)
    wrong = [value for value in values if choices and value not in choices]
    if wrong:
        allowed = ", ".join(map(str, choices))
        raise ConfigError(f"{path}: OnlyWith names {plain(wrong[0])!r} of {option.path}, which has {allowed}.")


def _choices(hint: Any) -> tuple[Any, ...]:
    """The values of a type that lists them; empty for one that does not."""
    if hint is bool:
        return (False, True)
    return get_args(hint) if get_origin(hint) is Literal else ()
