"""Sentences of a page, and those that compare something else than the rows of a study."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

KEPT_NOT = re.compile(r"20\d\d-\d\d-\d\d[^.]*?not kept as rows|not kept as rows[^.]*?20\d\d-\d\d-\d\d", re.DOTALL)
"""What a section says whose figures have no file in docs/results."""
GUARDED = (
    *("benchmarks.spectral", "benchmarks.method_costs", "benchmarks.agreement"),  # tests/test_result_tables.py
    "benchmarks.attack",  # tests/test_result_tables.py
    "benchmarks.trust_cost",  # tests/test_trust_page.py
    "results/rounds.csv",  # tests/benchmarks/test_rounds.py
    "tests.portable_digests",  # tests/test_portable_digests.py
    *("benchmarks.published", "benchmarks.startup", "benchmarks.scaling calls"),  # tests/test_result_tables.py
    *("benchmarks.client_tasks", "benchmarks.population sizes"),  # tests/test_result_tables.py
    *("benchmarks.step", "benchmarks.client_arithmetic"),  # tests/test_result_tables.py
    "benchmarks.gpu",  # tests/benchmarks/test_gpu.py
    "benchmarks.curvature",  # tests/benchmarks/test_curvature.py
    "benchmarks.sampling_epsilon",  # tests/benchmarks/test_sampling_epsilon.py
    "raysim.contribution runs/heart",  # tests/test_counterfactuals_page.py
    "here, least to largest",  # tests/test_claims.py
    "| Paper",
    *("Arithmetic from costs", "lines that hold Python code", "What may be stale"),  # nothing measured
)
"""Words of sections whose tables a test compares with rows, are a paper's, or hold no measurement."""
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
END = re.compile(r"(?<=[.?!])\s+(?=[*`\"(]*[A-Z0-9`])")
SIGN, COST = "the meaning of a sign", "rows of a benchmark"
NO_ROWS: Mapping[str, Mapping[str, str]] = {
    "fedld.md": {
        "A negative aggregation term says": SIGN,
        "BatchNorm behind the last convolutions": "a place",
        "whose accuracy is no higher": "both rows give a constant answer or nearly, as the sentence before says",
    },
    "power.md": {"is *confirmed* where the interval": "the meaning of a word"},
    "robustness.md": {"found `norm-bound` to help": "a paper's finding"},
    "wrappers.md": {"is ahead by a quarter only": COST},
    "fedrad-cifar10.md": {"The curves still rise in the last round": "the rounds of one row, not two rows"},
}
"""Page → words of a comparing sentence → why no difference of its rows belongs to it."""


def sentences(page: Path) -> Iterator[str]:
    """The sentences of a page's prose, without tables, code, headings and comments; each item of a list begins one."""
    text = re.sub(r"<!-- table.*?<!-- end of table -->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = CODE.sub("", text)
    lines = [line for line in text.splitlines() if not line.startswith(("|", "#", "<!--", "!["))]
    for block in re.split(r"\n\s*\n|\n(?=- )", "\n".join(lines)):
        words = re.sub(r"\s+", " ", block.removeprefix("- ")).strip()
        yield from (part for part in END.split(words) if part)


def unguarded(page: Path) -> Iterator[str]:
    """The sections of a page with a table of figures that no test compares with rows."""
    text = re.sub(r"<!-- table.*?<!-- end of table -->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for section in re.split(r"\n(?=#)", text):
        rows = [line for line in section.splitlines() if line.startswith("|") and not set(line) <= set("|-: ")]
        cells = [cell.strip() for row in rows for cell in row.strip("|").split("|")[1:]]
        figures = [
            cell for cell in cells if re.match(r"[−+-]?\d[\d,.]*([eE][−+-]?\d+)?( ?(s|ms|MiB|GB|%|x)?$| )", cell)
        ]
        if len(figures) >= 4 and not any(word in section for word in GUARDED):
            yield section
