"""Text cut into windows of characters, each with the character that follows it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.arrays.labeled_arrays import Part
from raysim.workloads.errors import WorkloadError
from raysim.workloads.files.leaf_files import read_leaf
from raysim.workloads.files.regular_files import read_regular
from raysim.workloads.splits.time_order import hold_out_ends

LEAF_CHARACTERS = "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"
"""The 80 characters of LEAF's Shakespeare, in its order."""
MAX_CHARACTERS = 10_000
SPEECH = re.compile(r"(?:\A|(?<=\n\n))([^\W\d_][^\n:]{0,60}):\n")
"""The line before a speech, as "First Citizen:", at the start of a paragraph."""


def read_text(path: Path) -> str:
    """A file's text in UTF-8; WorkloadError if it has none."""
    if not path.is_file():
        raise WorkloadError(f"no file {path}; give the path of a text file in UTF-8 or of a folder in LEAF's layout")
    try:
        text = read_regular(path).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise WorkloadError(f"{path} cannot be read as text in UTF-8 ({error}); convert it") from error
    if not text.strip():
        raise WorkloadError(f"{path} has no text in it")
    return text


def speeches(text: str, origin: str) -> dict[str, str]:
    """The text of every speaker, speech after speech; a speech follows a line that ends in a colon, "NAME:"."""
    said: dict[str, list[str]] = {}
    for name, speech in each_speech(text):
        said.setdefault(name, []).append(speech + "\n")
    if not said:
        raise WorkloadError(
            f"{origin} has no speeches, which follow a line NAME:; set by to line (a client a line) or whole"
        )
    return {name: "".join(parts) for name, parts in said.items()}


def each_speech(text: str) -> Iterator[tuple[str, str]]:
    """(speaker, speech) of every speech, in the order of the text."""
    found = [match for match in SPEECH.finditer(text) if not match.group(1)[0].islower()]
    for number, match in enumerate(found):
        end = found[number + 1].start() if number + 1 < len(found) else len(text)
        yield match.group(1), text[match.end() : end].strip("\n")


def characters_of(texts: Iterable[str]) -> str:
    """The vocabulary: LEAF's characters if these are enough, else all that occur, sorted."""
    found = set().union(*texts)
    return LEAF_CHARACTERS if found <= set(LEAF_CHARACTERS) else "".join(sorted(found))


def encode(text: str, characters: str, origin: str) -> NDArray[np.unsignedinteger]:
    """The place of each character in the vocabulary, as uint8 if these are enough, else uint16."""
    if len(characters) > MAX_CHARACTERS:
        raise WorkloadError(
            f"{origin} has {len(characters)} different characters, and at most {MAX_CHARACTERS} are allowed"
        )
    codes, known = (
        np.frombuffer(part.encode("utf-32-le", "surrogatepass"), dtype=np.uint32) for part in (text, characters)
    )
    order = np.argsort(known)
    return order[np.searchsorted(known[order], codes)].astype(np.uint8 if len(characters) <= 256 else np.uint16)


def cut_windows(  # noqa: PLR0913 - how windows lie in a text, and what refusals name
    texts: dict[str, str], characters: str, length: int, stride: int, share: float, least: int, origin: str
) -> tuple[Part, Part, int]:
    """(training, test, number of texts left out): windows of each text, of which the last are for the test.

    No character of a training window, nor the one to predict, is in a test window of the same text.

    Args:
        texts: what each client has.
        characters: the vocabulary.
        length: characters of a window.
        stride: characters between the starts of two windows.
        share: of a text's windows that is for the test.
        least: a text with fewer windows is left out.
        origin: the file, for errors.
    """
    windows, labels, groups = [], [], []
    names: list[str] = []
    for name, text in texts.items():
        count = max(0, (len(text) - 1 - length) // stride + 1)
        if count < max(1, least):
            continue
        codes = encode(text, characters, origin)
        starts = np.arange(count) * stride
        windows.append(codes[starts[:, None] + np.arange(length)])
        labels.append(codes[starts + length].astype(np.int64))
        groups.append(np.full(count, len(names)))
        names.append(name)
    if not names:
        raise WorkloadError(
            f"{origin}: no client has {max(1, least)} windows of {length} characters; lower length, stride or "
            "least_windows"
        )
    group = np.concatenate(groups)
    trained, tested = hold_out_ends(group, share, gap=overlapping(length, stride))
    whole = Part(np.concatenate(windows), np.concatenate(labels), np.array(names)[group])
    return whole.at(trained), whole.at(tested), len(texts) - len(names)


def overlapping(length: int, stride: int) -> int:
    """The number of windows whose characters, or the one after them, are in the window that follows them."""
    return length // stride


def leaf_windows(folder: Path) -> tuple[Part, Part, str]:
    """(training, test, vocabulary) of LEAF's JSON files: x are texts of one length, y what follows each of them."""
    found = {part: [*read_leaf(folder, part)] for part in ("train", "test")}
    length = 0
    for part, users in found.items():
        for user, x, y in users:
            for inputs, label in zip(x, y, strict=True):
                length = length or (len(inputs) if isinstance(inputs, str) else 0)
                fits = isinstance(inputs, str) and isinstance(label, str) and len(inputs) == length and len(label) >= 1
                if not length or not fits:
                    raise WorkloadError(
                        f"{folder / part}: user {user} has a sample that is not {length or 'some'} characters and the "
                        "character after them; make the files again"
                    )
    if not length or not any(x for _, x, _ in found["train"]):
        raise WorkloadError(f"{folder / 'train'} holds no samples; make the files again")
    texts = [text for users in found.values() for _, x, y in users for text in (*x, *y)]
    characters = characters_of(texts)
    return _leaf_part(found["train"], characters, length), _leaf_part(found["test"], characters, length), characters


def _leaf_part(users: Sequence[tuple[str, list[str], list[str]]], characters: str, length: int) -> Part:
    inputs = encode("".join("".join(x) for _, x, _ in users), characters, "LEAF's data").reshape(-1, length)
    labels = encode("".join(label[0] for _, _, y in users for label in y), characters, "LEAF's data").astype(np.int64)
    return Part(inputs, labels, np.repeat(np.array([user for user, _, _ in users]), [len(x) for _, x, _ in users]))
