"""The settings of a run in one line, for headings, and the command that repeats it.

Both are made of the plain text of a run's ``config.yaml``, which may come from anyone: none of the code that it names
is imported (raysim's own methods, workloads and models alone, for their defaults), and what it holds is only text.
"""

from __future__ import annotations

import functools
import shlex
from collections.abc import Mapping
from typing import Any

from raysim import units
from raysim.config import registry
from raysim.config.options import show
from raysim.config.run_config import build, flatten, options_of, to_dict
from raysim.errors import RaysimError
from raysim.storage.run_record import part_name
from raysim.workloads.naming import data_name, model_name
from raysim.workloads.splits.split_options import OPTIONS_OF_PARTITIONS

Flat = Mapping[str, Any]
LONGEST = 60
"""Largest number of signs of one value in the line; a longer one is cut."""
_KINDS_OF_RUNS = (
    "devices.preset",
    "timing.mode",
    "attack.kind",
    "privacy.kind",
    "compression.kind",
    "compression.down",
    "defense.rule",
)
"""Options that change what kind of run it is: the line names them where they differ from their default."""


def settings_line(config: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    """Method with the options that differ from their default, data and split, model, length, rate and seed.

    Args:
        config: the sections of a run's ``config.yaml`` as plain data, whole or not.
        summary: its ``summary.json``; empty before its end.

    Returns:
        Text of a run folder, not escaped: a page that shows it must do that.
    """
    flat = flatten(config)
    method = part_name("method", config, summary)
    changed = _changed(flat)
    own = [path for path in changed if path.startswith("method.") and path != "method.name"]
    kinds = [path for path in _KINDS_OF_RUNS if path in changed]
    parts = [
        _cut(method) + _options(flat, own),
        _data(flat, config, summary),
        _cut(model_name({"name": flat.get("model.name"), "class_name": flat.get("model.class_name")})),
        _length(flat),
        _named(flat, "training.learning_rate", "rate"),
        *(f"{path.removesuffix('.kind').replace('.', ' ')} {_cut(show(flat[path]))}" for path in kinds),
        _named(flat, "seed", "seed"),
    ]
    return " · ".join(part for part in parts if part not in ("", "?"))


def repeat_command(config: Mapping[str, Any]) -> str:
    """The command line that repeats a run, quoted for a shell; empty for a run that no command line can repeat.

    These are runs of data or models that Python code gave, and configs with signs that do not print, which a terminal
    may take for a command. Options that cannot change a result (placement, addresses, output) are left out.

    Args:
        config: the sections of the run's ``config.yaml`` as plain data.
    """
    flat = flatten(config)
    if any(flat.get(f"{kind}.name") in registry.GIVEN[kind] for kind in registry.KINDS):
        return ""
    unwanted = {path for path, option in options_of({}).items() if option.help.placement}
    words = ["python", "-m", "raysim.launch"]
    for path in _changed(flat):
        if path not in unwanted:
            words += [f"--{path.removesuffix('.name')}", _typed(flat[path])]
    line = shlex.join(words)
    return line if line.isprintable() else ""


def _changed(flat: Flat) -> list[str]:
    """The options that differ from what a run has with its method, workload and model alone; these names first.

    Where one of these is code of a user's own, which is not imported, its defaults are not known: all are listed.
    """
    names = {f"{kind}.name": flat.get(f"{kind}.name") for kind in registry.KINDS}
    method, workload, model = (name if isinstance(name, str) else None for name in names.values())
    ours = not any(":" in name for name in (method, workload, model) if name)
    defaults = _defaults(method, workload, model) if ours else {}
    implied = _defaults(method, None, None) if ours else {}
    chosen = [path for path in names if path in flat and (path == "method.name" or flat[path] != implied.get(path))]
    return chosen + [path for path in flat if path not in names and not _same(flat[path], defaults.get(path, _NONE))]


_NONE = object()


def _same(value: object, default: object) -> bool:
    return type(value) is type(default) and value == default


@functools.lru_cache(maxsize=64)
def _defaults(method: str | None, workload: str | None, model: str | None) -> dict[str, object]:
    """Path → plain value of a run with these names and no further options; empty where this version has no such."""
    names = {"method.name": method, "workload.name": workload, "model.name": model}
    try:
        return flatten(to_dict(build([{path: name for path, name in names.items() if name}])))
    except RaysimError:
        return {}


def _data(flat: Flat, config: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    """Name of the data, number of clients, and their split with its options."""
    workload = config.get("workload")
    section = workload if isinstance(workload, Mapping) else {"name": workload}
    parts = [_cut(data_name(section))]
    partition = flat.get("workload.partition")
    clients = summary.get("clients") or (None if partition == "sites" else flat.get("workload.clients"))
    if isinstance(clients, int):
        parts.append(units.counted(clients, "client"))
    if isinstance(partition, str):
        options = OPTIONS_OF_PARTITIONS.get(partition, ())
        parts.append(_cut(partition) + _options(flat, [f"workload.{name}" for name in options]))
    share = flat.get("schedule.sampling_rate")
    if isinstance(share, float) and share < 1:
        parts.append(f"{100 * share:.3g}{units.THIN}% a round")
    return ", ".join(parts)


def _length(flat: Flat) -> str:
    """Rounds times the local epochs of each."""
    rounds, epochs = flat.get("schedule.rounds"), flat.get("schedule.local_epochs")
    if not isinstance(rounds, int) or not isinstance(epochs, int):
        return ""
    return f"{units.counted(rounds, 'round')} × {units.counted(epochs, 'epoch')}"


def _named(flat: Flat, path: str, word: str) -> str:
    return f"{word} {_cut(show(flat[path]))}" if path in flat else ""


def _options(flat: Flat, paths: list[str]) -> str:
    """Options and their values in brackets, empty where there are none."""
    texts = [f"{path.partition('.')[2].replace('_', ' ')} {_cut(show(flat[path]))}" for path in paths if path in flat]
    return f" ({', '.join(texts)})" if texts else ""


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _typed(value: object) -> str:
    """A value as it is typed on the command line."""
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"[{', '.join(map(_typed, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)
