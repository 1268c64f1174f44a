"""Manifests for KubeRay are what its definitions want, and the container's steps name files that are there.

``kuberay_schema.json`` is the part of KubeRay's definitions (ray.io/v1, commit feeaf72fa) that the
manifests use; a key that is not in it is unknown there, or has to be added from a newer one.
"""

from __future__ import annotations

import copy
import json
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "docs" / "deploy"
SCHEMA = json.loads(Path(__file__).with_name("kuberay_schema.json").read_text(encoding="utf-8"))


def load(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("name", ["rayjob.yaml", "raycluster.yaml"])
def test_kuberay_accepts_the_manifest(name: str) -> None:
    manifest = load(name)
    assert manifest["apiVersion"] == "ray.io/v1"
    schema = SCHEMA[manifest["kind"]]
    jsonschema.validate(manifest["spec"], schema)
    wrong = copy.deepcopy(manifest["spec"])
    cluster = wrong.get("rayClusterSpec", wrong)
    cluster["authOptions"]["mode"] = "password"
    with pytest.raises(jsonschema.ValidationError, match="password"):
        jsonschema.validate(wrong, schema)


@pytest.mark.parametrize("name", ["rayjob.yaml", "raycluster.yaml"])
def test_every_connection_needs_the_token_and_nothing_runs_as_root(name: str) -> None:
    spec = load(name)["spec"]
    cluster = spec.get("rayClusterSpec", spec)
    assert cluster["authOptions"] == {"mode": "token"}
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert f"ray=={cluster['rayVersion']}" in pins
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        assert group["template"]["spec"]["securityContext"]["runAsNonRoot"] is True


def test_the_container_copies_what_is_there_and_ends_as_a_user_without_rights() -> None:
    lines = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").splitlines()
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    needed = ("constraints.txt", "pyproject.toml", "README.md", "raysim", "actors", "aggregators", "workloads")
    assert all((ROOT / name).exists() and name not in ignored for name in needed)
    assert {".git", ".venv", "runs", "data"} <= set(ignored)
    assert [line for line in lines if line.startswith("USER ")][-1] == "USER raysim"


def test_the_array_of_a_study_is_a_script_that_bash_reads() -> None:
    subprocess.run(["bash", "-n", str(DEPLOY / "study.sbatch")], check=True)
