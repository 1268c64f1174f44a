"""Attacks on many small runs: each must give the same result bit for bit, or say what is wrong.

``python -m benchmarks.attack --seed 0 --count 500`` goes through the attacks of ``tests/attack/attempts.py`` in turn;
``--only power_cut`` makes one kind alone, and ``--first 37`` begins with that attempt. What failed is printed with what
the command line said, and its folders stay. Exit code 1 if anything failed. It starts no Ray.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

from raysim.cli import interruption
from tests.attack.attempts import ATTACKS
from tests.attack.place import Place


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.attack", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of all that is random")
    parser.add_argument("--count", type=int, default=100, help="attempts in all")
    parser.add_argument("--first", type=int, default=0, help="number of the first attempt")
    parser.add_argument("--only", choices=list(ATTACKS), nargs="+", help="kinds of attacks; default: all")
    options = parser.parse_args(arguments)
    names = options.only or list(ATTACKS)
    root = Path(tempfile.mkdtemp(prefix="attack-"))
    made: Counter[str] = Counter()
    failed = 0
    place = Place(root)
    interruption.SIGNALS = ()  # a run under attack would take Ctrl-C or SIGTERM for its own, and the attack would go on
    for number in range(options.first, options.first + options.count):
        name = names[number % len(names)]
        found = ATTACKS[name](place, Random(f"{options.seed} {name} {number}"))
        made[name] += 1
        if found.fault:
            failed += 1
            print(f"attempt {number}, {name}: {found.what}: {found.fault}\n{found.error}", flush=True)
    print(f"seed {options.seed}: {', '.join(f'{count} x {name}' for name, count in made.items())}; {failed} failed")
    if failed:
        print(f"their folders: {root}")
    else:
        shutil.rmtree(root)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
