"""States and updates that are larger than the object store: Ray moves states to the disk, updates wait in a file."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from raysim.config.run_config import RunConfig, build, to_yaml
from raysim.simulation import run
from tests.fingerprint import fingerprint

pytestmark = pytest.mark.slow
CLIENTS = 30
SCRIPT = """
import sys
from pathlib import Path
import ray, yaml
from ray.cluster_utils import Cluster
from actors.start_retry import patiently
from raysim.config.run_config import given_config
from raysim.engine.observer import Silent
from raysim.simulation import run

class Watch(Silent):
    def round_finished(self, row):
        spilled = sum(path.stat().st_size for path in Path(sys.argv[1]).rglob("*") if path.is_file())
        print("spilled", spilled, flush=True)

small = dict(object_store_memory=80 << 20, object_spilling_directory=sys.argv[1])
head = dict(num_cpus=0, include_dashboard=False, **small)
cluster = patiently(lambda: Cluster(initialize_head=True, head_node_args=head))
patiently(lambda: cluster.add_node(num_cpus=1, **small))
ray.init(address=cluster.address, log_to_driver=False)
for path in sys.argv[2:]:
    run(given_config(yaml.safe_load(Path(path).read_text())), observer=Watch())
ray.shutdown()
cluster.shutdown()
"""


def config(method: str, folder: Path, **options: object) -> RunConfig:
    """922 thousand values, 3.7 MB a client: 111 MB in all, and the worker's store has 80."""
    base: dict[str, object] = {
        "method.name": method,
        "workload.name": "digits",
        "workload.partition": "views",
        "workload.clients": CLIENTS,
        "workload.view_samples": 5,
        "model.name": "mlp",
        "model.hidden": 12288,
        "schedule.rounds": 2,
        "schedule.local_epochs": 1,
        "evaluation.every": 2,
        "engine.checkpoint_every": 1,
        "output": str(folder),
    }
    return build([base | options])


def test_a_small_object_store_changes_nothing(tmp_path: Path) -> None:
    methods = ("local", "fedld")
    paths = []
    for method in methods:
        paths.append(tmp_path / f"{method}.yaml")
        paths[-1].write_text(to_yaml(config(method, tmp_path / f"{method}-ray")))
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "spill"), *map(str, paths)]
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as ray:  # no other Ray is to join
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=os.environ | {"RAY_TMPDIR": ray}
        )
    assert done.returncode == 0, done.stderr
    spilled = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("spilled")]
    assert max(spilled[:2]) > 10 << 20
    for method in methods:
        inline = run(config(method, tmp_path / f"{method}-inline", **{"engine.backend": "inline"}))
        assert fingerprint(tmp_path / f"{method}-ray") == fingerprint(inline.folder)
