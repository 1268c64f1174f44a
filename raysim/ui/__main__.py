"""``python -m raysim.ui FOLDER``: the live page of a run that goes on or has ended."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from raysim.config.command_line import PAGE_ADDRESS
from raysim.errors import FINISHED, REFUSED, RaysimError
from raysim.storage.complaint import complain
from raysim.ui.serving import Address, Page, until_interrupted


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m raysim.ui", description="Show a run, going on or ended, as a live page until Ctrl-C."
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="a run's folder")
    parser.add_argument(
        "--address",
        default=PAGE_ADDRESS,
        metavar="HOST:PORT",
        help=f"where to listen (default: {PAGE_ADDRESS}, a free port of this machine alone). Any other host than this "
        "machine's own asks for a token, which is part of the printed address; RAYSIM_UI_TOKEN sets it",
    )
    options = parser.parse_args(arguments)
    try:
        page = Page(options.folder, Address.parse(options.address))
        print(page.url, flush=True)
        until_interrupted()
        page.close()
    except RaysimError as error:
        complain(error, "raysim.ui")
        return REFUSED
    return FINISHED


if __name__ == "__main__":
    sys.exit(main())
