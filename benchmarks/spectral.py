"""An epoch of FedSSP's network with filters at the edges against the same network with dense n x n bases.

    RAYSIM_DATA=/path/to/data python -m benchmarks.spectral --sets NCI1,PROTEINS

``--rows FILE`` adds what is printed to a CSV file: docs/results/spectral-cost.csv holds the table of docs/fedssp.md.

All forms (benchmarks/dense_spectral.py says what the two dense ones are) train the same batches from the same values:
forward, backward, AdamW, one thread. They take turns (A B C A B C), times are CPU seconds of an epoch, scaled up from
the batches that ran. First the outputs are compared, in evaluation mode. A dense form is left out of a set where its
largest tensors alone would pass ``--gigabytes``. Peak memory is each form's own, in a process of its own.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.dense_spectral import DenseBasesBody, DenseBatch, DenseFiltersBody
from benchmarks.published import add
from raysim.workloads.federated_data import InputSpec
from raysim.workloads.graphs.batch import collate
from raysim.workloads.graphs.graph_set import Graphs
from raysim.workloads.graphs.tudataset import TuDataset
from raysim.workloads.models.graph_specs import Spectral
from raysim.workloads.parallel_map import sequential

BODIES: dict[str, Any] = {"edges": lambda body: body, "dense bases": DenseBasesBody, "dense filters": DenseFiltersBody}


def load(name: str) -> Graphs:
    federation = TuDataset(sets=(name,)).load(lambda purpose: np.random.default_rng(0)).prepare(True, sequential)
    return federation.parts[0].graphs


def shuffled_batches(graphs: Graphs, size: int, count: int) -> list[Graphs]:
    """The first batches of a shuffled epoch, each sorted by size as GraphSamples does."""
    order = np.random.default_rng(1).permutation(len(graphs))
    chosen = [order[start : start + size] for start in range(0, len(order), size)][:count]
    return [graphs.subset(part[np.lexsort((graphs.edge_counts[part], graphs.sizes[part]))]) for part in chosen]


@dataclass
class Form:
    """One way to compute the network, with a model and an optimizer of its own."""

    name: str
    batches: list[Graphs]
    model: Any

    def __post_init__(self) -> None:
        self.model = copy.deepcopy(self.model)
        self.body = BODIES[self.name](self.model.body)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, weight_decay=5e-4)
        sparse = [collate(part) for part in self.batches]
        dense = self.name != "edges"
        pairs = zip(self.batches, sparse, strict=True)
        self.inputs: list[Any] = [DenseBatch(part, batch) for part, batch in pairs] if dense else sparse
        self.labels = [torch.tensor(part.labels) for part in self.batches]

    def train(self) -> float:
        """CPU seconds."""
        self.model.train()
        started = time.process_time()
        for inputs, labels in zip(self.inputs, self.labels, strict=True):
            self.optimizer.zero_grad()
            torch.nn.functional.cross_entropy(self.model.head(self.body(inputs)), labels).backward()
            self.optimizer.step()
        return time.process_time() - started

    def outputs(self) -> torch.Tensor:
        self.model.eval()
        with torch.no_grad():
            return torch.cat([self.model.head(self.body(inputs)) for inputs in self.inputs])


def fits(name: str, batches: list[Graphs], hidden: int, gigabytes: float) -> bool:
    pairs = max(len(part) * int(part.sizes.max()) ** 2 for part in batches)
    # Dense filters: about eight tensors of width h for every pair. Dense bases: about forty numbers for every pair.
    return pairs * 4 * {"edges": 0, "dense bases": 40, "dense filters": 8 * hidden}[name] < gigabytes * 1e9


def measure(name: str, options: argparse.Namespace) -> None:
    graphs = load(name)
    batches = shuffled_batches(graphs, options.batch_size, options.batches)
    torch.manual_seed(0)
    inputs = InputSpec((graphs.features.shape[1],), int(graphs.labels.max()) + 1, "graph")
    model = Spectral(hidden=options.hidden).build(inputs)
    forms = [Form(n, batches, model) for n in BODIES if fits(n, batches, options.hidden, options.gigabytes)]
    expected = forms[0].outputs()
    apart = {form.name: float((form.outputs() - expected).abs().max()) for form in forms}
    seconds: dict[str, list[float]] = {form.name: [] for form in forms}
    for _ in range(options.repeats):
        for form in forms:
            seconds[form.name].append(form.train())
    scale = len(graphs) / sum(map(len, batches))
    print(f"{name}: {len(graphs)} graphs, batches of {options.batch_size}, hidden {options.hidden}")
    for form in forms:
        ratios = [own / edges for own, edges in zip(seconds[form.name], seconds["edges"], strict=True)]
        row = {
            "set": name,
            "batch_size": options.batch_size,
            "batches": options.batches,
            "repeats": options.repeats,
            "hidden": options.hidden,
            "form": form.name,
            "epoch_seconds": round(statistics.median(seconds[form.name]) * scale, 3),
            "ratio": round(statistics.median(ratios), 2),
            "least_ratio": round(min(ratios), 2),
            "largest_ratio": round(max(ratios), 2),
            "megabytes": round(peak_memory(name, options, form.name)),
            "outputs_apart": f"{apart[form.name]:.1e}",
        }
        print(
            "  {form:14} {epoch_seconds:8.2f} s an epoch  {ratio:6.1f}x ({least_ratio:.1f} to {largest_ratio:.1f})"
            "  {megabytes:6d} MB  outputs within {outputs_apart}".format(**row),
            flush=True,
        )
        if options.rows:
            add(options.rows, row)


def peak_memory(name: str, options: argparse.Namespace, form: str) -> float:
    """Peak resident megabytes of training in one form, above what the process had before."""
    arguments = [
        f"--{key.replace('_', '-')}={value}" for key, value in vars(options).items() if key not in ("memory_of", "rows")
    ]
    command = [sys.executable, __file__, *arguments, f"--sets={name}", f"--memory-of={form}"]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def print_memory(name: str, options: argparse.Namespace) -> None:
    batches = shuffled_batches(load(name), options.batch_size, options.batches)
    inputs = InputSpec((batches[0].features.shape[1],), 10, "graph")
    form = Form(options.memory_of, batches, Spectral(hidden=options.hidden).build(inputs))
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = _status("VmRSS")
    form.train()
    print((_status("VmHWM") - before) / 1024)


def _status(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="NCI1,PROTEINS")
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--batches", type=int, default=2, help="batches that run")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--gigabytes", type=float, default=10.0)
    parser.add_argument("--rows", type=Path, help="CSV file that the results are added to")
    parser.add_argument("--memory-of", choices=list(BODIES), help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in options.sets.split(","):
        (print_memory if options.memory_of else measure)(name, options)


if __name__ == "__main__":
    main()
