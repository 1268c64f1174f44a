"""``python -m raysim``: what there is to run, and the version."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from raysim.exit_codes import FINISHED, REFUSED
from raysim.version import __version__

COMMANDS = {
    "raysim.launch": "run one configuration; --help shows every option, --list methods, workloads and models",
    "raysim.study": "run a table of configurations, kept cell by cell",
    "raysim.evaluate": "judge the trained model of a run again",
    "raysim.report": "write the page of a run, or a page that compares several",
    "raysim.ui": "show a run, going on or ended, as a live page",
    "raysim.timeline": "plan a run in virtual time, without training",
    "raysim.data": "list, fetch, convert and verify published data sets",
    "raysim.spectra": "draw the spectral bias between graph clients",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words == ["--version"]:
        print(f"raysim {__version__}")
        return FINISHED
    listing = "\n".join(f"  python -m {name:15} {text}" for name, text in COMMANDS.items())
    if words in ([], ["--help"], ["-h"]):
        print(f"raysim {__version__}: federated learning, simulated in parallel on Ray\n\n{listing}")
        return FINISHED
    named = f"raysim.{words[0]}"
    guess = named if named in COMMANDS else "raysim.launch"
    print(
        f"raysim: python -m raysim takes no {words[0]!r}; did you mean python -m {guess}?\n{listing}", file=sys.stderr
    )
    return REFUSED


if __name__ == "__main__":
    sys.exit(main())
