"""Settings of small runs; one Ray for the whole session of tests, gone with its processes at the end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from logging import ERROR
from pathlib import Path

import hypothesis
import pytest

from raysim.actors.ray_start import QUICK_START
from raysim.actors.start_retry import patiently
from tests.forks import fork_server, forked_workers
from tests.small_runs import MakeConfig, small_run

# Before Ray or torch is imported anywhere: no more threads than a test says, no usage statistics, and Ray's workers at
# the priority of the test that waits for them (by default they yield to everything else on a shared machine).
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ.setdefault("RAY_worker_niceness", "0")
os.environ.update(QUICK_START)
# How long an example takes says what else the machine does; and new examples are for the long tests, as one that fails
# would stop a change that has nothing to do with it.
hypothesis.settings.register_profile(
    "patient",
    deadline=None,
    derandomize="RAYSIM_LONG_TESTS" not in os.environ,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("patient")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks what uses the session's Ray as slow: here, as ``-m`` chooses before any other hook of the whole list."""
    if "ray_session" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.slow)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first.

    Whole files are handed out to workers in this order (pyproject.toml: ``--dist loadfile --no-loadscope-reorder``):
    were a long one the last, all other workers would wait for it.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """No run of a test has to survive a power cut: that runs do is shown by tests/attack/crash.py, without one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture
def base() -> dict[str, object]:
    """What the runs of ``make_config`` have in common; a file or a folder of tests gives its own."""
    return {}


@pytest.fixture
def make_config(tmp_path: Path, base: dict[str, object]) -> MakeConfig:
    """Makes the settings of a run in a folder of this name; options as paths with __ for a dot."""
    return lambda name, **options: small_run(tmp_path / name, base, **options)


@pytest.fixture(scope="session")
def _ray_to_the_end() -> Iterator[None]:
    yield
    import ray

    ray.shutdown()
    fork_server().end()


@pytest.fixture(scope="module")
def ray_session(_ray_to_the_end: None) -> None:
    """A local Ray with three CPU slots (logical: more than one core is not needed) and no dashboard.

    It is that of the modules before, unless one of them has ended it or has put a cluster in its place.
    """
    import ray

    if ray.is_initialized():
        if ray.cluster_resources().get("CPU") == 3:
            return
        ray.shutdown()
    start = partial(ray.init, "local", num_cpus=3, include_dashboard=False, log_to_driver=False, logging_level=ERROR)
    with forked_workers():
        patiently(start)
