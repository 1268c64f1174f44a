"""LEAF's JSON files (Caldas et al. 2018, github.com/TalwalkarLab/leaf): samples by users, in train/ and test/."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from raysim.workloads.errors import WorkloadError
from raysim.workloads.files.regular_files import read_regular
from raysim.workloads.naming import shown, unfit


def is_leaf(folder: Path) -> bool:
    """Whether a folder has LEAF's layout."""
    return any((folder / "train").glob("*.json"))


def read_leaf(folder: Path, part: str) -> Iterator[tuple[str, list[Any], list[Any]]]:
    """(user, x, y) of every user of a part, train or test, in the order of the files and of their lists.

    WorkloadError if there are no files, or for the first that is not LEAF's.
    """
    files = sorted((folder / part).glob("*.json"))
    if not files:
        raise WorkloadError(
            f"no .json files in {folder / part}; LEAF's layout is FOLDER/train/*.json and FOLDER/test/*.json, as its "
            "preprocess.sh writes them"
        )
    for path in files:
        try:
            content = json.loads(read_regular(path).decode())
            users, data = content["users"], content["user_data"]
            samples = [(str(user), data[user]["x"], data[user]["y"]) for user in users]
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise WorkloadError(
                f"{path} is no file of LEAF ({reason}); it must hold users and user_data, with x and y of each user. "
                "Make it again"
            ) from error
        for user, x, y in samples:
            if reason := unfit(user):
                raise WorkloadError(f"{path}: user {shown(user)} {reason}; rename it and make the file again")
            if not (isinstance(x, list) and isinstance(y, list) and len(x) == len(y)):
                raise WorkloadError(f"{path}: x and y of user {user} are no lists of one length; make the file again")
            yield user, x, y
