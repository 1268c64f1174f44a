"""The spectral-bias picture of a graph workload, and its numbers.

``python -m raysim.spectra --setting SM-CV --output sm-cv.png`` draws how the eigenvalues of every client's graphs lie
and how far apart the clients' spectra are (FedSSP, Fig. 1), and writes the distances beside it as ``sm-cv.csv``
(``spectra.png`` and ``.csv`` without ``--output``). It takes the options of ``python -m raysim.launch``, such as
``--sets MUTAG,NCI1`` or ``--laplacian combinatorial``; the workload is tudataset unless it is named, as in
``--workload toy-graphs``. All graphs of a client count, whatever part of its split they are in. Needs no Ray.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from raysim.config import registry
from raysim.config.answering import Answer, asks_for_json, concluded, told_of_options
from raysim.config.command_line import parse
from raysim.errors import ConfigError
from raysim.leaving import staying
from raysim.remote.address import local_path
from raysim.workloads.naming import synthetic_mark

if TYPE_CHECKING:
    from raysim.workloads.graphs.federation import GraphFederation

SUFFIXES = (".png", ".svg")
NAMES_A_WORKLOAD = ("--workload", "--workload.name", "--config")


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; 0 if the picture is there."""
    words = sys.argv[1:] if argv is None else list(argv)
    if not any(word.partition("=")[0] in NAMES_A_WORKLOAD for word in words):
        words = ["--workload=tudataset", *words]
    return concluded(
        "raysim",
        asks_for_json(words),
        lambda: _drawn(words),
        "interrupted; spectra of sets are kept once all are computed",
    )


@staying()
def _drawn(words: Sequence[str]) -> Answer:
    invocation = parse(words)
    if invocation.action != "run":
        return told_of_options(invocation, __doc__ or "")
    config = invocation.config
    output = _picture(config.output or "spectra.png")
    return _write(_load(config.workload, config.seed), config.workload, output)


def _picture(name: str) -> Path:
    """The file to write, checked before anything is computed."""
    path = local_path(name)
    if path.suffix.lower() not in SUFFIXES:
        raise ConfigError(f"output: {name!r} must end in {' or '.join(SUFFIXES)}; default spectra.png.")
    if not path.parent.is_dir():
        raise ConfigError(f"output: there is no folder {path.parent}; make it or choose another.")
    return path


def _load(workload: Any, seed: int) -> GraphFederation:
    """The workload's graphs, with spectra."""
    from raysim import seeds
    from raysim.workloads.graphs.federation import GraphFederation
    from raysim.workloads.parallel_map import Sequential

    federation = workload.load(seeds.data_streams(seed))
    if not isinstance(federation, GraphFederation):
        fitting = [name for name in registry.known("workload") if registry.resolve("workload", name).inputs == "graph"]
        raise ConfigError(
            f"workload: {registry.public_name('workload', workload)} has no graphs, so no spectra. Graph workloads: "
            f"{', '.join(fitting)}."
        )
    return federation.prepare(True, Sequential(_progress))


def _write(federation: GraphFederation, workload: Any, output: Path) -> Answer:
    from raysim.report import spectra_plot
    from raysim.storage.atomic_files import write_atomically

    names = [federation.client_name(client) for client in range(federation.clients)]
    spectra = [part.graphs.eigenvalues for part in federation.parts]
    table = spectra_plot.distances(names, spectra)
    kind: Literal["png", "svg"] = "svg" if output.suffix.lower() == ".svg" else "png"
    mark = synthetic_mark(federation.synthetic)
    setting = "" if getattr(workload, "sets", ()) else getattr(workload, "setting", "")
    title = f"Spectral bias: {federation.name}{' ' if setting else ''}{setting}{mark}"
    write_atomically(output, spectra_plot.draw(spectra, table, title, federation.laplacian, kind))
    numbers = output.with_suffix(".csv")
    write_atomically(numbers, table.to_csv(float_format="%.6g").encode())
    eigenvalues = sum(len(values) for values in spectra)
    told = {
        "clients": names,
        "synthetic": federation.synthetic,
        "eigenvalues": eigenvalues,
        "distances": table.to_numpy().tolist(),
        "files": [str(output), str(numbers)],
    }
    return Answer(f"{eigenvalues} eigenvalues of {federation.clients} clients{mark}: {output}, {numbers}", told)


def _progress(label: str, done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{label}: {done} of {total}", end="\n" if done == total else "", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
