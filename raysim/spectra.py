"""The spectral-bias picture of a graph workload, and its numbers.

``python -m raysim.spectra --setting SM-CV --output sm-cv.png`` draws how the eigenvalues of every client's graphs lie
and how far apart the clients' spectra are (FedSSP, Fig. 1), and writes the distances beside it as ``sm-cv.csv``. Every
option of the workload can be given, as ``--sets MUTAG,NCI1`` or ``--laplacian combinatorial``, and another workload, as
``--workload toy-graphs``. All graphs of a client count, whatever part of its split they are in. Needs no Ray.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from raysim.config import registry
from raysim.config.options import Option, options_of_class, show
from raysim.config.run_config import unknown_option
from raysim.errors import ConfigError, RaysimError
from raysim.exit_codes import FINISHED, REFUSED, STOPPED
from workloads.errors import WorkloadError
from workloads.naming import synthetic_mark
from workloads.option_types import NonNegativeInt

if TYPE_CHECKING:
    from workloads.graphs.federation import GraphFederation

OWN = ("workload", "output", "seed", "help")
SUFFIXES = (".png", ".svg")
DEFAULT = "tudataset"


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; 0 if the picture is there."""
    try:
        words = _plain(sys.argv[1:] if argv is None else argv)
        workload, output, seed = _read(words)
        federation = _load(workload, seed)
        _write(federation, workload, output)
    except (RaysimError, WorkloadError, OSError) as error:
        print(f"raysim: {error}", file=sys.stderr)
        return REFUSED
    except KeyboardInterrupt:
        print("raysim: interrupted; spectra of sets are kept once all are computed", file=sys.stderr)
        return STOPPED
    return FINISHED


def _plain(argv: Sequence[str]) -> list[str]:
    """The words with every option in its short form: --workload.test-share is --test_share."""
    words = []
    for word in argv:
        if word.startswith("--"):
            typed, equals, value = word[2:].partition("=")
            name = "workload" if typed == "workload.name" else typed.removeprefix("workload.").replace("-", "_")
            word = f"--{name}{equals}{value}"
        words.append(word)
    return words


def _read(words: Sequence[str]) -> tuple[Any, Path, int]:
    """(workload, picture to write, seed) of a command line."""
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument("--workload", default=DEFAULT)
    cls = registry.resolve("workload", first.parse_known_args(list(words))[0].workload)
    options = {path.partition(".")[2]: option for path, option in options_of_class("workload", cls).items()}
    given, rest = _parser(options).parse_known_args(list(words))
    if rest:
        if not rest[0].startswith("--"):
            raise ConfigError(f"Unexpected argument {rest[0]!r}. Options are written --option VALUE; see --help.")
        known = [*options, *OWN]
        error = unknown_option(rest[0][2:].partition("=")[0], known, prefix="--")
        raise ConfigError(f"{str(error).partition(' Sections:')[0]} Options: {', '.join(known)}.")
    output = Path(given.output)
    if output.suffix.lower() not in SUFFIXES:
        raise ConfigError(f"output: {given.output!r} must end in {' or '.join(SUFFIXES)}; default spectra.png.")
    if not output.parent.is_dir():
        raise ConfigError(f"output: there is no folder {output.parent}; make it or choose another.")
    seed = Option("seed", NonNegativeInt, 0).convert(given.seed)
    texts = {name: getattr(given, name) for name in options}
    values = {name: options[name].convert(text) for name, text in texts.items() if text is not None}
    try:
        return cls(**values), output, int(str(seed))
    except (WorkloadError, ValueError) as error:
        raise ConfigError(f"workload: {error}") from error


def _parser(options: dict[str, Option]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m raysim.spectra", description=(__doc__ or "").split("\n\n")[0], allow_abbrev=False
    )
    parser.add_argument("--workload", default=DEFAULT, metavar="NAME", help=f"graph workload; default {DEFAULT}")
    parser.add_argument("--output", default="spectra.png", metavar="FILE", help="picture to write, .png or .svg")
    parser.add_argument("--seed", default="0", metavar="NUMBER", help="root of every random stream; default 0")
    for name, option in options.items():
        text = f"{option.help.text}; {option.allowed()}; default {show(option.default)}"
        parser.add_argument(f"--{name}", metavar="VALUE", help=text.replace("%", "%%"))
    return parser


def _load(workload: Any, seed: int) -> GraphFederation:
    """The workload's graphs, with spectra."""
    from raysim import seeds
    from workloads.graphs.federation import GraphFederation
    from workloads.parallel_map import Sequential

    federation = workload.load(lambda purpose: seeds.numpy_generator(seed, purpose))
    if not isinstance(federation, GraphFederation):
        raise ConfigError(
            f"workload: {registry.public_name('workload', workload)} has no graphs, so no spectra. Graph workloads: "
            "tudataset, toy-graphs."
        )
    return federation.prepare(True, Sequential(_progress))


def _write(federation: GraphFederation, workload: Any, output: Path) -> None:
    from raysim.report import spectra_plot
    from raysim.storage.atomic_files import write_atomically

    names = [federation.client_name(client) for client in range(federation.clients)]
    spectra = [part.graphs.eigenvalues for part in federation.parts]
    table = spectra_plot.distances(names, spectra)
    kind: Literal["png", "svg"] = "svg" if output.suffix.lower() == ".svg" else "png"
    write_atomically(
        output, spectra_plot.draw(spectra, table, _title(federation, workload), federation.laplacian, kind)
    )
    numbers = output.with_suffix(".csv")
    write_atomically(numbers, table.to_csv(float_format="%.6g").encode())
    eigenvalues = sum(len(values) for values in spectra)
    clients = f"{federation.clients} clients{synthetic_mark(federation.synthetic)}"
    print(f"{eigenvalues} eigenvalues of {clients}: {output}, {numbers}")


def _title(federation: GraphFederation, workload: Any) -> str:
    setting = getattr(workload, "setting", "") if not getattr(workload, "sets", ()) else ""
    return f"Spectral bias: {federation.name}{' ' if setting else ''}{setting}{synthetic_mark(federation.synthetic)}"


def _progress(label: str, done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{label}: {done} of {total}", end="\n" if done == total else "", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
