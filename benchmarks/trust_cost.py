"""The cost of proofs and of portable runs: processor seconds of a round, in turns with the same run without them.

    python -m benchmarks.trust_cost --rows trust-cost.csv           # everything, in about five minutes
    python -m benchmarks.trust_cost --what portable --turns 10

*proof*: W1 to W3 of ``benchmarks.rounds`` with ``--proof none``, with the default and with ``--proof clients``.
*portable*: the networks of W1 (of two clients), W2, P3 (of five clients) and P4 with and without ``--engine.portable``.
*caps*: W1 (of two clients) and W2 with each of its variables by itself, which says where its cost comes from.

Every variant is a process of its own, which computes its clients one after another with one thread. The processes
train their first rounds at the same time, and from then on a round each in turns, one process at a time; each turn
begins with another one. A ratio is of two rounds of one turn. Processor time changes less than seconds do beside other
programs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from benchmarks.rounds import data, environments
from benchmarks.rounds.running import ROOT
from benchmarks.rounds.task import WORKLOADS, Task
from raysim.comparison.differences import quantile
from raysim.portable import VARIABLES

PROOF = {
    "none": ("--engine.proof", "none"),
    "rounds": ("--engine.proof", "rounds"),
    "clients": ("--engine.proof", "clients"),
}
PORTABLE = {"default": (), "portable": ("--engine.portable", "true")}
CAPS: Mapping[str, Sequence[str]] = {"default": (), **dict.fromkeys(VARIABLES, ())}
"""Each cap by itself, which a process has that is named by it."""


@dataclass(frozen=True)
class Comparison:
    """Variants of one workload that take turns; the first is what the others are compared with."""

    what: str
    workload: str
    network: str
    variants: Mapping[str, Sequence[str]]
    most: Mapping[str, float]
    """The largest ratio that is promised, by variant."""
    turns: int
    options: Sequence[str] = ()


HEADER = (
    "| | workload | variant | processor seconds a round | ratio | mean [95 %] | least to most | at most |\n"
    "|---|---|---|---|---|---|---|---|"
)
LITTLE = {"rounds": 1.02}
COMPARISONS = (
    Comparison("proof", "W1", "CNN", PROOF, LITTLE, 3),
    Comparison("proof", "W2", "MLP", PROOF, LITTLE, 30),
    Comparison("proof", "W3", "MobileNetV2", PROOF, LITTLE, 3),
    Comparison("portable", "W1", "CNN", PORTABLE, {"portable": 1.3}, 5, ("--schedule.sampling_rate", "0.1")),
    Comparison("portable", "W2", "MLP", PORTABLE, {"portable": 2.5}, 20),
    Comparison("portable", "P3", "LSTM", PORTABLE, {}, 5, ("--schedule.sampling_rate", "0.005")),
    Comparison("portable", "P4", "GIN", PORTABLE, {}, 5),
    Comparison("caps", "W1", "CNN", CAPS, {}, 5, ("--schedule.sampling_rate", "0.1")),
    Comparison("caps", "W2", "MLP", CAPS, {}, 20),
)


class Variant:
    """A process that trains a round whenever it is told to."""

    def __init__(self, comparison: Comparison, name: str, place: Path, path: Path) -> None:
        words = [*comparison.options, *comparison.variants[name], "--engine.backend", "inline"]
        rounds = WORKLOADS[comparison.workload].warm_up + comparison.turns + 1  # the last one is not begun
        Task(comparison.workload, str(path), rounds, "", words).write(place / f"{name}.json")
        environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        if "--engine.portable" in words:
            environment |= VARIABLES
        environment |= {cap: value for cap, value in VARIABLES.items() if cap == name}
        command = [sys.executable, "-m", "benchmarks.trust_cost_round", str(place / f"{name}.json")]
        pipe, self._log = subprocess.PIPE, (place / f"{name}.log").open("w+")
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, stderr=self._log, text=True
        )

    def begin(self) -> None:
        """Let it train a round."""
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def wait(self) -> float:
        """Wait until it has trained what it was told to; processor seconds of that, 0 of the start."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self._log.seek(0)
            raise RuntimeError(f"a process ended with code {self.process.wait()}:\n{self._log.read()[-4000:]}")
        return float(line)

    def end(self) -> None:
        """End the process; what it has written goes with the comparison's folder."""
        self.process.kill()
        self.process.wait()
        self._log.close()


def measured(comparison: Comparison, path: Path) -> pd.DataFrame:
    """Processor seconds of a round, a row a variant and turn."""
    rows, names = [], list(comparison.variants)
    with tempfile.TemporaryDirectory() as place:
        variants = {name: Variant(comparison, name, Path(place), path) for name in names}
        try:
            for variant in variants.values():
                variant.wait()
            for _ in range(WORKLOADS[comparison.workload].warm_up):
                for variant in variants.values():
                    variant.begin()
                for variant in variants.values():
                    variant.wait()
            for turn in range(comparison.turns):
                first = turn % len(names)
                for name in (*names[first:], *names[:first]):
                    variants[name].begin()
                    seconds = variants[name].wait()
                    rows.append({"turn": turn + 1, "variant": name, "seconds": seconds})
        finally:
            for variant in variants.values():
                variant.end()
    found = pd.DataFrame(rows)
    base = found[found["variant"] == names[0]].set_index("turn")["seconds"]
    found["ratio"] = found["seconds"] / found["turn"].map(base)
    head = {"what": comparison.what, "workload": comparison.workload, "network": comparison.network}
    return found.assign(**head)[[*head, "variant", "turn", "seconds", "ratio"]]


def line(comparison: Comparison, found: pd.DataFrame, name: str) -> str:
    """A row of the table."""
    own = found[found["variant"] == name]
    seconds, ratio = statistics.median(own["seconds"]), own["ratio"]
    cells = [comparison.what, f"{comparison.workload}, {comparison.network}", name, f"{seconds:.3f}"]
    if name == next(iter(comparison.variants)):
        cells += [""] * 4
    else:
        most, mean = comparison.most.get(name), ratio.mean()
        half = quantile(len(ratio)) * ratio.std() / len(ratio) ** 0.5
        cells += [f"{statistics.median(ratio):.3f}", f"{mean:.3f} [{mean - half:.3f}, {mean + half:.3f}]"]
        cells += [f"{ratio.min():.3f} to {ratio.max():.3f}", f"{most or ''}"]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--what", nargs="+", choices=["proof", "portable", "caps"], default=["proof", "portable"])
    parser.add_argument("--workloads", nargs="+", choices=["W1", "W2", "W3", "P3", "P4"])
    parser.add_argument("--turns", type=int, help="rounds of each variant; by default from 3 to 30, by workload")
    parser.add_argument("--cache", type=Path, default=environments.CACHE, help="folder of the data")
    parser.add_argument("--rows", type=Path, help="write every round to this CSV file")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    print(HEADER, flush=True)
    tables = []
    for comparison in COMPARISONS:
        if comparison.what not in options.what or comparison.workload not in (options.workloads or WORKLOADS):
            continue
        if options.turns:
            comparison = Comparison(**{**vars(comparison), "turns": options.turns})
        workload = WORKLOADS[comparison.workload]
        path = options.cache / f"{workload.name}-noise{workload.noise:g}.npz"
        if not path.exists():
            data.make(workload, path)
        tables.append(measured(comparison, path))
        for name in comparison.variants:
            print(line(comparison, tables[-1], name), flush=True)
        if options.rows is not None:
            pd.concat(tables).to_csv(options.rows, index=False, float_format="%.6g")


if __name__ == "__main__":
    main()
