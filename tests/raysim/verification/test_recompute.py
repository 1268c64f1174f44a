"""What has to be computed for some rounds, and distances in units in the last place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import raysim
from raysim.launch import main as launch
from raysim.replay.__main__ import main as replay
from raysim.running.simulation import run
from raysim.storage.proof_file import PROOF_NAME, read_proof
from raysim.verification.differences import units
from raysim.verification.recompute import spans
from raysim.verify import main as verify
from tests.attack.folders import small


@pytest.mark.parametrize(
    ("wanted", "kept", "found"),
    [
        ([3], [], [(0, 3)]),
        ([3, 17], [5, 15, 20], [(0, 3), (15, 17)]),
        ([5, 6, 16], [5], [(0, 5), (5, 16)]),
        ([20], [15, 20], [(15, 20)]),
    ],
)
def test_spans_begin_at_the_nearest_checkpoint(
    wanted: list[int], kept: list[int], found: list[tuple[int, int]]
) -> None:
    assert spans(wanted, kept) == found


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
def test_units_count_the_floats_between_two(kind: Any) -> None:
    one = np.array([1.0, -1.0, 0.0], kind)
    after = np.nextafter(one, np.array([2.0, -2.0, 1.0], kind))
    assert units(one, one).tolist() == [0, 0, 0] and units(one, after).tolist() == [1, 1, 1]
    below = np.nextafter(np.array([0.0], kind), np.array([-1.0], kind))
    assert units(below, np.array([0.0], kind)) == [1] and units(below, after[2:]) == [2]


def test_an_option_beside_which_the_run_decides_is_no_slip(tmp_path: Path) -> None:
    """``last_batch auto`` is keep with this model, with which a user may not set ``merge_below``."""
    config = small(tmp_path / "run", method__name="fedavg", training__merge_below=0.1, engine__keep_checkpoints=3)
    folder = run(config).folder
    first = read_proof(folder / PROOF_NAME)[0].content["settings"]
    assert (first["training.last_batch"], first["training.merge_below"]) == ("keep", 0.1)
    assert "last_batch: auto\n" in (folder / "config.yaml").read_text()
    for words in (["--all"], ["--rounds", "3,6"]):
        assert verify([str(folder), *words]) == 0
    other = tmp_path / "replay"
    assert replay([str(folder), "--from", "4", "--without", "1", "--output", str(other)]) == 0
    assert "last_batch: keep\n" in (other / "config.yaml").read_text()
    assert verify([str(other), "--all"]) == 0
    raysim.load_model(other)
    assert launch(["--resume", str(other), "--rounds", "7"]) == 0
    assert len(raysim.run(resume=other, rounds=8).rounds) == 8
    longer = small(
        tmp_path / "run",
        method__name="fedavg",
        training__merge_below=0.1,
        engine__keep_checkpoints=3,
        schedule__rounds=7,
    )
    assert len(run(longer, resume=folder).rounds) == 7


def test_another_split_in_the_table_of_clients_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = run(small(tmp_path / "run", schedule__rounds=2)).folder
    table = folder / "partition.csv"
    lines = table.read_text().splitlines()
    place = lines[0].split(",").index("samples")
    cells = lines[2].split(",")
    own, cells[place] = cells[place], "99999"
    table.write_text("\n".join([*lines[:2], ",".join(cells), *lines[3:]]) + "\n")
    assert verify([str(folder)]) == 0  # no chain has it, the data has
    assert verify([str(folder), "--all"]) == 1
    assert f"partition.csv (samples): line 3: '99999', and {own!r} computed again" in capsys.readouterr().out
    for fewer in (lines[:-1], lines[:1], []):
        table.write_text("".join(f"{line}\n" for line in fewer))
        assert verify([str(folder), "--all"]) == 1
        said = f"partition.csv: it has {'2 rows' if len(fewer) > 1 else '0 rows'}, and 3 computed again"
        assert said in capsys.readouterr().out
    table.write_text("\n".join(["a", "0", "1", "2"]) + "\n")  # no column of these
    assert verify([str(folder), "--all"]) == 1
    others = [",".join(line.split(",")[1:]) for line in lines]  # a version without the first column
    table.write_text("\n".join(others) + ",more\n")
    capsys.readouterr()
    assert verify([str(folder), "--all"]) == 0
    said = capsys.readouterr().out
    assert "partition.csv: columns that only one of the two has are not compared (client)" in said
    table.write_bytes(b"\xff")
    assert verify([str(folder), "--all"]) == 1
    assert "partition.csv: it cannot be read: it is not UTF-8 text (byte 0)" in capsys.readouterr().out
    table.unlink()
    assert verify([str(folder), "--all"]) == 0
