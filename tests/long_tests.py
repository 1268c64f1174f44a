"""Tests that take too long for every run of the suite; ``RAYSIM_LONG_TESTS=1 python -m pytest`` runs them too."""

from __future__ import annotations

import os

import pytest

long = pytest.mark.skipif("RAYSIM_LONG_TESTS" not in os.environ, reason="set RAYSIM_LONG_TESTS=1: each starts a Ray")
