"""The command line: ``python -m raysim.launch --method fedprox --mu 0.1 --config my.yaml`` to a checked config.

Every option is a field of a dataclass and takes one value: ``--section.field VALUE``, ``--section.field=VALUE``, or the
bare ``--field VALUE`` while only one section of this run has such a field. Hyphens and underscores are the same. The
value of an option that is true or false may be left out: ``--profile`` is ``--profile true``.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from raysim.config import earlier_names, registry
from raysim.config.all_sections import DECIDED
from raysim.config.config_file import (
    CONFIG_NAME,
    OBSERVER,
    check_calls,
    check_names,
    check_output,
    given_calls,
    read_config_file,
)
from raysim.config.options import Option, plain
from raysim.config.registry import NO_CLASSES, Classes
from raysim.config.run_config import (
    RunConfig,
    build,
    choose_classes,
    classes_of,
    default_config,
    flatten,
    options_of,
    to_dict,
    to_yaml,
    unknown_option,
)
from raysim.config.typed_options import check_typed
from raysim.errors import ConfigError
from raysim.remote.address import checked, is_remote, local_folder, typed_path
from raysim.version import __version__
from raysim.workloads.given.given_data import missing

Action = Literal["run", "help", "list", "print-config", "version"]
PAGE_ADDRESS = "127.0.0.1:0"
"""Default address of the live page: any free port, reachable from this machine only."""
_COMMANDS = ("config", "resume", "trust", "help", "list", "print-config", "json", "version", "verbose", "ui")
SEVERAL = {OBSERVER}
"""Options that may stand on a command line several times; their values are joined."""
_FLAGS = ("help", "h", "list", "print_config", "version", "json", "verbose")


@dataclass(frozen=True)
class Invocation:
    """A command line that was read: its settings, and what is to be done with them.

    ``overrides`` are the paths given on the command line or in a --config file, ``text`` is what help, list and
    print-config print, ``told`` the same as JSON has it; for help and list ``config`` holds the defaults.
    """

    config: RunConfig
    overrides: tuple[str, ...]
    resume: Path | None
    verbose: bool
    action: Action
    text: str
    told: Mapping[str, Any] | None = None
    ui: str | None = None
    """Where the live page is to be served (HOST:PORT); None: nowhere."""
    remote: str = ""
    """The remote address that ``resume`` is the working folder of, ``s3://bucket/run`` say."""
    notes: tuple[str, ...] = ()
    """Notes on options that were typed by the names of earlier versions."""


@dataclass
class _Line:
    """A command line cut into flags, files and (option, text) pairs, the options as they were typed."""

    flags: set[str] = field(default_factory=set)
    files: list[Path] = field(default_factory=list)
    resume: Path | None = None
    remote: str = ""
    trusted: list[Path] = field(default_factory=list)
    """Folders and files whose configurations may name any code."""
    pairs: list[tuple[str, str | None]] = field(default_factory=list)
    """None: no value was given."""
    ui: str | None = None


