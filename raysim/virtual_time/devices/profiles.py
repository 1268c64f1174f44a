"""A device profile for every client: how fast it computes and communicates, and when it is there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raysim import seeds
from raysim.config.timing import Devices
from raysim.virtual_time.devices import traces
from raysim.virtual_time.devices.availability import DAY, Availability, daily

Column = NDArray[np.float64]
BYTES_OF_MBIT = 1e6 / 8
CLASSES = (1.0, 2.0, 5.0)
"""Seconds of the preset's three classes of devices, relative to the fastest."""
CHARGING = (22.0, 1.5, 7.0, 1.5)
"""A phone's charging at night, in hours: mean and deviation of its begin (local time, of a normal distribution), mean
and deviation of its length. Phones' time zones are uniform over the day."""


@dataclass(frozen=True, eq=False)
class Profiles:
    """Speed and bandwidths of every client's device; every array is float64 [n]."""

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

    def seconds(self, samples: Column, bytes_down: NDArray[np.int64] | float, bytes_up: float) -> Column:
        """Virtual seconds of each client's task [n]: the message goes down, the client trains, the update goes up.

        Args:
            samples: that each client trains on, over all its local epochs [n].
            bytes_down: of the message, one for all or each client's [n].
            bytes_up: of the update.
        """
        communication = 2 * self.latency + bytes_down / self.bandwidth_down + bytes_up / self.bandwidth_up
        return communication + samples * self.seconds_per_sample


def make_profiles(devices: Devices, clients: int, seed: int) -> Profiles:
    """The profiles of a run's clients, from ``devices.preset``: a pure function of settings and seed.

    Raises:
        ConfigError: the trace file is missing, damaged, or has too few rows.
    """
    draw = seeds.numpy_generator(seed, "devices")
    columns = {name: np.full(clients, getattr(devices, name), np.float64) for name in traces.COLUMNS}
    availability = None
    if devices.preset == "trace":
        columns, availability = traces.read(devices, clients)
    columns["bandwidth_down"] *= BYTES_OF_MBIT
    columns["bandwidth_up"] *= BYTES_OF_MBIT
    if devices.preset == "classes":
        columns["seconds_per_sample"] *= draw.permutation(np.resize(CLASSES, clients))
    elif devices.preset in ("phones", "day"):
        factors = np.exp(devices.spread * draw.standard_normal((3, clients)))
        for name, factor in zip(("seconds_per_sample", "bandwidth_down", "bandwidth_up"), factors, strict=True):
            columns[name] *= factor
    if devices.preset == "day":
        availability = charging(clients, draw)
    return Profiles(**columns, availability=availability)


def charging(clients: int, draw: np.random.Generator) -> Availability:
    """Phones that are available while they charge at night, in time zones all over the day (:data:`CHARGING`)."""
    begin, begin_deviation, length, length_deviation = CHARGING
    begins = begin + begin_deviation * draw.standard_normal(clients) + draw.uniform(0, 24, clients)
    lengths = np.clip(length + length_deviation * draw.standard_normal(clients), 1, 24)
    return daily(begins * DAY / 24, lengths * DAY / 24)
