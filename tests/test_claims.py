"""Sentences of the pages with results claim no more than the rows carry, as far as that can be told mechanically.

A sentence that compares rows quotes a difference as a study writes it, ``+1.17 [−0.40, +2.74]``, into the page's own
table, which tests/test_result_tables.py makes of docs/results/ again. Where every quoted interval holds zero, or there
is one seed, the sentence says that the rows cannot tell. A comparing sentence without a difference stands in
``NO_ROWS`` with its reason.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from raysim.studies.tables import END
from tests.claims import KEPT_NOT, NO_ROWS, sentences, unguarded
from tests.test_result_tables import DOCS, MARKER, STUDIES, read

NUMBER = r"[+−]?\d+(?:\.\d+)?(?:e[+−]?\d+)?"
QUOTED = re.compile(rf"(?:^|(?<=[\s(])){NUMBER}\s+\[{NUMBER},\s+{NUMBER}\]")
COMPARING = re.compile(
    r"\b(best|better|worse|beats?|leads?|(?<!run )ahead|behind|outperforms?|wins?|"
    r"(above|below) (FedAvg|Local|the mean)|higher|lowers|lowered|helps?|hurts?|harms?|differs? least|no gain|"
    r"smaller gain|quickest|slowest|stands? out|confirm\w*|as good as|costs? (nothing|no accuracy))\b"
)
NAMES = re.compile(r"best (mean )?validation( round)?|best round|best of the run|`[^`]*`|--help")
"""Words of headings and of code, which compare nothing."""
WRITTEN = re.compile(rf"{MARKER.pattern}(?P<tables>.*?){re.escape(END)}", re.DOTALL)
UNTOLD = ("cannot be told", "cannot tell", "not told")
PAGES = sorted({study.table for path in STUDIES if (study := read(path)).compare})


@cache
def quotable(page: Path) -> dict[str, bool]:
    """Every difference in a table that a study has written on the page → whether its interval excludes zero."""
    found: dict[str, bool] = {}
    for made in WRITTEN.finditer(page.read_text(encoding="utf-8")):
        for text in QUOTED.findall("\n".join(line for line in made["tables"].splitlines() if line.startswith("|"))):
            low, high = (float(n.replace("−", "-")) for n in re.findall(NUMBER, text)[1:])
            found[text] = low > 0 or high < 0
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_quoted_difference_is_what_the_rows_give(page: Path) -> None:
    for sentence in sentences(page):
        quoted = [re.sub(r"\s+", " ", text) for text in QUOTED.findall(sentence)]
        assert [text for text in quoted if text not in quotable(page)] == [], sentence
        if quoted and not any(quotable(page)[text] for text in quoted):
            assert any(word in sentence for word in UNTOLD), f"its intervals hold zero: {sentence}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_sentence_that_compares_quotes_a_difference_or_says_why_not(page: Path) -> None:
    allowed = NO_ROWS.get(page.name, {})
    comparing = [text for text in sentences(page) if COMPARING.search(NAMES.sub("", text)) and not QUOTED.search(text)]
    left = [text for text in comparing if not any(word in text for word in UNTOLD)]
    assert [text for text in left if not any(start in text for start in allowed)] == []
    assert [start for start in allowed if not any(start in text for text in left)] == [], "no such sentence any more"


def test_both_terms_of_fedavg_grow_from_even_parts_to_skewed_ones_in_six_of_six_seeds() -> None:
    """FedLD's Fig. 2, as docs/fedld-retina.md counts it over its own rows and those of docs/fedld.md."""
    for term in ("distribution_shift_term", "aggregation_term"):
        splits = [
            [
                abs(pd.read_csv(DOCS / "results" / study / f"split-{split}" / f"fedavg-seed{seed}.csv")[term].iloc[-1])
                for split in (1, 2, 3)
            ]
            for study in ("fedld-retina", "fedld-medical")
            for seed in range(3)
        ]
        assert all(even < skewed and even < more_skewed for even, skewed, more_skewed in splits) and len(splits) == 6
        assert sum(skewed < more_skewed for _, skewed, more_skewed in splits) == 3


def test_the_summary_of_fedrads_gains_is_that_of_their_places() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in sorted(DOCS.glob("fedrad*.md")))
    tables = {made[1].strip(): made["tables"] for made in WRITTEN.finditer(pages)}
    lines = re.findall(r"^\| (\S+ − FedAvg), .* \| (fedrad-.*) \| (.*) \| (.*) \| (.*) \|$", pages, re.MULTILINE)
    counted = {"FedRAD − FedAvg": 0}
    for difference, studies, printed, here, said in lines:
        place = rf"^\| {difference} \| .* \| (\S+) \| (\S+) \[.*?\| (confirmed|refuted|not told)[^|]*\|$"
        found = [row for study in studies.split(", ") for row in re.findall(place, tables[study], re.MULTILINE)]
        of_paper, ours = ([*dict.fromkeys(sorted((row[i] for row in found), key=number))] for i in (0, 1))
        assert printed == (" to ".join((of_paper[0], of_paper[-1])) if len(of_paper) > 1 else of_paper[0])
        assert here == f"{ours[0]} to {ours[-1]} in {len(found)} places"
        verdicts = {word: sum(row[2] == word for row in found) for word in ("refuted", "confirmed", "not told")}
        assert said == ", ".join(f"{count} {word}" for word, count in verdicts.items() if count)
        counted[difference] = counted.get(difference, 0) + len(found)
    assert counted["FedRAD − FedAvg"] == len(re.findall(r"^\| FedRAD − FedAvg \|.*\| refuted.*$", pages, re.MULTILINE))


def number(text: str) -> float:
    """A figure of a page, which may have a minus sign of its own."""
    return float(text.replace("−", "-"))


def test_pages_without_rows_are_not_excused() -> None:
    assert set(NO_ROWS) <= {page.name for page in PAGES}
    assert all(reason for reasons in NO_ROWS.values() for reason in reasons.values())


def test_pages_with_several_rows_and_seeds_ask_for_differences() -> None:
    studies = [read(path) for path in STUDIES]
    several = {study.table for study in studies if len(study.rows) > 1 and max(map(len, study.seeds.values())) > 1}
    assert sorted(page.name for page in several - set(PAGES)) == []


@pytest.mark.parametrize(
    "page", [*sorted(DOCS.glob("*.md")), DOCS.parent / "benchmarks" / "README.md"], ids=lambda p: p.stem
)
def test_a_table_of_figures_has_rows_or_says_that_none_are_kept(page: Path) -> None:
    """Figures are made from rows, are a paper's, or stand in a section that names the date of its measurement."""
    for section in unguarded(page):
        assert KEPT_NOT.search(section), f"{page.name}: no rows behind: {section[:80]!r}"


def test_figures_of_benchmarks_in_sentences_say_that_no_rows_are_kept() -> None:
    for page, command in (
        ("time.md", "benchmarks.busy"),
        ("time.md", "benchmarks.vsim"),
        ("wrappers.md", "benchmarks.robust_aggregation"),
    ):
        text = (DOCS / page).read_text(encoding="utf-8")
        around = text[text.index(command) :].split("\n\n")[0]
        assert KEPT_NOT.search(around), command
