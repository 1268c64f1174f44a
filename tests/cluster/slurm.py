"""docs/slurm.sbatch for real, on two hosts, but for SLURM itself: small stand-ins for srun and scontrol.

    python -m tests.cluster.slurm

Exit codes as those of tests.cluster.ray_up.
"""

from __future__ import annotations

import json
import subprocess
import sys

from raysim.actors.start_retry import TRIES
from tests.cluster.namespaces import HOSTS, SHARED, Namespaces, enter_world
from tests.cluster.ray_up import ROOT, SMALL, say
from tests.processes import within

NODES = (HOSTS["head"], HOSTS["worker-1"])
SCONTROL = f"#!/bin/bash\nprintf '%s\\n' {' '.join(NODES)}\n"
SRUN = f"""#!/bin/bash
# The same command on every node, in this environment; ends with the highest of their exit codes.
while [[ "$1" == --* ]]; do shift; done
export -p > {SHARED}/environment
for node in {" ".join(NODES)}; do
    ssh -q -i {SHARED}/key/user -o StrictHostKeyChecking=no "root@$node" \
        "cd $PWD; . {SHARED}/environment; $(printf '%q ' "$@")" &
done
highest=0
for job in $(jobs -p); do
    wait "$job"; code=$?
    (( code > highest )) && highest=$code
done
exit $highest
"""


def submit(hosts: Namespaces, job: int, arguments: str) -> int:
    """The exit code of a batch script, which SLURM runs on the first node."""
    settings = f"SLURM_JOB_ID={job} SLURM_JOB_NODELIST=x SLURM_JOB_NUM_NODES={len(NODES)} SLURM_CPUS_PER_TASK=1"
    command = f"cd {SHARED}/checkout; PATH={SHARED}/bin:$PATH {settings} bash docs/slurm.sbatch {arguments}"
    say(f"$ sbatch docs/slurm.sbatch {arguments}")
    return subprocess.run(hosts.command("head", f"{command} > {SHARED}/log 2>&1")).returncode


NOT_ALL_CAME = "Timed out waiting for other nodes to start"
"""What Ray says where a node of a busy machine has ended for want of its agent (actors/start_retry.py)."""


def main() -> None:
    enter_world("tests.cluster.slurm")
    with Namespaces() as hosts:
        checkout, binaries = SHARED / "checkout", SHARED / "bin"
        checkout.mkdir()
        binaries.mkdir()
        copied = f"git ls-files -coz --exclude-standard | xargs -0 cp -P --parents -t {checkout}"
        subprocess.run(["bash", "-c", copied], cwd=ROOT, check=True)
        (checkout / ".venv").symlink_to(sys.prefix)
        for name, text in (("srun", SRUN), ("scontrol", SCONTROL)):
            (binaries / name).write_text(text)
            (binaries / name).chmod(0o755)
        for job, more, expected in ((7, "", 0), (8, "--momentum 7", 2)):
            for _ in range(TRIES):
                code = submit(hosts, job, f"{SMALL} {more}")
                if NOT_ALL_CAME not in (SHARED / "log").read_text():
                    break
            assert code == expected, f"exit code {code}, not {expected}:\n{(SHARED / 'log').read_text()}"
            # A node may still be stopping what it had started.
            assert within(60, lambda: not hosts.processes(), pause=1.0), hosts.processes()
        status = json.loads((checkout / "runs" / "slurm-7" / "status.json").read_text())
        # One core a node, so that two actors are on both; which of them was up in time to get work is chance.
        assert status["plan"].startswith("2 client actors"), status["plan"]
        assert {slot["node"] for slot in status["slots"]} <= set(NODES), status["slots"]
    say("the run had both nodes, and the exit codes are the runs'")


if __name__ == "__main__":
    main()
