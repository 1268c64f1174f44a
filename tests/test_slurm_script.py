"""docs/slurm.sbatch: where its run goes, with stand-ins for SLURM and Python."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "docs" / "slurm.sbatch"
STAND_INS = {
    "python": "#!/bin/bash\necho token\n",
    "scontrol": "#!/bin/bash\necho node-1\n",
    "srun": '#!/bin/bash\nprintf "%s\\n" "$@" > sent\n[ -z "$RUN_ENDS" ] || echo "$RUN_ENDS" > raysim-7.code\nexit 1\n',
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name, text in STAND_INS.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return tmp_path


def submitted(place: Path, *words: str, ends: str = "") -> tuple[int, list[str]]:
    """Exit code of the job, and the words that its run gets."""
    job = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "x", "SLURM_JOB_NUM_NODES": "1", "SLURM_CPUS_PER_TASK": "1"}
    environment = {**job, "PATH": f"{place}:{os.environ['PATH']}", "RUN_ENDS": ends}
    ended = subprocess.run(["bash", SCRIPT, *words], cwd=place, env=environment, check=False, capture_output=True)
    sent = (place / "sent").read_text().split()
    return ended.returncode, sent[sent.index("auto") + 1 :]


def test_a_job_has_a_folder_of_its_own_and_goes_on_in_it(place: Path) -> None:
    assert submitted(place, "--method", "fedrad", ends="0") == (0, ["--output", "runs/slurm-7", "--method", "fedrad"])
    (place / "runs" / "slurm-7").mkdir(parents=True)
    (place / "runs" / "slurm-7" / "config.yaml").touch()
    again = ["--resume", "runs/slurm-7", "--method", "fedrad"]
    assert submitted(place, "--method", "fedrad", ends="3") == (3, again)


@pytest.mark.parametrize("words", [["--resume", "runs/slurm-3"], ["--resume=runs/slurm-3"], ["--output", "mine"]])
def test_a_folder_that_is_named_is_that_of_the_run(place: Path, words: list[str]) -> None:
    """A run that was resumed had --output too, and was refused after Ray had started on all nodes."""
    assert submitted(place, *words, ends="0") == (0, words)


def test_the_exit_code_of_an_earlier_start_is_not_taken_for_this_one(place: Path) -> None:
    (place / "raysim-7.code").write_text("0\n")
    assert submitted(place, "--method", "fedrad")[0] == 1
