"""The command line of ``python -m raysim.replay``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from raysim.cli.foreign_folder import add_trust, read_config
from raysim.config.command_line import given_options
from raysim.config.conditions import own_models
from raysim.config.run_config import RunConfig, flatten, to_dict
from raysim.config.typed_options import check_typed
from raysim.errors import ConfigError
from raysim.remote.address import local_path
from raysim.remote.places import run_folder
from raysim.replay.change import Change, check_change, check_round, client_numbers
from raysim.results.result import load_result
from raysim.storage.atomic_files import beside, unused
from raysim.storage.run_folder import check_free
from raysim.verification.folder_check import FolderCheck
from raysim.verification.recompute import placed


@dataclass(frozen=True)
class Command:
    """A command line, read and checked."""

    check: FolderCheck
    """The run's folder, whose files agree with its proof."""
    change: Change
    stored: RunConfig
    """The run's settings, with the place of this computation."""
    config: RunConfig
    """The replay's."""
    membership: bool


def read(options: argparse.Namespace) -> Command:
    """Read what :func:`parser` has parsed.

    Raises:
        RaysimError: it cannot be met; the message says why and what can.
    """
    folder: Path = options.folder
    check = FolderCheck.whole(folder)
    check_round(options.first, len(check.rounds))
    stored = placed(read_config(folder, options), options.actors, cpu=options.cpu)
    without = client_numbers(options.without, load_result(folder).clients) if options.without else ()
    change = Change(options.first, without, _settings(options.set, stored), _seeds(options.seed_of))
    config = placed(read_config(folder, options, change.options(stored)), options.actors, cpu=options.cpu)
    check_typed(change.settings, [config], [flatten(to_dict(stored)), change.settings])
    check_change(change, stored, config)
    if options.membership and not without:
        raise ConfigError("--membership: it tests the samples of clients that are left out. Name one with --without.")
    if options.membership and (own_models(stored) or own_models(config)):
        raise ConfigError("--membership: clients have models of their own, and there is no global one to attack.")
    target = options.output or unused(beside(folder, "replay"))
    check_free(target)  # before any round is computed
    return Command(check, change, stored, replace(config, output=str(target)), options.membership)


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    found = argparse.ArgumentParser(
        prog="python -m raysim.replay",
        description="Run a run once more with one change and nothing else: the same data, streams and cohorts for all "
        "that is not changed. Rounds before the change are taken from the run. The run's folder is only read.",
        allow_abbrev=False,
    )
    add = found.add_argument
    add("folder", type=run_folder, metavar="FOLDER", help="a run's folder, or its remote address")
    add("--without", action="append", default=[], metavar="CLIENT", help="a client, by number or name, to leave out")
    add(
        "--from",
        type=int,
        default=1,
        dest="first",
        metavar="ROUND",
        help="the first round with the change, 1 by default",
    )
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="another setting: method.mu=0.1")
    add(
        "--seed-of",
        action="append",
        default=[],
        metavar="PURPOSE=SEED",
        help="another seed for the streams of one purpose: training=7 (--seed_of of a run lists the purposes)",
    )
    add("--membership", action="store_true", help="attack the training samples of --without's clients in both models")
    add("--actors", type=int, default=0, help="client actors on Ray; 0: all in this process")
    add("--cpu", action="store_true", help="compute on the CPU, also a run that was on a GPU")
    add("--output", type=local_path, help="the replay's folder; by default one beside the run's")
    add("--json", action="store_true", help="print one JSON object")
    add_trust(found)
    return found


def _settings(given: Sequence[str], stored: RunConfig) -> dict[str, object]:
    """Settings by their full names, path → plain value."""
    words: list[str] = []
    for text in given:
        name, sign, value = text.partition("=")
        if not (name and sign):
            raise ConfigError(f"--set {text}: it is no NAME=VALUE, method.mu=0.1 say.")
        words += [f"--{name}", value]
    plain = to_dict(stored)
    names = {f"{kind}.name": plain[kind]["name"] for kind in ("method", "workload", "model")}
    found = given_options(words, [names]) if words else {}
    for path, option in (("schedule.without", "--without"), ("seed_of", "--seed-of")):
        if path in found:
            raise ConfigError(f"--set {path}: say {option}.")
    return found


def _seeds(given: Sequence[str]) -> tuple[str, ...]:
    return tuple(part for text in given for part in text.split(","))
