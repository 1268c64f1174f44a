"""``python -m raysim.ui FOLDER``: the live page of a run that goes on or has ended."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from typing import TextIO

from raysim.config.answering import Answer, answered, print_whole
from raysim.config.command_line import PAGE_ADDRESS
from raysim.config.help_text import json_text
from raysim.remote.places import run_folder
from raysim.ui.serving import Address, Page, until_interrupted


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m raysim.ui", description="Show a run, going on or ended, as a live page until Ctrl-C."
    )
    parser.add_argument("folder", type=run_folder, metavar="FOLDER", help="a run's folder, or its remote address")
    parser.add_argument(
        "--address",
        default=PAGE_ADDRESS,
        metavar="HOST:PORT",
        help=f"where to listen (default: {PAGE_ADDRESS}, a free port of this machine alone). Any other host than this "
        "machine's own asks for a token, which is part of the printed address; RAYSIM_UI_TOKEN sets it",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object: the page's address")
    output = sys.stdout
    return answered(parser, arguments, partial(_served, output))


def _served(output: TextIO, options: argparse.Namespace) -> Answer:
    page = Page(options.folder, Address.parse(options.address))
    print_whole(json_text({"url": page.url}) if options.json else page.url, output)
    until_interrupted()
    page.close()
    return Answer()


if __name__ == "__main__":
    sys.exit(main())
