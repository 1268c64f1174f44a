"""Texts as token ids of one length: words or bytes, a vocabulary of the training texts, and padding at the end."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError
from raysim.workloads.option_types import Ge, Help, Le, PositiveInt
from raysim.workloads.splits.partition import Integers

PADDING, UNKNOWN = 0, 1
"""Ids of what fills up a short text, and of every word that the vocabulary does not have."""
WORD = re.compile(r"\w+|[^\w\s]")
"""A run of letters, digits and underscores, or one other sign."""
BYTES = 256


@dataclass(frozen=True, eq=False)
class Tokens:
    """Texts as token ids."""

    ids: NDArray[np.unsignedinteger]
    """[N, length], ``PADDING`` after a text's last token."""
    vocabulary: int
    """How many different ids there are, padding and unknown words included."""
    note: str
    """Findings, for the user to check."""


@dataclass(frozen=True)
class TokenOptions:
    """How texts become token ids."""

    tokens: Annotated[
        Literal["words", "bytes"],
        Help(
            "tokens of a text: words (in lower case; every other sign is a token of its own) or the bytes of its UTF-8"
        ),
    ] = "words"
    vocabulary: Annotated[
        int,
        Ge(1),
        Le(1_000_000),
        Help("words that have an id of their own, the most frequent of the texts that clients train on"),
    ] = 10_000
    max_tokens: Annotated[PositiveInt, Help("most tokens of a text; what comes after them is cut off")] = 128

    def as_tokens(self, texts: Sequence[str], training: Integers) -> Tokens:
        """Texts as ids, by a vocabulary of the training texts alone.

        Words are ordered by how often they occur in the training texts as they are cut, the most frequent first and
        equal ones by their characters; the first has id 2. A byte has its value plus 1. Rows are as long as the longest
        training text, at most ``max_tokens``.

        Args:
            texts: N texts, none of them blank.
            training: positions of the texts that clients train on.
        """
        cut = [list(islice(self._tokens_of(texts[row]), self.max_tokens + 1)) for row in training.tolist()]
        length = min(self.max_tokens, max(map(len, cut), default=1))
        places: dict[object, int] = {byte: byte + 1 for byte in range(BYTES)}
        size, unknown, told = BYTES + 1, PADDING, "bytes"
        if self.tokens == "words":
            counts = Counter(word for tokens in cut for word in tokens[:length])
            known = sorted(counts, key=lambda word: (-counts[word], word))[: self.vocabulary]
            places = {word: place for place, word in enumerate(known, start=UNKNOWN + 1)}
            size, unknown = len(known) + 2, UNKNOWN
            told = f"words, of which the {len(known)} most frequent of {len(counts)} in the training texts are known"
        longer = sum(len(tokens) > length for tokens in cut)
        ids = np.zeros((len(texts), length), np.uint16 if size <= 2**16 else np.uint32)
        for row, text in enumerate(texts):
            found = [places.get(token, unknown) for token in islice(self._tokens_of(text), length)]
            ids[row, : len(found)] = found
        note = f"tokens are {told}; texts have {length} tokens, to which {longer} of {len(cut)} training texts are cut"
        return Tokens(ids, size, note)

    def _tokens_of(self, text: str) -> Iterator[object]:
        if self.tokens == "bytes":
            return iter(text.encode("utf-8", "surrogatepass"))
        return (match.group() for match in WORD.finditer(text.lower()))


def check_texts(texts: Iterable[object], where: str, item: str = "row", first: int = 1) -> None:
    """Check that every text is one, with a token in it.

    Args:
        texts: in the order of the data.
        where: the data, for errors.
        item: what each of them is called.
        first: number of the first.

    Raises:
        WorkloadError: one is no text, or blank.
    """
    blank = []
    for number, text in enumerate(texts, start=first):
        if not isinstance(text, str):
            raise WorkloadError(
                f"{where}: {item} {number} is {type(text).__name__}, not a text; make all of them texts"
            )
        if not text.strip():
            blank.append(number)
    if blank:
        raise WorkloadError(
            f"{where}: {len(blank)} of the texts are empty, first that of {item} {blank[0]}; leave these out"
        )
