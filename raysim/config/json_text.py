"""What the command line prints with ``--json``: one JSON object for scripts."""

from __future__ import annotations

import json
from typing import Any

from raysim.config.help_text import summary
from raysim.config.run_config import SECTIONS, RunConfig, classes_of, options_of, to_dict
from raysim.version import __version__


def json_text(data: object) -> str:
    """JSON for programs, with line breaks for people."""
    return json.dumps(data, indent=2, ensure_ascii=False)


def schema(config: RunConfig) -> dict[str, Any]:
    """The JSON Schema of all options of a run like ``config``, whose values are the defaults.

    It describes a configuration file with the names of method, workload and model. ``source`` says where a default
    comes from; an option with ``placement`` cannot change results.
    """
    defaults = to_dict(config)
    properties: dict[str, Any] = {}
    for section, cls in {**classes_of(config), **SECTIONS}.items():
        known = {"name": {"const": defaults[section]["name"]}} if section in classes_of(config) else {}
        properties[section] = _object(summary(cls), known)
    for path, option in options_of(classes_of(config)).items():
        section, _, name = path.rpartition(".")
        owner, values = (properties[section]["properties"], defaults[section]) if section else (properties, defaults)
        notes = {"source": option.help.source, "placement": option.help.placement}
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