def parse(argv: Sequence[str]) -> Invocation:
    """Reads a command line (without the program's name); ConfigError with one complete message if it is wrong.

    Later wins: defaults, the config of ``--resume FOLDER``, each ``--config`` file, the command line.
    """
    from raysim.config.help_text import help_text, list_text, names, schema

    line = _cut(argv)
    invocation = functools.partial(
        Invocation, resume=line.resume, remote=line.remote, verbose="verbose" in line.flags, ui=line.ui
    )
    if "version" in line.flags:
        told = {"raysim": __version__}
        return invocation(default_config(), (), action="version", text=f"raysim {__version__}", told=told)
    if "list" in line.flags:
        return invocation(default_config(), (), action="list", text=list_text(), told=names())
    if line.remote:
        from raysim.remote.places import resumed_folder

        resumed_folder(line.remote)
    stored = [line.resume / CONFIG_NAME] if line.resume else []
    files = [*(read_config_file(path, run_folder=True) for path in stored), *map(read_config_file, line.files)]
    named = {f"{name}.name": _value(typed, text) for typed, text in line.pairs if (name := _kind(typed))}
    for source, settings in zip([*stored, *line.files], files, strict=True):
        for kind in registry.KINDS:
            if settings.get(f"{kind}.name") in [*registry.GIVEN[kind]] and f"{kind}.name" not in named:
                raise missing(kind)
        check_names(settings, source, named, line.trusted)
        calls = given_calls(typed for typed, _ in line.pairs)
        check_calls(settings, source, calls, line.trusted)
        if source not in stored:
            check_output(settings, source, calls, line.trusted)
    # Which model and options are the default may go by the workload's task.
    for typed, word in line.pairs:
        if typed in ("task", "workload.task"):
            named["workload.task"] = _value(typed, word)
    if line.flags & {"help", "h"}:
        config = build([*({path: layer[path] for path in layer if path.endswith(".name")} for layer in files), named])
        return invocation(config, (), action="help", text=help_text(config), told=schema(config))
    options = options_of(choose_classes([*files, named])[0])
    given: dict[str, object] = {}
    notes = []
    for typed, word in line.pairs:
        path = full_name(typed, options)
        value = _value(typed, word, options.get(path))
        given[path] = f"{given[path]},{value}" if path in (SEVERAL & given.keys()) else value
        notes += earlier_names.note(typed, path)
    config = build([*files, given], decided=DECIDED if stored else ())
    check_typed(given, [config], [*files, given])
    overrides = tuple(dict.fromkeys(itertools.chain(*files[len(stored) :], given)))
    if "print_config" in line.flags:
        return invocation(config, overrides, action="print-config", text=to_yaml(config), told=to_dict(config))
    return invocation(config, overrides, action="run", text="", notes=tuple(notes))


def given_config(
    *sources: Mapping[str, object],
    resume: str | Path | None = None,
    own: Classes = NO_CLASSES,
    typed: Collection[str] = (),
) -> RunConfig:
    """The config that plain settings make, nested or by their names, over those of the run that is to be resumed.

    A name is that of the command line: a path, or an option's own name where only one section has it.

    Args:
        sources: the later ones win, by whichever of its names each gives an option.
        own: classes that were given as such.
        typed: names of options, as they stand in the sources, that the user has given one by one.

    Raises:
        ConfigError: an option is unknown or not allowed, or one source names it twice; or the run's folder names code
            that no source names; or the run does not read an option that was typed.
    """
    flat, layers = [flatten(source) for source in sources], []
    if resume is not None:
        file, given = Path(resume) / CONFIG_NAME, dict(itertools.chain(*(source.items() for source in flat)))
        layers.append(read_config_file(file, run_folder=True))
        check_names(layers[0], file, given | registry.names_of(own), advice="name it in the settings too")
        check_calls(layers[0], file, given_calls(given), advice="name it in the settings too")
    if any("." not in name for source in flat for name in source):
        options = options_of(choose_classes([*layers, *flat], own)[0])
        flat = [_by_full_names(source, options) for source in flat]
    config = build([*layers, *flat], own, decided=DECIDED if resume is not None else ())
    options = options_of(classes_of(config))
    check_typed([full_name(name, options, prefix="") for name in typed], [config], [*layers, *flat])
    return config


