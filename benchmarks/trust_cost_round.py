"""One variant of ``benchmarks.trust_cost``: trains a round for every line that it reads, and prints its seconds."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from benchmarks.rounds.raysim_run import command_line, given
from benchmarks.rounds.task import read_task
from raysim.client_side.allocator import keep_freed_memory
from raysim.config.command_line import parse
from raysim.engine.observer import Silent
from raysim.running.open_run import prepare
from raysim.running.simulation import execute


class InTurn(Silent):
    """Before every round says how many processor seconds the last one took, then waits until it is told to begin."""

    def __init__(self) -> None:
        self._began = time.process_time()
        self._output = sys.stdout

    def note(self, text: str) -> None:
        print(text, file=sys.stderr)

    def round_started(self, round: int, local_epochs: int, participants: int) -> None:
        seconds = time.process_time() - self._began if round > 1 else 0.0
        print(repr(seconds), file=self._output, flush=True)
        if not sys.stdin.readline():
            raise SystemExit("the benchmark asks for no further round")
        self._began = time.process_time()


def main() -> None:
    task, observer = read_task(), InTurn()
    sys.stdout = sys.stderr  # whatever else is printed
    keep_freed_memory()
    place = Path(sys.argv[1]).with_suffix("")
    config = parse(command_line(task, place)).config if task.settings.kind == "images" else given(task, place)
    execute(config, prepare(config), observer)


if __name__ == "__main__":
    main()
