from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from raysim.workloads.errors import WorkloadError
from raysim.workloads.text.tokens import TokenOptions, check_texts


def test_words_by_hand() -> None:
    """Word 2 is the most frequent of the training texts; b and c occur once each, in the order of their characters."""
    texts = ["A c, a", "b a", "zebra a a a zebra zebra zebra zebra", "b"]
    found = TokenOptions(max_tokens=4).as_tokens(texts, np.array([0, 1]))
    # Training: a (3), then "," b c, once each: 2, 3, 4, 5. Row 2 alone has zebra: unknown, and is cut to four.
    assert found.ids.tolist() == [[2, 5, 3, 2], [4, 2, 0, 0], [1, 2, 2, 2], [4, 0, 0, 0]]
    assert found.vocabulary == 6 and found.ids.dtype == np.uint16
    assert found.note == (
        "tokens are words, of which the 4 most frequent of 4 in the training texts are known; texts have 4 tokens, to "
        "which 0 of 2 training texts are cut"
    )


def test_the_vocabulary_has_at_most_so_many_words_and_texts_so_many_tokens() -> None:
    found = TokenOptions(vocabulary=2, max_tokens=3).as_tokens(["b b a c c", "c"], np.array([0, 1]))
    # In the texts as they are cut: b 2, a 1, c 1; of the last two a comes first.
    assert found.ids.tolist() == [[2, 2, 3], [1, 0, 0]] and found.vocabulary == 4
    assert "the 2 most frequent of 3" in found.note and "1 of 2 training texts are cut" in found.note


def test_rows_are_as_long_as_the_longest_training_text() -> None:
    found = TokenOptions().as_tokens(["a b", "a b c d e"], np.array([0]))
    assert found.ids.tolist() == [[2, 3], [2, 3]]


def test_bytes_have_their_value_plus_one() -> None:
    found = TokenOptions(tokens="bytes", max_tokens=5).as_tokens(["Aé", "\x00\n"], np.array([0]))
    assert found.ids.tolist() == [[66, 0xC3 + 1, 0xA9 + 1], [1, 11, 0]] and found.vocabulary == 257


def test_texts_of_other_clients_change_nothing(rows: int = 200) -> None:
    """Training texts alone decide: others may say what they like."""
    words = np.random.default_rng(0).integers(0, 50, (rows, 6))
    texts = [" ".join(f"w{word}" for word in row) for row in words]
    training = np.arange(0, rows, 2)
    changed = [text if row % 2 == 0 else "secret words " * 3 for row, text in enumerate(texts)]
    one, two = (TokenOptions().as_tokens(given, training) for given in (texts, changed))
    assert one.vocabulary == two.vocabulary
    assert (one.ids[training] == two.ids[training]).all()


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a", " \n", "b", ""], "x.csv: 2 of the texts are empty, first that of row 2; leave these out"),
        (["a", 3], "x.csv: row 2 is int, not a text; make all of them texts"),
    ],
)
def test_texts_that_are_none(texts: list[Any], message: str) -> None:
    with pytest.raises(WorkloadError) as error:
        check_texts(texts, "x.csv")
    assert str(error.value) == message
