"""The in-process twin of the Ray pool: the same tasks on one worker, one after another, with the same bits."""

from __future__ import annotations

import os
import socket
import threading
import traceback
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from typing import Any

from raysim.client_side.device import run_task
from raysim.client_side.worker import Worker
from raysim.engine.update_spill import usable_memory
from raysim.errors import code_error
from raysim.exchange.pool_protocol import OFF, Done, Job, Result, Seat
from raysim.exchange.profile_marks import WAIT, now
from raysim.storage import pytree

ASIDE = "beside the rounds"
"""Name of the threads that do what no round waits for."""


def aside_at_work() -> bool:
    """Whether a call of :meth:`InlinePool.aside` has not ended."""
    return any(thread.name == ASIDE for thread in threading.enumerate())


class InlinePool:
    """Runs every job in the calling process; for tests, for debugging with a debugger, and where Ray is not wanted."""

    slots = 1

    def __init__(self, worker: Worker) -> None:
        self.recorder = OFF
        self._worker, self.federation = worker, worker.federation
        self._seat = Seat(0, socket.gethostname(), os.getpid(), str(worker.device))
        self.room = usable_memory() // 4
        self.plan = f"clients run one after another in this process on {worker.device}"

    def share(self, value: Any) -> Any:
        pytree.make_read_only(value)  # as what comes out of Ray's object store is
        return value

    def fetch(self, handle: Any) -> Any:
        return handle

    def adapt(self) -> bool:
        return False

    def run(
        self, jobs: Sequence[Job], note: Callable[[str], None], stopping: Callable[[], bool] = lambda: False
    ) -> Generator[Done, None, None]:
        for index, job in enumerate(jobs):
            if stopping():
                return
            started = now()
            try:
                with self.recorder.phase(WAIT):
                    result, outputs = run_task(job.task, self._worker, job.inputs)
            except (Exception, SystemExit) as error:
                raise code_error(job.label, error, traceback.format_exc()) from error
            done = Done(index, result, tuple(outputs), now() - started, started, started, self._seat)
            self.recorder.job(job, done)
            yield done

    def send_ahead(self, jobs: Sequence[Job]) -> None:
        pass

    def drop_ahead(self) -> None:
        pass

    def aside(self, function: Callable[..., Result], *arguments: Any) -> Callable[[float], Result]:
        called: Future[Result] = Future()

        def call() -> None:
            try:
                called.set_result(function(self.federation, *arguments))
            except Exception as error:
                called.set_exception(error)

        # A daemon: the process does not wait for it at its end, as it would for the threads of an executor.
        threading.Thread(target=call, name=ASIDE, daemon=True).start()
        return called.result

    def close(self) -> None:
        pass
