"""Device profiles from the presets of ``devices.preset``, drawn from the run's seed."""

from __future__ import annotations

import numpy as np

from raysim import seeds
from raysim.config.timing import Devices
from raysim.devices import traces
from raysim.devices.availability import DAY, Availability, daily
from raysim.devices.profiles import BYTES_OF_MBIT, Profiles

CLASSES = (1.0, 2.0, 5.0)
"""Seconds of the preset's three classes of devices, relative to the fastest."""
CHARGING = (22.0, 1.5, 7.0, 1.5)
"""A phone's charging at night, in hours: mean and deviation of its begin (local time, of a normal distribution), mean
and deviation of its length. Phones' time zones are uniform over the day."""


def make(devices: Devices, clients: int, seed: int) -> Profiles:
    """The profiles of a run's clients, a pure function of settings and seed.

    Raises:
        ConfigError: the trace file is missing, damaged, or has too few rows.
    """
    if devices.preset == "trace":
        return traces.read(devices, clients)
    draw = seeds.numpy_generator(seed, "devices")

    seconds, bandwidth_down, bandwidth_up = np.ones((3, clients))
    availability = None
    if devices.preset == "classes":
        seconds = draw.permutation(np.resize(CLASSES, clients))
    elif devices.preset in ("phones", "day"):
        seconds, bandwidth_down, bandwidth_up = np.exp(devices.spread * draw.standard_normal((3, clients)))
    if devices.preset == "day":
        availability = charging(clients, draw)
    return Profiles(
        devices.seconds_per_sample * seconds,
        devices.bandwidth_down * BYTES_OF_MBIT * bandwidth_down,
        devices.bandwidth_up * BYTES_OF_MBIT * bandwidth_up,
        np.full(clients, devices.latency),
        np.full(clients, devices.drop_probability),
        np.full(clients, devices.watts),
        availability,
    )


def charging(clients: int, draw: np.random.Generator) -> Availability:
    """Phones that are available while they charge at night, in time zones all over the day (:data:`CHARGING`)."""
    begin, begin_deviation, length, length_deviation = CHARGING
    begins = begin + begin_deviation * draw.standard_normal(clients) + draw.uniform(0, 24, clients)
    lengths = np.clip(length + length_deviation * draw.standard_normal(clients), 1, 24)
    return daily(begins * DAY / 24, lengths * DAY / 24)
