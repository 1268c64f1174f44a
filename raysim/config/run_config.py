"""The settings of one run: frozen, validated, and enough to repeat it.

Three sections are dataclasses that a name picks (``method``, ``workload``, ``model``), the others are fixed. A method
or workload class may bring defaults for other sections as ``defaults: ClassVar[Mapping[str, object]]``, full path →
value, ``{"training.learning_rate": 0.1, "model.name": "cnn"}``. Order, later wins: the sections' own defaults, the
workload's, the method's, YAML files, command line. Nothing here imports torch or ray.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, get_type_hints

from raysim.config import earlier_names, preconditions, registry, seed_purposes, total_epochs
from raysim.config.all_sections import Sections
from raysim.config.conditions import check_method, check_together
from raysim.config.nearest import did_you_mean, own_word
from raysim.config.options import Option, options_of_class, plain
from raysim.config.privacy import Privacy as Privacy
from raysim.config.registry import NO_CLASSES, Classes
from raysim.config.sections import Engine as Engine
from raysim.config.sections import Evaluation as Evaluation
from raysim.config.sections import Schedule as Schedule
from raysim.config.sections import Training as Training
from raysim.config.timing import Devices as Devices
from raysim.config.timing import Events as Events
from raysim.config.timing import Timing as Timing
from raysim.config.wrappers import Attack as Attack
from raysim.config.wrappers import Compression as Compression
from raysim.config.wrappers import Defense as Defense
from raysim.errors import ConfigError
from raysim.seeds import PURPOSES
from raysim.workloads.errors import WorkloadError
from raysim.workloads.option_types import Help, NonNegativeInt

OWN = ("seed", "seed_of", "output", "pictures")
"""Options that belong to no section."""
DEFAULT_NAMES: Mapping[str, str] = {"method.name": "fedrad", "workload.name": "digits", "model.name": "cnn"}


@dataclass(frozen=True)
class RunConfig(Sections):
    """Everything that one run depends on. Creating one checks every value (ConfigError)."""

    seed: Annotated[NonNegativeInt, Help("root of every random stream of the run")] = 0
    seed_of: Annotated[
        tuple[str, ...],
        Help(
            "another root for the streams of some purposes, training=7,participants=3 say: "
            + "; ".join(f"{name}: {text}" for name, text in PURPOSES.items())
        ),
    ] = ()
    output: Annotated[
        str, Help("run folder to write, also s3://bucket/run; empty: a new one under ./runs", placement=True)
    ] = ""
    pictures: Annotated[
        bool,
        Help(
            "draw curve.png and partition.png and write report.html; false: python -m raysim.report FOLDER "
            "makes the page later",
            placement=True,
        ),
    ] = True
    placement: frozenset[str] = field(default=frozenset(), init=False, repr=False, compare=False)
    """Paths of the options that cannot change results. Kept, because in a process that knows a user's class by value
    alone the names in its annotations are unknown."""

    def __post_init__(self) -> None:
        validate(self)


SECTIONS: Mapping[str, type[Any]] = {
    entry.name: type(entry.default_factory())
    for entry in dataclasses.fields(RunConfig)
    if entry.default_factory is not dataclasses.MISSING
}
"""Fixed section → its class."""


def options_of(classes: Classes) -> dict[str, Option]:
    """Path → option of a run whose ``method``, ``workload`` and ``model`` have these classes."""
    return dict(_options_of(tuple(classes.items())))


@functools.lru_cache(maxsize=256)  # as options_of_class; studies build the configs of hundreds of cells
def _options_of(classes: tuple[tuple[str, type[Any]], ...]) -> Mapping[str, Option]:
    options: dict[str, Option] = {}
    for section, cls in {**dict(classes), **SECTIONS}.items():
        options.update(options_of_class(section, cls))
    options |= _own_options()
    preconditions.check_exist(options)
    return options


@functools.cache
def _own_options() -> Mapping[str, Option]:
    """The options outside all sections."""
    hints = get_type_hints(RunConfig, include_extras=True)
    return {name: Option(name, hints[name], getattr(RunConfig, name)) for name in OWN}


def classes_of(config: RunConfig) -> dict[str, type[Any]]:
    """The classes of the method, workload and model."""
    return {kind: type(getattr(config, kind)) for kind in registry.KINDS}


def with_sections(config: RunConfig, **sections: Any) -> RunConfig:
    """A copy with other fixed sections, which alone are checked: a run under way may know other classes by value."""
    changed = copy.copy(config)
    for name, section in sections.items():
        object.__setattr__(changed, name, section)
    preconditions.check(changed, options_of({}))
    check_together(changed)
    return changed


def validate(config: RunConfig) -> None:
    """ConfigError naming option, value, allowed values and default, for the first value that is not allowed."""
    for section, cls in SECTIONS.items():
        if not isinstance(getattr(config, section), cls):
            raise ConfigError(
                f"{section}: expected raysim.config.run_config.{cls.__name__}(...), not {getattr(config, section)!r}."
            )
    for kind in registry.KINDS:
        instance = getattr(config, kind)
        if isinstance(instance, type) or not dataclasses.is_dataclass(instance):
            raise ConfigError(f"{kind}: expected an instance of a dataclass, not {instance!r}.")
    options = options_of(classes_of(config))
    for path, option in options.items():
        section, _, name = path.rpartition(".")
        option.check(getattr(getattr(config, section) if section else config, name))
    placement = frozenset(path for path, option in options.items() if option.help.placement)
    object.__setattr__(config, "placement", placement)
    if config.seed_of:
        object.__setattr__(config, "seed", seed_purposes.with_others(config.seed, config.seed_of))
    preconditions.check(config, options)
    check_together(config)
    check_method(config)


def build(
    layers: Sequence[Mapping[str, object]], given: Classes = NO_CLASSES, decided: tuple[str, ...] = ()
) -> RunConfig:
    """A config from flat mappings (path → value or its text), later over earlier, over all defaults.

    Classes in ``given`` go before the ones that the layers name. Values of a named section belong to the name given in
    the same layer: if a later layer picks another method, workload or model, they are dropped with it, so that a
    finished run's config can be repeated with another method. ``decided`` is that of the config, for a run's folder.
    """
    classes, layers = choose_classes(layers, given)
    options = options_of(classes)
    usual = {**layers[1], **layers[2]}  # what the workload brings, and over it the method
    values: dict[str, object] = {}
    for named, raw in _merge(layers).items():
        path = earlier_names.own_name(named, options)
        if path not in DEFAULT_NAMES:
            if path not in options:
                raise unknown_option(path, options)
            values[path] = options[path].convert(raw, usual.get(path))
    total_epochs.settle(values, layers, Schedule.local_epochs)
    sections: dict[str, Any] = {}
    for section, cls in {**classes, **SECTIONS}.items():
        own = {path.partition(".")[2]: value for path, value in values.items() if path.startswith(section + ".")}
        try:
            sections[section] = cls(**own)
        except (WorkloadError, ValueError) as error:  # a condition between fields, checked by the class itself
            raise ConfigError(f"{section}: {error}") from error
    sections |= {name: value for name, value in values.items() if "." not in name}
    return RunConfig(**sections, decided=decided)


def choose_classes(
    layers: Sequence[Mapping[str, object]], given: Classes = NO_CLASSES
) -> tuple[dict[str, type[Any]], list[Mapping[str, object]]]:
    """The classes that ``given`` holds or the layers' ``*.name`` values pick, and the layers above these's defaults."""
    layers = [DEFAULT_NAMES, *layers, registry.names_of(given)]
    classes: dict[str, type[Any]] = {}
    for kind in registry.KINDS:  # a workload's defaults lie below a method's, and both may name a model
        classes[kind] = given.get(kind) or registry.resolve(kind, _name(kind, layers))
        if kind != "model":
            given_task = _merge(layers)
            layers.insert(1, _defaults_of(classes[kind], given_task.get("workload.task", given_task.get("task"))))
    return classes, layers


def _defaults_of(cls: type[Any], task: object) -> Mapping[str, object]:
    """Defaults that a method or workload asks of other sections, for this value of its option task if it has one."""
    of_task: Mapping[str, Mapping[str, object]] = getattr(cls, "defaults_of_task", {})
    return {**getattr(cls, "defaults", {}), **of_task.get(str(task), {})}


def unknown_option(path: str, options: Collection[str], prefix: str = "") -> ConfigError:
    """The error for an option that does not exist: whose it is, else the nearest and the list of those that do."""
    section = path.partition(".")[0]
    same = [known.partition(".")[2] for known in options if known.startswith(section + ".")]
    if same and "." in path:
        listing = f"Options of {section}: {', '.join(same)}."
    else:
        sections = ", ".join([*registry.KINDS, *SECTIONS])
        listing = f"Sections: {sections}; and {', '.join(OWN)}. --help shows all options of a run."
    hint = own_word(path, prefix) or registry.owners_hint(path, prefix) or did_you_mean(path, options, prefix)
    return ConfigError(f"Unknown option {prefix}{path}.{hint} {listing}")


def default_config(method: str = "fedrad", workload: str | None = None, model: str | None = None) -> RunConfig:
    """The config of a run with no further options; None: what the method or workload asks for, else digits and cnn."""
    names = {"method.name": method, "workload.name": workload, "model.name": model}
    return build([{path: name for path, name in names.items() if name is not None}])


def to_dict(config: RunConfig) -> dict[str, Any]:
    """The complete plain form, nested dicts; ``flatten`` and ``build`` give back an equal config."""
    result: dict[str, Any] = {
        kind: {"name": registry.public_name(kind, getattr(config, kind))} for kind in registry.KINDS
    }
    # By fields, not by options: where a class is known by value alone, the names in its type hints are not.
    for section in (*registry.KINDS, *SECTIONS):
        owner = getattr(config, section)
        values = {entry.name: plain(getattr(owner, entry.name)) for entry in dataclasses.fields(owner) if entry.init}
        result[section] = result.get(section, {}) | values
    return result | {name: plain(getattr(config, name)) for name in OWN}


def to_yaml(config: RunConfig) -> str:
    """``to_dict`` as YAML text, a list on one line."""
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    Dumper.add_representer(list, lambda dumper, value: dumper.represent_sequence(_YAML_LIST, value, flow_style=True))
    return str(yaml.dump(to_dict(config), Dumper=Dumper, sort_keys=False, allow_unicode=True))


def flatten(data: Mapping[str, object], source: str = "config") -> dict[str, object]:
    """Nested to flat: ``{"training": {"momentum": 0}}`` → ``{"training.momentum": 0}``; ``method: x`` is its name.

    Raises:
        ConfigError: the data are no sections with options, or give one option twice, in two spellings.
    """
    if not isinstance(data, Mapping):
        raise ConfigError(f"{source}: expected sections such as 'training:' with options below, not {data!r}.")
    found: list[tuple[str, object]] = []
    for section, value in data.items():
        if section in registry.KINDS and isinstance(value, str):
            found.append((f"{section}.name", value))
        elif isinstance(value, Mapping) and value:
            found += [(f"{section}.{name}", entry) for name, entry in value.items()]
        elif section not in registry.KINDS and section not in SECTIONS:
            found.append((str(section), value))
        elif value is not None and value != {}:  # nothing below a section is fine
            raise ConfigError(f"{source}: {section} must be a section with options below it, not {value!r}.")
    return earlier_names.current_of(found, source)


def differences(a: RunConfig, b: RunConfig) -> list[str]:
    """Lines ``training.learning_rate: 0.05 → 0.1`` of the options that differ and can change results."""
    before, after = settings(a), settings(b)
    renamed = {path.partition(".")[0] for path in DEFAULT_NAMES if before[path] != after[path]}
    return [
        f"{path}: {value} → {after[path]}"
        for path, value in before.items()
        if (path in DEFAULT_NAMES or path.partition(".")[0] not in renamed) and value != after[path]
    ]


def settings(config: RunConfig) -> dict[str, object]:
    """Path → plain value of every option that results depend on; those of placement are left out."""
    return {path: value for path, value in flatten(to_dict(config)).items() if path not in config.placement}


_YAML_LIST = "tag:yaml.org,2002:seq"


def _name(kind: str, layers: Sequence[Mapping[str, object]]) -> str:
    name = next(layer[f"{kind}.name"] for layer in reversed(layers) if f"{kind}.name" in layer)
    if not isinstance(name, str):
        raise ConfigError(f"{kind}.name: {name!r} is not allowed. Allowed: text; --list shows all names.")
    return name


def _merge(layers: Sequence[Mapping[str, object]]) -> dict[str, object]:
    final = {f"{kind}.name": _name(kind, layers) for kind in registry.KINDS}
    merged: dict[str, object] = {}
    for layer in layers:
        for path, value in layer.items():
            name = f"{path.partition('.')[0]}.name"
            if name not in layer or layer[name] == final.get(name):
                merged[path] = value
    return merged


options_of({})  # a slip in a note of a fixed section shows on import
