"""``raysim`` and ``python -m raysim``: what there is to run, the version, and each command by its name."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from raysim.config.nearest import STUDY, did_you_mean
from raysim.errors import FINISHED, REFUSED
from raysim.version import __version__

COMMANDS = {
    "launch": ("raysim.launch", "run one configuration; --help shows every option, --list methods and workloads"),
    "study": ("raysim.study", "run a table of configurations, kept cell by cell"),
    "search": ("raysim.search.__main__", "search the best values of a method's options, on validation data"),
    "reproduce": ("raysim.reproduce.__main__", "make a table of the papers again, and say which differences hold"),
    "judge": ("raysim.judge.__main__", "judge whether one group of runs is better than another, or refuse to"),
    "paper": ("raysim.paper.__main__", "write table, figure, commands and data descriptions of runs into one folder"),
    "evaluate": ("raysim.evaluate", "judge the trained model of a run again"),
    "verify": ("raysim.verify", "check a run's folder against its proof, or compute rounds of it again"),
    "replay": ("raysim.replay.__main__", "run a run once more without a client, or with another setting or seed"),
    "contribution": ("raysim.contribution.__main__", "what every client contributed: Shapley values by retraining"),
    "crate": ("raysim.crate.__main__", "write runs as an RO-Crate, to be published with digests and settings"),
    "report": ("raysim.report.__main__", "write the page of a run, or a page that compares several"),
    "ui": ("raysim.ui.__main__", "show a run, going on or ended, as a live page"),
    "timeline": ("raysim.timeline", "plan a run in virtual time, without training"),
    "data": ("raysim.data", "list, fetch, convert and verify published data sets"),
    "spectra": ("raysim.spectra", "draw the spectral bias between graph clients"),
}
"""Name → module, and what it does."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line: ``raysim NAME …`` does what ``python -m raysim.NAME …`` does; returns the exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words == ["--version"]:
        print(f"raysim {__version__}")
        return FINISHED
    if words == ["--json"]:
        told = {"raysim": __version__, "commands": {name: text for name, (_, text) in COMMANDS.items()}}
        print(json.dumps(told, indent=2, ensure_ascii=False))
        return FINISHED
    listing = "\n".join(f"  python -m raysim.{name:12} {text}" for name, (_, text) in COMMANDS.items())
    if words in ([], ["--help"], ["-h"]):
        print(f"raysim {__version__}: federated learning, simulated in parallel on Ray\n\n{listing}\n")
        print("raysim NAME is the same as python -m raysim.NAME, and raysim --method fedrad as raysim launch …")
        return FINISHED
    if words[0].startswith("--"):  # options without a command are those of a run
        words = ["launch", *words]
    if words[0] in COMMANDS:
        here = str(Path.cwd())
        if not {here, ""} & set(sys.path):
            sys.path.insert(0, here)  # as with python -m: a method or model of one's own lies there
        command = importlib.import_module(COMMANDS[words[0]][0])
        return int(command.main(words[1:]))
    several = words[0] in ("sweep", "grid", "tune", "benchmark")
    guess = f" {STUDY}" if several else did_you_mean(words[0], COMMANDS)
    wrong = f"there is no command {words[0]!r}.{guess}"
    print(f"raysim: {wrong}\n{listing}", file=sys.stderr)
    if "--json" in words:
        print(json.dumps({"error": wrong}))
    return REFUSED


if __name__ == "__main__":
    sys.exit(main())
