"""Measures the clock of virtual time alone: seconds and memory of 10⁶ events among 131,072 clients.

``python -m benchmarks.timeline [--clients 131072] [--events 1000000]``. The baseline is a heap of the same events
without any rule: what an event costs at least in Python.
"""

from __future__ import annotations

import argparse
import heapq
import resource
import time

import numpy as np

from raysim.config.sections import Schedule
from raysim.config.timing import Devices, Timing
from raysim.virtual_time.devices.profiles import make_profiles
from raysim.virtual_time.fleet import ClockSettings, Fleet
from raysim.virtual_time.timeline import plan


def bare(events: int, concurrency: int) -> float:
    """CPU seconds of ``events`` pushes and pops of a heap."""
    ends = np.random.default_rng(0).random(events).tolist()
    started = time.process_time()
    heap = [(end, client) for client, end in enumerate(ends[:concurrency])]
    heapq.heapify(heap)
    for end in ends[concurrency : events // 2]:
        now, client = heapq.heappop(heap)
        heapq.heappush(heap, (now + end, client))
    return time.process_time() - started


def measured(preset: str, clients: int, events: int, concurrency: int) -> tuple[int, float]:
    """Events of a buffered run, and their CPU seconds."""
    started = time.process_time()
    profiles = make_profiles(Devices(preset=preset, drop_probability=0.05), clients, seed=0)  # type: ignore[arg-type]
    fleet = Fleet(profiles, np.full(clients, 100, np.int64), 1_000_000, 1_000_000)
    timing = Timing(mode="buffered", buffer=10, concurrency=concurrency)
    rounds = events // 20  # a dispatch and an arrival for each of ten updates
    count = 0
    for step in plan(ClockSettings(0, timing, Schedule(), [1] * rounds), fleet)[0]:
        count += len(step.dispatched) + len(step.arrivals) + len(step.lost)
    return count, time.process_time() - started


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=131_072)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--concurrency", type=int, default=1_000)
    options = parser.parse_args()
    base = bare(options.events, options.concurrency)
    print(f"heap alone: {base:.2f} s")
    for preset in ("phones", "day"):
        count, seconds = measured(preset, options.clients, options.events, options.concurrency)
        print(f"{preset}: {count} events, {seconds:.2f} s, {seconds / base:.1f} times the heap alone")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB")


if __name__ == "__main__":
    main()
