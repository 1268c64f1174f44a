"""Forgeries of a run's folder: each changes a result, and says which mode of ``raysim.verify`` must find it.

A forger may know all of this code: :func:`made_anew` makes the chain, the checkpoints' marks, the summary and the
Parquet files fit to whatever the tables say then. That is found only where rounds are computed again.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

from raysim.columns import is_timing
from raysim.config.config_file import sealed
from raysim.driver.summary import of_rounds, of_settings
from raysim.storage.proof_file import PROOF_NAME, ProofFile, read_proof
from raysim.storage.row_digest import cells_digest
from raysim.storage.run_folder import RunFolder
from raysim.storage.table_marks import RowDigest
from tests.attack.corruption import one_byte

Forgery = Callable[[Path, Path, Random], str]
"""Changes a folder; is given the folder of another run too; says what was done."""
TABLES = ("rounds", "clients")


def read(table: Path) -> list[list[str]]:
    with table.open(newline="") as file:
        return list(csv.reader(file))


def write(table: Path, lines: list[list[str]]) -> None:
    with table.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(lines)


def replaced(path: Path, content: bytes) -> None:
    """A new file: what is shared with another checkpoint stays as it is there."""
    path.unlink()
    path.write_bytes(content)


def made_anew(folder: Path) -> None:
    """Let everything that vouches for the tables fit them."""
    tables = {name: read(folder / f"{name}.csv") for name in TABLES}
    contents = [dict(entry.content) for entry in read_proof(folder / PROOF_NAME)]
    (folder / PROOF_NAME).unlink()
    chain, heads = ProofFile(folder / PROOF_NAME), {}
    for content in contents:
        for name in TABLES:
            if "round" in content:
                columns, *rows = tables[name]
                of_round = [dict(zip(columns, row, strict=True)) for row in rows]
                mine = [row for row in of_round if row["round"] == str(content["round"])]
                content[name] = cells_digest(mine)
        if "model" in content:
            content["model"] = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
        chain.append(content)
        heads[content.get("round")] = chain.mark()
    for path in folder.glob("checkpoints/round-*/manifest.json"):
        manifest = json.loads(path.read_text())
        number, marks = manifest["round"], manifest["facts"]["tables"]
        for name in TABLES:
            lines = (folder / f"{name}.csv").read_bytes().splitlines()
            place = lines[0].split(b",").index(b"round")
            kept = [line for line in lines[1:] if int(line.split(b",")[place]) <= number]
            marks[f"{name}.csv"] = RowDigest(kept).mark(marks[f"{name}.csv"]["columns"])
        marks[PROOF_NAME] = heads[number]
        manifest["facts"]["settings"] |= contents[0]["settings"]
        with_checksum(path, manifest)
    run = RunFolder(folder)
    summary = json.loads((folder / "summary.json").read_text())
    summary |= {**of_settings(contents[0]["settings"], run.rounds(), None), **of_rounds(run.rounds(), [])}
    summary |= {"proof": chain.head, "seconds": summary["seconds"]}
    run.finish(summary)


def with_checksum(path: Path, manifest: dict[str, Any]) -> None:
    """Write a manifest with its own checksum."""
    manifest.pop("sha256", None)
    manifest["sha256"] = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    replaced(path, json.dumps(manifest).encode())


def cell(folder: Path, other: Path, random: Random) -> str:
    """A number in a table is another one."""
    name = random.choice(TABLES)
    lines = read(folder / f"{name}.csv")
    places = [
        (row, column)
        for row in range(1, len(lines))
        for column, title in enumerate(lines[0])
        if not is_timing(title) and title not in ("round", "client", "name") and lines[row][column]
    ]
    row, column = random.choice(places)
    before = lines[row][column]
    lines[row][column] = _another(before)
    write(folder / f"{name}.csv", lines)
    return f"{name}.csv: {lines[0][column]} {before} → {lines[row][column]}"


def _another(text: str) -> str:
    """Another value of the same kind as a cell's."""
    try:
        return str(int(text) + 1)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return f"{text[:-1]}{'0' if text[-1] != '0' else '1'}"
    return repr(number * 1.001 + 1e-9) if math.isfinite(number) else "1.0"


def byte_of_chain(folder: Path, other: Path, random: Random) -> str:
    """A byte of the chain is another one."""
    replaced(folder / PROOF_NAME, one_byte((folder / PROOF_NAME).read_bytes(), random))
    return "a byte of proof.jsonl"


def byte_of_state(folder: Path, other: Path, random: Random) -> str:
    """A byte of a file of a checkpoint is another one."""
    path = random.choice(sorted(folder.glob("checkpoints/round-*/*.safetensors")))
    replaced(path, one_byte(path.read_bytes(), random))
    return f"a byte of {path.relative_to(folder)}"


def byte_of_model(folder: Path, other: Path, random: Random) -> str:
    """A byte of the model is another one."""
    path = folder / "model.safetensors"
    replaced(path, one_byte(path.read_bytes(), random))
    return "a byte of model.safetensors"


def value_of_state(folder: Path, other: Path, random: Random) -> str:
    """A value in the server's state, whose file the manifest then vouches for."""
    path = random.choice(sorted(folder.glob("checkpoints/round-*/server.safetensors")))
    return other_value(folder, path)


