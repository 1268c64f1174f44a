"""The cluster files are what Ray's own schema wants, and install what the README installs."""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
FILES = ("cluster.yaml", "cluster.gcp.yaml", "cluster.local.yaml")
CLOUDS = FILES[:2]


def load(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("name", FILES)
def test_ray_accepts_the_file(name: str) -> None:
    from ray.autoscaler._private.util import prepare_config, validate_config

    validate_config(prepare_config(load(name)))


def test_a_mistake_would_be_noticed() -> None:
    from ray.autoscaler._private.util import validate_config

    with pytest.raises(Exception, match="max_worker"):
        validate_config(load("cluster.yaml") | {"max_worker": 3})


@pytest.mark.parametrize("name", FILES)
def test_nodes_are_installed_as_the_readme_says(name: str) -> None:
    *_, command, settings = load(name)["setup_commands"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert command.removeprefix("cd ~/raysim && ") in readme
    # `ray down` calls `ray stop` by its bare name, and a job its python.
    assert (
        "RAY_AUTH_MODE=token" in settings and "PATH=$HOME/raysim/.venv/bin:$PATH" in settings and ".bashrc" in settings
    )


@pytest.mark.parametrize("name", FILES)
def test_nothing_big_or_private_is_copied_to_the_nodes(name: str) -> None:
    assert {".venv", "runs", ".git", "data"} <= set(load(name)["rsync_exclude"])


def test_a_run_finds_at_least_one_worker() -> None:
    """With none it would be refused: it asks for what the nodes have that are there when it starts."""
    assert all(load(name)["available_node_types"]["worker"]["min_workers"] >= 1 for name in CLOUDS)
    assert load("cluster.local.yaml")["min_workers"] >= 1


@pytest.mark.parametrize("name", CLOUDS)
def test_the_costs_that_a_file_says_add_up(name: str) -> None:
    """Hours × price: of the head, of a worker, and of both with one worker and with all of them."""
    text = (ROOT / name).read_text(encoding="utf-8")
    said = " ".join(line.removeprefix("# ") for line in text.splitlines() if line.startswith("# "))
    head, worker = (
        float(re.findall(r"head about ([\d.]+) \$", said)[0]),
        float(re.findall(r"most ([\d.]+) \$", said)[0]),
    )
    parts = [
        float(price)
        for pair in re.findall(r" ([\d.]+),? (?:on demand, disk|200 GB of disk) ([\d.]+)", said)
        for price in pair
    ]
    assert parts and sum(parts) == pytest.approx(head + worker)
    one, most = map(float, re.findall(r"1 worker ([\d.]+) \$, all 16(?: of them)? ([\d.]+) \$", said)[0])
    assert one == pytest.approx(head + worker, abs=0.05)
    assert most == pytest.approx(head + load(name)["max_workers"] * worker, abs=0.1)
    for machine in load(name)["available_node_types"].values():
        config = machine["node_config"]
        assert config.get("InstanceType", config.get("machineType")) in said
    assert "they change" in said and re.search(r"in 20\d\d", said)


@pytest.mark.slow
def test_a_job_gets_code_and_nothing_else(tmp_path: Path) -> None:
    """What `ray job submit --working-dir .` would pack, by Ray's own packing."""
    from ray._private.runtime_env.packaging import create_package

    tracked = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("not a git checkout")
    checkout = tmp_path / "checkout"
    strays = ("data/set.bin", "images.npz", "runs/old/config.yaml", ".venv/pyvenv.cfg", ".git/HEAD", "a/b/weights.pt")
    for name in (*tracked.stdout.split("\n")[:-1], *strays):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        if name in strays:
            (checkout / name).write_text("stray")
        else:
            shutil.copy(ROOT / name, checkout / name, follow_symlinks=False)
    create_package(str(checkout), tmp_path / "job.zip", include_gitignore=True)
    with zipfile.ZipFile(tmp_path / "job.zip") as package:
        sent = {member.filename: member.file_size for member in package.infolist()}
    assert {"raysim/launch.py", "raysim/actors/session.py", "docs/studies/fedrad-cifar10.yaml"} <= set(sent)
    assert not set(sent) & set(strays)
    assert sum(sent.values()) < 4e6


@pytest.mark.parametrize("name", FILES)
def test_the_head_does_no_client_work_and_nothing_is_open_to_the_world(name: str) -> None:
    config = load(name)
    (start,) = [line for line in config["head_start_ray_commands"] if "ray start" in line]
    no_cores = config.get("available_node_types", {}).get("head", {}).get("resources") == {"CPU": 0}
    assert no_cores or "--num-cpus=0" in start
    assert " GRPC_ENABLE_FORK_SUPPORT=0 ray start" in start  # else a server that it forks for ray:// may die at once
    assert "--dashboard-host=127.0.0.1" in start and "--autoscaling-config" in start
    for line in [start, *config["worker_start_ray_commands"]]:
        assert "ray start" not in line or "RAY_AUTH_MODE=token" in line
    assert "~/.ray/auth_token" in config["file_mounts"]
    assert "IpPermissions" not in (ROOT / name).read_text(encoding="utf-8")
