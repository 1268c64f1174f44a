"""Options of commands that write a crate: who made the runs, and under which license their files are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raysim.crate.building import Author
from raysim.errors import ConfigError

if TYPE_CHECKING:
    import argparse


def add_rights(parser: argparse.ArgumentParser) -> None:
    """Add ``--license``, ``--author`` and ``--orcid``."""
    add = parser.add_argument
    add("--license", default="", metavar="URL", help="a license of all files, such as https://spdx.org/licenses/MIT")
    add("--author", default="", metavar="NAME", help="who made the runs")
    add("--orcid", default="", metavar="URL", help="the author's page, https://orcid.org/…")


def author_of(options: argparse.Namespace) -> Author | None:
    """The author in these options, None if none is named; the license is checked with it.

    Raises:
        ConfigError: the license or the author's page is no URL, or a page has no author.
    """
    for name in ("license", "orcid"):
        value: str = getattr(options, name)
        if value and not value.startswith(("https://", "http://")):
            raise ConfigError(f"--{name} {value}: not allowed. Allowed: a URL, which begins with https://.")
    if options.orcid and not options.author:
        raise ConfigError("--orcid: whose page it is, is not said. Add --author NAME.")
    return Author(options.author, options.orcid) if options.author else None
