"""The output of ``--help`` and ``--list``: plain text, at most 100 columns wide, or JSON for scripts."""

from __future__ import annotations

import inspect
import io
import json
import re
import sys
from typing import TYPE_CHECKING, Any

from raysim.config import registry
from raysim.config.options import Option, show
from raysim.config.preconditions import in_words
from raysim.config.run_config import SECTIONS, RunConfig, classes_of, options_of, to_dict
from raysim.version import __version__

if TYPE_CHECKING:
    from rich.table import Table

WIDTH = 100
_COMMANDS = {
    "--method, --workload, --model NAME": "short for --method.name NAME and so on; what there is: --list",
    "--config FILE": "YAML file with options; several are allowed, later ones win, the command line wins over all; "
    "the config.yaml of a run folder is one",
    "--resume FOLDER": "go on with the run in this folder",
    "--trust FOLDER": "import code (package.module:Class), join the Ray cluster, download data and write where "
    "configuration files in FOLDER name; without it only what is also given on the command line",
    "--print-config": "print the complete config as YAML and stop",
    "--list": "list methods, workloads and models and stop",
    "--json": "print one JSON object for scripts: after a run its summary; with --help a JSON Schema of all options, "
    "with --list the names and their meaning, with --print-config the config",
    "--version": "print the version and stop",
    "--help": "this text, for the chosen method, workload and model",
    "--ui, --ui=HOST:PORT": "serve a live page of the run, by default on a free port for this machine alone; on any "
    "other host it asks for a token. With a terminal it stays until Ctrl-C after the run's end",
    "--verbose": "show Ray's own log",
}


def help_text(config: RunConfig) -> str:
    """Every option of a run like ``config``, whose values are shown as the defaults."""
    tables: list[tuple[str, Table]] = [("Commands", _table(24))]
    for command, meaning in _COMMANDS.items():
        tables[0][1].add_row(command, meaning)
    options = options_of(classes_of(config))
    for section in dict.fromkeys([*registry.KINDS, *(path.rpartition(".")[0] for path in options)]):
        table = _table(33)
        for path, option in options.items():
            own_section, _, name = path.rpartition(".")
            if own_section == section:
                value = getattr(getattr(config, section) if section else config, name)
                table.add_row(f"--{path}", _meaning(option, value))
        tables.append((_title(section, config), table))
    usage = (
        "python -m raysim.launch [--method NAME] [--workload NAME] [--model NAME] [--OPTION VALUE ...]\n\n"
        "Options may be shortened to their last part (--rounds 50) where only one section has it.\n\n"
    )
    return usage + _render(tables)


def names() -> dict[str, dict[str, str]]:
    """``methods``, ``workloads`` and ``models``: name → first sentence of the docstring."""
    return {
        f"{kind}s": {name: summary(registry.resolve(kind, name)) for name in registry.known(kind)}
        for kind in registry.KINDS
    }


def list_text() -> str:
    """All methods, workloads and models with their meaning."""
    tables: list[tuple[str, Table]] = []
    for title, meanings in names().items():
        tables.append((title, _table(24)))
        for name, meaning in meanings.items():
            tables[-1][1].add_row(name, meaning)
    return _render(tables)


def _title(section: str, config: RunConfig) -> str:
    classes = classes_of(config)
    name = to_dict(config)[section]["name"] if section in classes else ""
    return f"{section} {name}: {summary(classes[section])}" if name else section or "run"


def _meaning(option: Option, default: object) -> str:
    facts = [f"default {show(default)}", option.allowed(), *in_words(option)]
    if option.help.source:
        facts.append(option.help.source)
    return f"{option.help.text}\n[{' · '.join(facts)}]"


def _table(first: int) -> Table:
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0), width=WIDTH - 2)
    table.add_column(width=first, overflow="fold")
    table.add_column(ratio=1, overflow="fold")
    return table


def _render(tables: list[tuple[str, Table]]) -> str:
    from rich.console import Console
    from rich.padding import Padding

    stream = io.StringIO()
    console = Console(file=stream, width=WIDTH, markup=False, highlight=False, emoji=False, force_terminal=False)
    for title, table in tables:
        console.print(f"\n{title}")
        console.print(Padding(table, (0, 0, 0, 2)))
    return "\n".join(line.rstrip() for line in stream.getvalue().lstrip("\n").splitlines()) + "\n"


def summary(cls: type[Any]) -> str:
    """The first sentence of a class's docstring; of its module's if it has none of its own."""
    text = inspect.getdoc(cls) or ""
    if not text or text.startswith(f"{cls.__name__}("):  # what dataclass writes where there is none
        text = inspect.getdoc(sys.modules[cls.__module__]) or ""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return re.split(r"(?<=\.) (?=[A-Z])", paragraph)[0]


def json_text(data: object) -> str:
    """JSON for programs, with line breaks for people; NaN and infinity, which JSON does not have, are null."""
    from raysim.storage.run_folder import plain_json

    return json.dumps(plain_json(data), indent=2, ensure_ascii=False, allow_nan=False)


def schema(config: RunConfig) -> dict[str, Any]:
    """The JSON Schema of all options of a run like ``config``, whose values are the defaults.

    It describes a configuration file with the names of method, workload and model. ``source`` says where a default
    comes from; an option with ``placement`` cannot change results; ``only_with`` names the values of others with which
    it is read.
    """
    defaults = to_dict(config)
    properties: dict[str, Any] = {}
    for section, cls in {**classes_of(config), **SECTIONS}.items():
        known = {"name": {"const": defaults[section]["name"]}} if section in classes_of(config) else {}
        properties[section] = _object(summary(cls), known)
    for path, option in options_of(classes_of(config)).items():
        section, _, name = path.rpartition(".")
        owner, values = (properties[section]["properties"], defaults[section]) if section else (properties, defaults)
        help = option.help
        notes = {"source": help.source, "placement": help.placement, "only_with": "; ".join(in_words(option))}
        owner[name] = {
            **option.schema(),
            "description": option.help.text,
            "default": values[name],
            **{key: note for key, note in notes.items() if note},
        }
    title = f"a run of raysim {__version__}"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_object(title, properties)}


def _object(description: str, properties: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "type": "object", "properties": properties, "additionalProperties": False}
