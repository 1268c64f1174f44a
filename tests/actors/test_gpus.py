"""Placement by GPUs, on a cluster of three nodes: Ray only counts GPUs, so their number is all that is needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.slow


def test_two_actors_to_a_gpu_each_with_its_own_in_sight() -> None:
    script = Path(__file__).with_name("gpus_on_a_cluster.py")
    root = str(script.parents[2])
    process = subprocess.run(
        [sys.executable, str(script)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert process.returncode == 0, process.stderr
    found, refused = map(json.loads, process.stdout.splitlines()[-2:])
    # GPUs 0 and 1 of the second node, GPU 0 of the third; the head has none.
    large, small = found["nodes"]
    assert found["plan"] == "6 client actors, 2 to a GPU, serve 100 clients"
    places = Counter((node, *gpus) for node, gpus, _ in found["places"])
    assert places == {(large, 0): 2, (large, 1): 2, (small, 0): 2}
    assert all(visible == str(gpus[0]) for _, gpus, visible in found["places"])
    # What can never be given is said at once: an actor that waits for a GPU would wait for ever.
    assert "--engine.actors 7 cannot be met, only 6 fit: the cluster has 3 GPU on 3 nodes" in found["too many"]
    assert "asks for 3 GPU, but the cluster's largest node has 2" in found["too large"]
    assert "--engine.actors 3 cannot be met, only 2 fit" in found["cores"]
    if not torch.cuda.is_available():  # what was asked to train on a GPU never does on the CPU
        start = "a client actor cannot start: --engine.gpus_per_client 0.5: torch "
        assert refused.startswith(start) and "finds no GPU on" in refused and "Traceback" not in refused
