"""Ray's processes that no client task needs: they begin their work some seconds after the first clients are done.

Ray starts its dashboard, its autoscaler and its reader of workers' logs before it starts any worker, and waits for the
dashboard. On two cores that is two seconds in which no client trains; the autoscaler also takes a second to end.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from raysim.actors.own_ray import LOGS, SIDE, side_processes

AFTER = 10.0
"""Seconds after the first clients are done when they go on: a run that ends before would only wait for its end."""
LATEST = 30.0
"""Seconds after Ray is up when they go on even if no client is done, as where data is read or models are large."""
UP = 60.0
"""Seconds after which a dashboard that has not come up is no longer waited for."""
LOOK = 0.05
"""Seconds between two looks at which of them have been started, or whether the dashboard is up."""
PATIENCE = "RAY_DASHBOARD_STARTUP_TIMEOUT_S"
"""Ray's constant: how many seconds ``ray.init`` waits for a dashboard, and then goes on if it is not demanded."""
NICENESS = "RAY_worker_niceness"
"""Ray's variable for how much its workers yield to other programs, 15 by default: these processes yield as much."""
KEYS: dict[str, Any] = {"namespace": "dashboard"}
"""Where Ray has the dashboard's address: as "dashboard" the dashboard leaves it, as "webui:url" others look for it."""


class SideProcesses:
    """Those of the Ray that this process starts: held from when they appear until :meth:`go_on`.

    Without a dashboard none is left: nothing that is left reads what they write.

    Args:
        dashboard: whether one is wanted.
    """

    def __init__(self, dashboard: bool) -> None:
        self._dashboard = dashboard
        self._held: set[int] = set()
        self._gone_on, self._address = threading.Event(), ""
        self._timer: threading.Timer | None = None
        self._tell: Callable[[str], None] = lambda address: None

    @property
    def address(self) -> str:
        """Host and port of the dashboard once it is up; empty until then, or if there is none."""
        return self._address

    @contextmanager
    def held(self, options: dict[str, Any]) -> Iterator[None]:
        """Hold them while Ray starts with these options of ``ray.init``, which are changed so that it does not wait."""
        from ray._private import ray_constants  # the one place where it can be set after ray has been imported

        if not hasattr(ray_constants, PATIENCE):
            yield
            return
        patience, started = getattr(ray_constants, PATIENCE), threading.Event()
        earlier = side_processes().keys()
        watcher = threading.Thread(target=self._hold, args=(earlier, started), name="side processes", daemon=True)
        watcher.start()
        setattr(ray_constants, PATIENCE, 0)
        options["include_dashboard"] = None if self._dashboard else False  # None: wanted, and not waited for
        try:
            yield
        except BaseException:
            for number in side_processes().keys() - earlier:
                with suppress(OSError):
                    os.kill(number, signal.SIGKILL)
            raise
        finally:
            started.set()
            watcher.join()
            setattr(ray_constants, PATIENCE, patience)

    def _hold(self, earlier: Collection[int], started: threading.Event) -> None:
        seen, niceness = set(earlier), int(os.environ.get(NICENESS, "15"))
        while len(seen) < len(earlier) + len(SIDE) and not started.wait(LOOK):
            for number, program in side_processes().items():
                if number in seen:
                    continue
                seen.add(number)
                with suppress(OSError):  # it has ended, or yields more already
                    if self._dashboard and program != LOGS:
                        os.kill(number, signal.SIGSTOP)
                        self._held.add(number)
                        os.setpriority(os.PRIO_PROCESS, number, niceness)
                    else:
                        os.kill(number, signal.SIGKILL)

    def introduce(self, tell: Callable[[str], None]) -> None:
        """Give the dashboard's address to ``tell`` when it is up, from another thread; only the last one is told."""
        self._tell = tell
        if self._address:
            tell(self._address)
        elif self._dashboard:
            threading.Thread(target=self._introduce, args=(tell,), name="dashboard", daemon=True).start()

    def _introduce(self, tell: Callable[[str], None]) -> None:
        from ray.experimental.internal_kv import _internal_kv_get, _internal_kv_put

        self._gone_on.wait(LATEST)
        self.go_on()
        end = time.monotonic() + UP
        with suppress(Exception):  # as Ray's calls raise when it is gone
            while self._tell is tell and time.monotonic() < end:
                if found := _internal_kv_get("dashboard", **KEYS):
                    _internal_kv_put("webui:url", found, overwrite=True, **KEYS)
                    self._address = found.decode()
                    tell(self._address)
                    return
                time.sleep(LOOK)

    def go_on_soon(self) -> None:
        """Let them begin after some seconds, counted from the first call."""
        if self._timer is None:
            self._timer = threading.Timer(AFTER, self.go_on)
            self._timer.daemon = True
            self._timer.start()

    def go_on(self) -> None:
        """Let them begin."""
        held, self._held = self._held, set()  # two threads may come here at once
        for number in held & side_processes().keys():  # their Ray may have ended since
            with suppress(OSError):
                os.kill(number, signal.SIGCONT)
        self._gone_on.set()
