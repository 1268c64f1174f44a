"""Every option of a run with its meaning, range, default and source, from the dataclasses that hold them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from docs.site.markdown import docstring, plain, words
from raysim.config.help_text import summary
from raysim.config.options import Option, options_of_class, show
from raysim.config.preconditions import in_words
from raysim.config.run_config import OWN, SECTIONS, RunConfig, options_of

PLACEMENT = "says where the run is computed: no result depends on it"


def options_list(options: Iterable[Option]) -> str:
    """A list of definitions, one for each option."""
    return "\n\n".join(_entry(option) for option in options)


def _entry(option: Option) -> str:
    facts = [f"Default `{show(option.default)}`", f"allowed: {plain(option.allowed())}"]
    facts += map(plain, in_words(option))
    facts += [plain(option.help.source)] if option.help.source else []
    facts += [PLACEMENT] if option.help.placement else []
    meaning = plain(option.help.text) or "no meaning is given"
    return (
        f"[`--{option.path}`]{{#{anchor(option.path)}}}\n: {meaning[0].upper()}{meaning[1:]}.\\\n  {' · '.join(facts)}"
    )


def anchor(path: str) -> str:
    """The name of an option's place on its page."""
    return "option-" + re.sub(r"\W", "-", path)


def of_class(kind: str, cls: type[Any]) -> str:
    """The options of a method, workload or model, and the defaults that it brings for other sections."""
    options = list(options_of_class(kind, cls).values())
    text = options_list(options) if options else f"This {kind} has no options of its own."
    changed = getattr(cls, "defaults", {})
    if changed:
        pairs = ", ".join(f"`--{path} {show(value)}`" for path, value in changed.items())
        text += f"\n\nIts defaults for other sections, unless something else is asked for: {pairs}."
    return text


def section_pages() -> Iterator[tuple[str, str]]:
    """Name and text of a page for each fixed section, and of one for the options outside all sections."""
    no_names = options_of({})
    for section, cls in SECTIONS.items():
        own = [option for path, option in no_names.items() if path.startswith(f"{section}.")]
        about = docstring(cls)
        yield section, f"# {section.capitalize()}\n\n{about}\n\n{options_list(own)}\n"
    own = [no_names[name] for name in OWN]
    yield "run", f"# Options without a section\n\n{docstring(RunConfig)}\n\n{options_list(own)}\n"


def overview() -> str:
    """The page that lists the sections, and all options with their places."""
    names = ["run", *SECTIONS]
    lines = [
        "# Options",
        "Everything that a run depends on is an option with a default, so any run can start. On the command line it "
        "is `--section.name VALUE`, shortened to `--name` where only one section has it; in a configuration file a "
        'key under its section; in Python `section={"name": value}`. Later layers win: the options\' own defaults, '
        "those of the workload, of the method, configuration files, the command line.",
        "These pages are made from the code. `python -m raysim.launch --method NAME --help` prints the same for one "
        "run, `--help --json` as a JSON Schema.",
        "\n".join(f"- [{name}](options/{name}.md): {words(_about(name))}" for name in names),
        "Methods, workloads and models have options of their own, on [the pages of methods](methods.md), "
        "[of data](workloads.md) and [of models](models.md).",
        toctree(f"options/{name}" for name in names),
    ]
    return "\n\n".join(lines) + "\n"


def _about(section: str) -> str:
    return summary(SECTIONS[section]) if section in SECTIONS else "Options outside all sections."


def toctree(pages: Iterable[str]) -> str:
    """A table of contents that the sidebar shows and the page does not."""
    return "\n".join(["```{toctree}", ":hidden:", "", *pages, "```"])
