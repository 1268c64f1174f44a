"""Sentences of a page, and those that compare something else than the rows of a study."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
END = re.compile(r"(?<=[.?!])\s+(?=[*`\"(]*[A-Z0-9`])")
SIGN, COST = "the meaning of a sign", "rows of a benchmark"
NO_ROWS: Mapping[str, Mapping[str, str]] = {
    "fedld.md": {
        "A negative aggregation term says": SIGN,
        "BatchNorm behind the last convolutions": "a place",
        "whose accuracy is no higher": "both rows give a constant answer or nearly, as the sentence before says",
        "It said that FedLD lowers": "quotes an earlier version of the page",
        "In every cell behind it": "quotes an earlier version of the page",
    },
    "image-methods.md": {"FedProto sends a four-hundredth": "its rows are being made again"},
    "robustness.md": {"found `norm-bound` to help": "a paper's finding"},
    "wrappers.md": {"is ahead by a quarter only": COST},
    "fedrad.md": {"The curves still rise in the last round": "the rounds of one row, not two rows"},
}
"""Page → words of a comparing sentence → why no difference of its rows belongs to it."""


def sentences(page: Path) -> Iterator[str]:
    """The sentences of a page's prose, without tables, code, headings and comments; each item of a list begins one."""
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if not line.startswith(("|", "#", "<!--", "!["))]
    for block in re.split(r"\n\s*\n|\n(?=- )", "\n".join(lines)):
        words = re.sub(r"\s+", " ", block.removeprefix("- ")).strip()
        yield from (part for part in END.split(words) if part)