def _by_full_names(source: Mapping[str, object], options: Mapping[str, Option]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in source.items():
        path = full_name(name, options, prefix="")
        if path in found:
            raise ConfigError(f"{path} is given twice, as {path} and as {name.rpartition('.')[2]}. Leave one out.")
        found[path] = value
    return found


def given_options(words: Sequence[str], alternatives: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """Options on a command line that stands for several runs, path → plain value.

    Args:
        words: ``--rounds 5 --workload digits``.
        alternatives: methods, workloads and models that some of the runs name; an option may be any one's.
    """
    line = _cut(words)
    if line.flags or line.files or line.resume or line.trusted or line.ui is not None:
        raise ConfigError(f"{' '.join(words)}: only options of runs may stand here; --help shows the others.")
    named = {f"{name}.name": _value(typed, text) for typed, text in line.pairs if (name := _kind(typed))}
    options: dict[str, Option] = {}
    for names in alternatives:
        kinds = {f"{kind}.name": value for name, value in names.items() if (kind := _kind(name))}
        options |= options_of(choose_classes([named, kinds])[0])
    given: dict[str, object] = dict(named)
    for typed, text in line.pairs:
        path = full_name(typed, options)
        if path in SEVERAL & given.keys():
            text = ",".join([*map(str, given[path]), text or ""])  # type: ignore[call-overload]
        if path in options:
            given[path] = plain(options[path].convert(_value(typed, text, options[path])))
    return given


def _cut(argv: Sequence[str]) -> _Line:
    line, rest, last = _Line(), list(argv), ("", "")
    while rest:
        word = rest.pop(0)
        if word != "-h" and not (word.startswith("--") and len(word) > 2):
            raise ConfigError(f"Unexpected argument {word!r}. {_advice(*last, word)}")
        typed, equals, given = word.lstrip("-").partition("=")
        name, last = typed.replace("-", "_"), (typed, "")
        if name in _FLAGS:
            if equals:
                raise ConfigError(f"{word.partition('=')[0]} takes no value, but got {given!r}.")
            line.flags.add(name)
            continue
        if name == "ui":  # a flag whose value, if any, comes after "="
            line.ui, last = (given, ("", "")) if equals else (PAGE_ADDRESS, last)
            continue
        text = given if equals else rest.pop(0) if rest and not rest[0].startswith("--") else None
        if name == "config":
            line.files.append(typed_path(_value(typed, text)))
        elif name == "resume":
            line.remote = checked(given) if is_remote(given := _value(typed, text)) else ""
            line.resume = local_folder(given) if line.remote else typed_path(given)
        elif name == "trust":
            line.trusted.append(typed_path(_value(typed, text)))
        else:
            line.pairs.append((typed, text))
            last = typed, text or ""
    return line


def _advice(typed: str, text: str, word: str) -> str:
    """How a word that is no option, right behind this option and its value, may be meant."""
    if typed == "ui":
        return "The page's address comes behind an equals sign: --ui=HOST:PORT; see --help."
    numbers = text and f"{text}{word}".replace(".", "").isdecimal()
    several = f", several numbers of one with commas between them (--{typed} {text},{word})" if numbers else ""
    return f"Options are written --section.option VALUE{several}; see --help."


def _value(typed: str, text: str | None, option: Option | None = None) -> str:
    if text is None and option is not None and option.type is bool:
        return "true"
    if text is None:
        raise ConfigError(f"--{typed} needs a value: --{typed} VALUE.")
    return text


def _kind(typed: str) -> str | None:
    kind = typed.removesuffix(".name")
    return kind if kind in registry.KINDS else None


def full_name(typed: str, options: Mapping[str, Option], prefix: str = "--") -> str:
    """The full path of an option as it was typed; ConfigError if there is none, or several of this short name."""
    name = typed.replace("-", "_")
    if kind := _kind(name):
        return f"{kind}.name"
    if name in options:
        return name
    matches = [path for path in options if path.rpartition(".")[2] == name] or earlier_names.matching(name, options)
    if len(matches) > 1:
        raise ConfigError(f"{prefix}{typed} is ambiguous: write {' or '.join(prefix + path for path in matches)}.")
    if not matches:
        for path, option in options.items():
            if option.type is bool and name == f"no_{path.rpartition('.')[2]}":
                raise ConfigError(f"Unknown option {prefix}{typed}. Write {prefix}{path} false.")
        raise unknown_option(typed, [*registry.KINDS, *(_COMMANDS if prefix else ()), *options], prefix)
    return matches[0]
