"""Peak memory of a command and of all processes that it starts, as the sum of their proportional set sizes (PSS).

    python benchmarks/memory.py python -m raysim.launch --method fedavg --model resnet50 …

A page that several processes share is counted once, so that the sum is what the machine has to hold; object-store pages
in shared memory are among them. Linux only. Sampled every ``--every`` seconds: a peak that is shorter can be missed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path


def descendants(root: int) -> list[int]:
    """The process and all that it started, and these in turn."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [root]
    for process in found:
        found.extend(children.get(process, []))
    return found


def proportional_set_size(process: int) -> int:
    """Kilobytes; 0 for a process that has ended."""
    try:
        lines = (Path("/proc") / str(process) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def title(process: int) -> str:
    try:
        command = (Path("/proc") / str(process) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return "ended"
    words = command.split()
    if not words:
        return "ended"
    if words[0].startswith("ray::"):
        return words[0].partition(".")[0]
    scripts = [word for word in words[1:4] if not word.startswith("-")]
    return " ".join([Path(words[0]).name, *(Path(word).name for word in scripts[:1])])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=float, default=0.5, help="seconds between two samples")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    started = time.perf_counter()
    running = subprocess.Popen(options.command)
    peak, parts = 0, Counter[str]()
    while running.poll() is None:
        sizes = {process: proportional_set_size(process) for process in descendants(running.pid)}
        if sum(sizes.values()) > peak:
            peak, parts = sum(sizes.values()), Counter()
            for process, size in sizes.items():
                parts[title(process)] += size
        time.sleep(options.every)
    seconds = time.perf_counter() - started
    print(f"peak {peak / 2**20:.2f} GiB in all processes, {seconds:.0f} s, exit {running.returncode}")
    for name, size in parts.most_common(8):
        print(f"  {size / 2**20:6.2f} GiB  {name}")
    return running.returncode


if __name__ == "__main__":
    sys.exit(main())
