"""Client actors that die by themselves at a certain point: no test has to find one at work."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any, ClassVar

import ray

from raysim.actors.client import Client, Starter
from raysim.config.run_config import RunConfig


def sentence(config: RunConfig) -> Path:
    """The file that, if it is there, one actor of this run dies of; it is gone afterwards."""
    return Path(f"{config.output}-dies")


class Mortal(Client):
    """Dies once it has done a client task of round 2, before it says so: its work and the states it holds are lost."""

    def prepare(self, config: Any, federation: Any) -> str:
        self._sentence = sentence(config)
        return super().prepare(config, federation)

    def run(self, task: Any, *inputs: Any) -> Any:
        result = super().run(task, *inputs)
        if str(ray.get_runtime_context().get_task_name()).startswith("train[round 2]"):
            try:
                self._sentence.unlink()
            except FileNotFoundError:  # it is not to be, or another one was first
                return result
            os.kill(os.getpid(), signal.SIGKILL)
        return result


class MortalStarter(Starter):
    """Starts actors that can be told to die."""

    actor: ClassVar[Any] = ray.remote(Mortal)
