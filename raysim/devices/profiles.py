"""A device profile for every client: how fast it computes and communicates, and when it is there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raysim.devices.availability import Availability

Column = NDArray[np.float64]
BYTES_OF_MBIT = 1e6 / 8


@dataclass(frozen=True, eq=False)
class Profiles:
    """What each client's device is like; every array is float64 [n]."""

    seconds_per_sample: Column
    bandwidth_down: Column
    """Bytes a second."""
    bandwidth_up: Column
    """Bytes a second."""
    latency: Column
    """Seconds."""
    drop_probability: Column
    """Probability that a client task is lost."""
    watts: Column
    availability: Availability | None = None
    """None: always there."""

    @property
    def clients(self) -> int:
        """Number of clients."""
        return len(self.seconds_per_sample)

    def seconds(self, samples: Column, bytes_down: float, bytes_up: float) -> Column:
        """Virtual seconds of each client's task [n]: the message goes down, the client trains, the update goes up.

        Args:
            samples: that each client trains on, over all its local epochs [n].
            bytes_down: of the message.
            bytes_up: of the update.
        """
        communication = 2 * self.latency + bytes_down / self.bandwidth_down + bytes_up / self.bandwidth_up
        return communication + samples * self.seconds_per_sample