def value_of_client(folder: Path, other: Path, random: Random) -> str:
    """The same in a client's state in an earlier checkpoint than the last, which no line of the proof vouches for."""
    found = sorted(folder.glob("checkpoints/round-*/clients-*.safetensors"))
    return other_value(folder, found[0]) if found else value_of_state(folder, other, random)


def other_value(folder: Path, path: Path) -> str:
    """Another value at the end of a checkpoint's file, for which the manifest then vouches."""
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    replaced(path, bytes(content))
    manifest = json.loads((path.parent / "manifest.json").read_text())
    manifest["files"][path.name]["sha256"] = hashlib.sha256(content).hexdigest()
    with_checksum(path.parent / "manifest.json", manifest)
    return f"a value in {path.relative_to(folder)}"


def summary(folder: Path, other: Path, random: Random) -> str:
    """A better result in the summary."""
    found = json.loads((folder / "summary.json").read_text())
    name = random.choice(["accuracy", "best_accuracy", "loss", "rounds", "bytes_up", "proof"])
    found[name] = "0" * 64 if name == "proof" else found[name] + 1
    (folder / "summary.json").write_text(json.dumps(found))
    return f"summary.json: {name}"


def parquet(folder: Path, other: Path, random: Random) -> str:
    """The Parquet table of another run."""
    name = random.choice(TABLES)
    shutil.copyfile(other / f"{name}.parquet", folder / f"{name}.parquet")
    return f"{name}.parquet of another run"


def settings(folder: Path, other: Path, random: Random) -> str:
    """Another learning rate in config.yaml, with its seal."""
    text = (folder / "config.yaml").read_text().rpartition("# SHA-256")[0]
    (folder / "config.yaml").write_text(sealed(text.replace("learning_rate: 0.1", "learning_rate: 0.2")))
    return "learning_rate in config.yaml"


def cut_off(folder: Path, other: Path, random: Random) -> str:
    """The last round was not as hoped."""
    for name in TABLES:
        lines = read(folder / f"{name}.csv")
        place = lines[0].index("round")
        write(folder / f"{name}.csv", [line for line in lines if line[place] != "6"])
    chain = (folder / PROOF_NAME).read_bytes().splitlines(keepends=True)
    (folder / PROOF_NAME).write_bytes(b"".join(chain[:-2]))
    end = json.loads(chain[-1])
    shutil.rmtree(folder / "checkpoints" / "round-000006")
    ProofFile(folder / PROOF_NAME).append({name: value for name, value in end.items() if name != "head"} | {"end": 5})
    made_anew(folder)
    return "the last round"


def row_of_another_run(folder: Path, other: Path, random: Random) -> str:
    """A round's row is one of a run with another seed."""
    mine, theirs, row = read(folder / "rounds.csv"), read(other / "rounds.csv"), random.randrange(1, 7)
    mine[row] = theirs[row]
    write(folder / "rounds.csv", mine)
    return f"row of round {row} of another run"


def dropped_client(folder: Path, other: Path, random: Random) -> str:
    """A client's rows are gone."""
    lines = read(folder / "clients.csv")
    place = lines[0].index("client")
    client = random.choice(lines[1:])[place]
    write(folder / "clients.csv", [line for line in lines if line[place] != client])
    return f"client {client} is gone"


def swapped_seed(folder: Path, other: Path, random: Random) -> str:
    """The run is said to be that of another seed, everywhere."""
    text = (folder / "config.yaml").read_text().rpartition("# SHA-256")[0]
    (folder / "config.yaml").write_text(sealed(text.replace("\nseed: 0\n", "\nseed: 5\n")))
    lines = (folder / PROOF_NAME).read_bytes().splitlines(keepends=True)
    contents = [{name: value for name, value in json.loads(line).items() if name != "head"} for line in lines]
    contents[0]["settings"]["seed"] = 5
    (folder / PROOF_NAME).unlink()
    for content in contents:
        ProofFile(folder / PROOF_NAME).append(content)
    made_anew(folder)
    return "seed 5"


def whole_other_run(folder: Path, other: Path, random: Random) -> str:
    """Tables, chain and checkpoints of another seed's run, under these settings."""
    config = (folder / "config.yaml").read_bytes()
    shutil.rmtree(folder)
    shutil.copytree(other, folder)
    (folder / "config.yaml").write_bytes(config)
    return "all of another run but config.yaml"


def anew(forgery: Forgery) -> Forgery:
    """The same, and everything made to fit."""

    def both(folder: Path, other: Path, random: Random) -> str:
        said = forgery(folder, other, random)
        made_anew(folder)
        return f"{said}, and the chain made anew"

    return both


FOLDER: Mapping[str, Forgery] = {
    forgery.__name__: forgery
    for forgery in (
        *(cell, byte_of_chain, byte_of_state, byte_of_model, value_of_state, summary, parquet, settings, cut_off),
        *(row_of_another_run, dropped_client, whole_other_run),
    )
}
"""Forgeries that a look at the folder finds."""
COMPUTED: Mapping[str, Forgery] = {
    "value_of_client": value_of_client,
    "swapped_seed": swapped_seed,
    **{f"{each.__name__}_anew": anew(each) for each in (cell, row_of_another_run, dropped_client)},
}
"""Forgeries that are found where rounds are computed again."""
