"""Mirrors a run's folder to its remote address while the run goes on, without letting the run wait for it."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from raysim.errors import RaysimError, reason_of
from raysim.remote.address import occupied
from raysim.remote.state import ALLOWED
from raysim.remote.store import PATIENCE, Store, UnreachableError
from raysim.remote.upload import ChangingError, ConflictError, Upload
from raysim.storage.run_folder import RunFolder, is_run
from raysim.units import counted


class Mirror:
    """Brings the remote side up to a run's folder after each round, in a thread of its own, and at the end.

    A lost connection ends nothing: the run goes on in its local folder, and what is missing is sent later.

    Args:
        resumed: the run goes on from what may be there.
    """

    def __init__(self, address: str, folder: Path, *, resumed: bool) -> None:
        self.address, self._folder, self._resumed = address, folder, resumed
        self.fault = ""
        """Why the remote side is not complete; empty: it is, as far as was tried."""
        self.left_out = ""
        """A sentence on files that are not sent there, since no state may hold them; empty: there are none."""
        self._said = ""
        self._notes: deque[str] = deque()
        self._store: Store | None = None
        self._upload: Upload | None = None
        self._conflict = False
        self._due, self._ending = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._work, name="mirror", daemon=True)
        if not resumed:
            self._pass()
            if self._conflict:
                raise occupied(address)
            if self.fault:
                raise UnreachableError(
                    f"{self.fault}. Check address, credentials and region (AWS_ACCESS_KEY_ID, AWS_REGION, "
                    "AWS_ENDPOINT_URL for S3), or give a folder of this machine as --output."
                )
        self._thread.start()

    def round_finished(self) -> list[str]:
        """A round's rows are written; what has happened since the last call, in sentences."""
        self._due.set()
        return [self._notes.popleft() for _ in range(len(self._notes))]

    def close(self) -> None:
        """Bring the remote side up to the folder as it is at the end; ``fault`` says whether that failed."""
        self._ending.set()
        self._due.set()
        try:
            self._thread.join()
            if not is_run(self._folder):
                self._withdraw()
                return
            pause, begun = PATIENCE.first_pause, time.monotonic()
            while not self._pass():
                # An answer alone buys no time: where the fault is here, or nothing may be written there, none helps.
                sent = max(begun, self._store.sent) if self._store else begun
                if time.monotonic() + pause > sent + PATIENCE.at_end:
                    return
                time.sleep(pause)
                pause = min(2 * pause, PATIENCE.longest_pause)
        except KeyboardInterrupt:
            self.fault = self.fault or f"{self.address}: interrupted"

    def incomplete(self) -> str:
        """A sentence on what is missing on the remote side, and how to bring it there; empty if nothing is."""
        if not self.fault:
            return ""
        last = self._upload.last if self._upload else None
        there = f"its last whole state is after {counted(last.rounds, 'round')}" if last else "what it holds is unknown"
        mend = (
            "Another process has gone on with the run there: keep this folder, which may be ahead of it"
            if self._conflict
            else f"Nothing is lost; bring it there with: python -m raysim.launch --resume {self.address}"
        )
        return f"{self.address} is not complete: {there} ({self.fault}). The run is whole in {self._folder}. {mend}"

    def _work(self) -> None:
        while not self._ending.is_set():
            self._due.wait()
            self._due.clear()
            pause = PATIENCE.first_pause
            while not self._ending.is_set() and not self._pass():
                self._ending.wait(pause)
                pause = min(2 * pause, PATIENCE.longest_pause)

    def _pass(self) -> bool:
        """Whether the remote side holds the folder as it is now, or never will."""
        if self._conflict:
            return True
        try:
            if self._upload is None:
                self._store = Store(self.address)
                self._upload = Upload(self._store, self._folder)
            rounds = self._upload.bring().rounds
            if self._upload.left_out and not self.left_out:
                self._tell_of(self._upload.left_out)
                self._upload.bring()  # the line in the log
        except ConflictError:
            self._conflict = True
            self.fault = f"{self.address}: another process has written there since"
        except ChangingError:
            self.fault = f"{self.address}: the run's folder changes faster than it can be sent"
        except (RaysimError, OSError) as error:
            self.fault = reason_of(error)
        else:
            if self._said:
                self._notes.append(f"{self.address} holds the run again, up to round {rounds}")
            self.fault = self._said = ""
            return True
        if not self._said:
            later = "is not sent there any more" if self._conflict else "is sent there later"
            self._said = f"{self.fault}. The run goes on in {self._folder} and {later}"
            self._notes.append(self._said)
            if is_run(self._folder):
                RunFolder(self._folder).log(self._said)
        return self._conflict

    def _tell_of(self, names: Sequence[str]) -> None:
        """Keep and log a sentence on files that are left out."""
        self.left_out = (
            f"{self.address} is without {counted(len(names), 'file')} of {self._folder}, such as {names[0]!a}. "
            f"Allowed: {ALLOWED}. Rename them and resume the run, or keep them here"
        )
        RunFolder(self._folder).log(self.left_out)

    def _withdraw(self) -> None:
        """Take back what was written for a run that has come to nothing."""
        self.fault = ""
        if self._upload and not self._resumed:
            try:
                self._upload.withdraw()
            except UnreachableError as error:
                self.fault = f"{reason_of(error)}. What is left there is no run: remove it"
