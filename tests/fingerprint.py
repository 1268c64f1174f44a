"""What two runs must have in common, bit for bit, to be the same run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file

from raysim.results.result import comparable, load_result
from raysim.storage import checkpoint
from raysim.storage.proof_file import PROOF_NAME, read_proof


def fingerprint(folder: Path) -> dict[str, Any]:
    """All that a run computed, without timings: tables as text, its last checkpoint's contents, and its proof.

    Of the proof all lines but the one with the settings, as some tests compare runs of several.
    """
    result = load_result(folder)
    latest = checkpoint.newest_first(folder / "checkpoints")[0]
    # Each client's newest state: how states lie in files depends on when there was a checkpoint.
    states: dict[str, Any] = {}
    for path in sorted(latest.glob("clients-*.json")):
        arrays = load_file(path.with_suffix(".safetensors"))
        for client, structure in json.loads(path.read_text()):
            name = f"clients[{client}]"
            own = {leaf: array.tobytes() for leaf, array in arrays.items() if re.split(r"(?<=\])", leaf)[0] == name}
            states[name] = (structure, own)
    return {
        "rounds": comparable(result.rounds).to_csv(),
        "clients": comparable(result.clients).to_csv(),
        "server": (latest / "server.safetensors").read_bytes(),
        "states": states,
        "proof": [entry.content for entry in read_proof(folder / PROOF_NAME)[1:]],
    }
