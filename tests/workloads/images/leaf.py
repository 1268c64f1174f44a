"""Files in LEAF's layout, made up for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write_leaf(folder: Path, part: str, users: dict[str, tuple[list[Any], list[Any]]]) -> None:
    """Write PART/all_data.json with the samples x and labels y of every user."""
    (folder / part).mkdir(parents=True, exist_ok=True)
    data = {user: {"x": x, "y": y} for user, (x, y) in users.items()}
    content = {"users": [*users], "num_samples": [len(y) for _, y in users.values()], "user_data": data}
    (folder / part / "all_data.json").write_text(json.dumps(content), encoding="utf-8")
