"""Attacks on many small runs: each must give the same result bit for bit, or say what is wrong.

``python -m benchmarks.attack`` goes through all doors, each as often as ``COUNTS`` says, and prints a table of what was
tried and held; a run that is refused, has not begun, or is over when it should be attacked counts as neither.
``--doors power_cut link`` takes these alone, ``--share 0.05`` a twentieth of each (at least one), ``--first 37`` begins
with that attempt, and ``--rows FILE`` adds the table to a CSV. What failed is printed with what the command line said,
and its folders stay. Exit code 1 if anything failed. The doors in ``ON_RAY`` start Rays.
"""

from __future__ import annotations

import argparse
import csv
import math
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random

from raysim.cli import interruption
from tests.attack.attempts import ATTACKS
from tests.attack.hostile_head import hostile_head
from tests.attack.on_ray import actor_or_driver, part_of_ray
from tests.attack.place import Attempt, Place
from tests.attack.relay import turning_head

ON_RAY: Mapping[str, Callable[[Place, Random], Attempt]] = {
    attack.__name__: attack for attack in (actor_or_driver, part_of_ray, hostile_head, turning_head)
}
DOORS = {**ATTACKS, **ON_RAY}
COUNTS: Mapping[str, int] = {
    "actor_or_driver": 60,
    "part_of_ray": 24,
    "hostile_head": 10,
    "turning_head": 20,
    "forgery": 1000,
    "honest": 1400,
}
"""Attempts of a whole attack."""
COUNT = 80
"""The same of the other doors."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.attack", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of all that is random")
    parser.add_argument("--doors", choices=list(DOORS), nargs="+", default=list(DOORS), help="default: all")
    parser.add_argument("--share", type=float, default=1.0, help="of the attempts of a whole attack, above 0")
    parser.add_argument("--first", type=int, default=0, help="number of the first attempt of each door")
    parser.add_argument("--rows", type=Path, help="CSV that the table is added to")
    options = parser.parse_args(arguments)
    if not options.share > 0:
        parser.error("--share must be above 0")
    root = Path(tempfile.mkdtemp(prefix="attack-"))
    place = Place(root)
    interruption.SIGNALS = ()  # a run under attack would take Ctrl-C or SIGTERM for its own, and the attack would go on
    rows: list[tuple[str, int, int]] = []
    print("| door | tried | held |\n|---|---|---|", flush=True)
    for name in options.doors:
        count = max(1, math.ceil(COUNTS.get(name, COUNT) * options.share))
        numbers = range(options.first, options.first + count)
        found = [made for made in (_attempt(place, name, number, options.seed) for number in numbers) if made.made]
        held = sum(not each.fault for each in found)
        rows.append((name, len(found), held))
        print(f"| {name} | {len(found)} | {held} |", flush=True)
    if options.rows:
        _add(options.rows, (options.seed, options.first), rows)
    failed = sum(tried - held for _, tried, held in rows)
    if failed:
        print(f"{failed} failed; their folders: {root}", file=sys.stderr)
    else:
        shutil.rmtree(root)
    return 1 if failed else 0


def _attempt(place: Place, name: str, number: int, seed: int) -> Attempt:
    """One attempt; what failed is printed."""
    found = DOORS[name](place, Random(f"{seed} {name} {number}"))
    if found.fault:
        said = f"attempt {number}, {name}: {found.what}: {found.fault}\n{found.error}"
        print(said, file=sys.stderr, flush=True)
    return found


def _add(path: Path, begin: tuple[int, int], rows: Sequence[tuple[str, int, int]]) -> None:
    """Add to the file, whose first line names the columns; ``begin``: seed, and number of the first attempt."""
    fresh = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if fresh:
            writer.writerow(("door", "seed", "first", "tried", "held"))
        writer.writerows((name, *begin, tried, held) for name, tried, held in rows)


if __name__ == "__main__":
    sys.exit(main())
