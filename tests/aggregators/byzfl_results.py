"""Writes ``byzfl_results.json``: ByzFL's results on vectors that test_robust.py aggregates too.

    pip install byzfl==0.0.11 && python -m tests.aggregators.byzfl_results

Stored, because ByzFL brings torchvision, matplotlib and seaborn with it.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FILE = Path(__file__).with_suffix(".json")
BYZANTINE = 3
RADIUS = 2.0


def vectors() -> list[NDArray[np.float32]]:
    """Eleven vectors of seven numbers, eighths, so that all libraries read the same."""
    draws = np.random.default_rng(0).integers(-20, 20, (11, 7))
    return list((draws / 8).astype(np.float32))


def main() -> None:
    import byzfl

    stack = np.array(vectors())
    mixed = byzfl.NNM(BYZANTINE)(stack)
    results = {
        "median": byzfl.Median()(stack),
        "trimmed mean": byzfl.TrMean(BYZANTINE)(stack),
        "Krum": byzfl.Krum(BYZANTINE)(stack),
        "multi-Krum": byzfl.MultiKrum(BYZANTINE)(stack),
        "geometric median": byzfl.GeometricMedian(nu=0.1, T=3)(stack),
        "centered clipping": byzfl.CenteredClipping(None, 3, RADIUS)(stack),
        "mixing": mixed,
        "mixing, then median": byzfl.Median()(mixed),
        "mixing, then geometric median": byzfl.GeometricMedian(nu=0.1, T=3)(mixed),
        "norm bound": byzfl.Clipping(RADIUS)(stack.copy()),
    }
    FILE.write_text(json.dumps({name: np.asarray(value).tolist() for name, value in results.items()}) + "\n")


if __name__ == "__main__":
    main()
