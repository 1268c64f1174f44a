"""Pages of the interface: public names, commands with their help, columns of the tables, exit codes."""

from __future__ import annotations

import contextlib
import importlib
import io
from collections.abc import Mapping
from unittest import mock

import raysim
from docs.site.markdown import plain, table, words
from raysim.__main__ import COMMANDS
from raysim.columns import COLUMNS
from raysim.config.options import Option

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Run, split, load, compare": (
        "run",
        "split",
        "load_model",
        "compare",
        "RunConfig",
        "default_config",
        "Observer",
        "RaysimError",
    ),
    "Data": ("ClientData", "InputSpec"),
    "Methods": (
        *("Method", "GlobalModel", "WholeModel", "Traits", "ClientTask", "Context", "Cohort"),
        *("Message", "Update", "Updates"),
    ),
    "Training inside a method": ("local_sgd", "gradients"),
    "Means of updates": ("plain_mean", "sample_weights", "weighted_sum"),
}
"""Group → its names; with the types of options and ``__version__`` these are all of ``raysim.__all__``."""
MODULES = ("local_sgd", "gradients")
FUNCTIONS = ("run", "split", "load_model", "compare", "default_config", "plain_mean", "sample_weights", "weighted_sum")


def option_types() -> list[str]:
    """The public names that are types of options."""
    grouped = {name for names in GROUPS.values() for name in names}
    return [name for name in raysim.__all__ if name not in grouped and name != "__version__"]


def api() -> str:
    """The reference of every public name, from docstrings."""
    parts = [
        "# The Python interface",
        "`import raysim` gives these names and no others: what is documented here keeps its meaning between minor "
        "versions ([what is public](../public.md)). Arrays are NumPy's unless a type says otherwise; shapes stand in "
        "brackets behind what they belong to, and errors are `raysim.RaysimError`.",
    ]
    for title, names in GROUPS.items():
        parts += [f"## {title}", "```{eval-rst}", *map(_directive, names), "```"]
    types = []
    for name in option_types():
        found = getattr(raysim, name)
        allowed = "" if isinstance(found, type) else plain(Option(name, found, None).allowed())
        types.append([f"`raysim.{name}`", allowed or words("meaning of an option, beside its type in ``Annotated``")])
    about = "Fields of a method, workload or model of your own are options; their annotations hold range and meaning."
    parts += ["## Types of options", about, table(("name", "allowed"), types)]
    parts += ["## Version", f"`raysim.__version__` is the version as text: `{raysim.__version__}`."]
    return "\n\n".join(parts) + "\n"


def _directive(name: str) -> str:
    if name in MODULES:
        return f".. automodule:: raysim.training.{name}\n   :members:\n"
    if name in FUNCTIONS:
        return f".. autofunction:: raysim.{name}\n"
    return f".. autoclass:: raysim.{name}\n   :members:\n"


def commands() -> str:
    """Every command with its own help text."""
    rows = [[f"[`raysim {name}`](#raysim-{name})", plain(text)] for name, (_, text) in COMMANDS.items()]
    parts = [
        "# Commands",
        "`raysim NAME …` is the same as `python -m raysim.NAME …`. Below is what each prints with `--help`; for "
        "`launch` it depends on method, workload and model, and all options are on [pages of their own](options.md).",
        table(("command", "does"), rows),
    ]
    for name, (module, _) in COMMANDS.items():
        parts += [f"## raysim {name}", f"```text\n{help_of(module)}\n```"]
    return "\n\n".join(parts) + "\n"


def help_of(module: str) -> str:
    """The help text of one command, at 80 columns."""
    text, narrow = io.StringIO(), {"COLUMNS": "80", "NO_COLOR": "1"}
    with (
        mock.patch.dict("os.environ", narrow),
        contextlib.redirect_stdout(text),
        contextlib.suppress(SystemExit),
    ):
        importlib.import_module(module).main(["--help"])
    shown = text.getvalue().strip()
    return shown.partition("\nmethod ")[0].strip() if module == "raysim.launch" else shown


def columns() -> str:
    """Every column of a run's tables."""
    rows = [
        [f"`{name}`", plain(column.help), column.unit, column.best or "", plain(column.when)]
        for name, column in COLUMNS.items()
    ]
    about = (
        "A run writes `rounds.csv` (a row a round), and `clients.csv` (a row a client task). Columns below may stand "
        "in them; methods add columns of their own, which their pages name."
    )
    return "\n\n".join(["# Columns of the tables", about, table(("column", "meaning", "unit", "best", "when"), rows)])
