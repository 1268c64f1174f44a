"""The space of a search: for each option a range or a list of values, by default those of its own type."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from raysim.config import registry
from raysim.config.command_line import full_name
from raysim.config.options import Option
from raysim.errors import ConfigError

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

RANGE = "--space NAME=LOW:HIGH, NAME=LOW:HIGH:log or NAME=A,B,C"


@dataclass(frozen=True)
class Axis:
    """One option of a search: choices, or a range with both ends in it."""

    path: str
    choices: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    whole: bool = False
    """Whether its values are whole numbers."""

    def distribution(self) -> BaseDistribution:
        """The range or the choices, as Optuna has them."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        if self.choices:
            return CategoricalDistribution(self.choices)
        if self.whole:
            return IntDistribution(int(self.low), int(self.high), log=self.log)
        return FloatDistribution(self.low, self.high, log=self.log)

    @property
    def ends(self) -> tuple[Any, ...]:
        """Its choices, or both ends of its range."""
        return self.choices or ((int(self.low), int(self.high)) if self.whole else (self.low, self.high))

    def words(self) -> str:
        """The axis as it is typed."""
        if self.choices:
            return f"{self.path}={','.join(map(typed, self.choices))}"
        low, high = (int(end) if end == int(end) else end for end in (self.low, self.high))
        return f"{self.path}={low}:{high}{':log' if self.log else ''}"


def read_axes(texts: Sequence[str], options: Mapping[str, Option]) -> list[Axis]:
    """The axes of a search.

    Args:
        texts: ``mu=0.001:1:log``, ``optimizer=sgd,adam``, or a name alone for the option's own range.
        options: those of the runs, by their paths.

    Raises:
        ConfigError: there is no such option, it cannot be searched, or its values are not allowed or no range.
    """
    axes = [_axis(text, options) for text in texts]
    paths = [axis.path for axis in axes]
    if twice := next((path for path in paths if paths.count(path) > 1), None):
        raise ConfigError(f"--space: {twice} is there twice.")
    return axes


def _axis(text: str, options: Mapping[str, Option]) -> Axis:
    name, equals, values = text.lstrip("-").partition("=")
    path = full_name(name, options, prefix="")
    if path.removesuffix(".name") in registry.KINDS:
        raise ConfigError(f"--space {text}: a search is of one method, workload and model. Search each by itself.")
    option = options[path]
    if path == "seed" or option.help.placement:
        raise ConfigError(f"--space {text}: {path} cannot be searched: it is no setting that makes a method better.")
    if not equals:
        return _own(option)
    ends = values.split(":")
    if len(ends) in (2, 3):
        return _range(text, option, ends)
    choices = tuple(option.convert(part) for part in values.split(","))
    if len(set(choices)) < max(2, len(choices)):
        raise ConfigError(f"--space {text}: not allowed. Allowed: different values, at least two, or a range: {RANGE}.")
    return Axis(path, choices=choices)


def typed(choice: object) -> str:
    """A choice as it is typed."""
    if isinstance(choice, tuple):  # of one, as commas are between choices
        return ",".join(map(typed, choice))
    return str(choice).lower() if isinstance(choice, bool) else str(choice)


def _range(text: str, option: Option, ends: Sequence[str]) -> Axis:
    low, high = (option.convert(end) for end in ends[:2])
    numbers = all(isinstance(end, int | float) and not isinstance(end, bool) for end in (low, high))
    if not numbers or not low < high or ends[2:] not in ([], ["log"]):  # type: ignore[operator]
        raise ConfigError(f"--space {text}: not allowed. Allowed: {RANGE}, LOW below HIGH.")
    log = len(ends) == 3
    if log and low <= 0:  # type: ignore[operator]
        raise ConfigError(f"--space {text}: a range in logarithms begins above 0.")
    whole = isinstance(low, int) and isinstance(high, int) and option.schema().get("type") == "integer"
    return Axis(option.path, low=float(low), high=float(high), log=log, whole=whole)  # type: ignore[arg-type]


def _own(option: Option) -> Axis:
    """The axis that an option's own type stands for."""
    schema = option.schema()
    if schema.get("type") == "boolean":
        return Axis(option.path, choices=(False, True))
    if choices := schema.get("enum"):
        return Axis(option.path, choices=tuple(choices))
    whole = schema.get("type") == "integer"
    low, high = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema:
        end = schema["exclusiveMinimum"]
        low = end + 1 if whole else math.nextafter(end, math.inf)
    if "exclusiveMaximum" in schema:
        end = schema["exclusiveMaximum"]
        high = end - 1 if whole else math.nextafter(end, -math.inf)
    if low is None or high is None or schema.get("type") not in ("integer", "number"):
        raise ConfigError(
            f"--space {option.path}: its own range ({option.allowed()}) has no end to search to. Give one: "
            f"{RANGE.replace('NAME', option.path.rpartition('.')[2])}."
        )
    return Axis(option.path, low=float(low), high=float(high), whole=whole)
