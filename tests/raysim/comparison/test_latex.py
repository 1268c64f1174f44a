"""LaTeX of outcomes that were made by hand; what a paper takes in by input."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from raysim.comparison import building, latex
from raysim.comparison.outcomes import lines_of_heads
from raysim.comparison.table import Entry, Head, Page, Table
from tests.long_tests import long
from tests.raysim.comparison.made import outcomes


@pytest.fixture(scope="module")
def page() -> str:
    found = outcomes()
    content = Page(found.title, tuple(building.tables(found)), origin=tuple(lines_of_heads(found)))
    return latex.page(content, "two_rows")


def test_tables_have_the_rules_of_booktabs_and_grouped_headings(page: str) -> None:
    assert r" & \multicolumn{3}{c}{A} & \multicolumn{2}{c}{B} \\" in page
    assert r"\cmidrule(lr){2-4} \cmidrule(lr){5-6}" in page
    assert r" & accuracy (\%) & accuracy, paper (\%) & loss & accuracy (\%) & loss \\" in page
    assert r"FedAvg & 51.00 $\pm$ 1.00 (3) & 53.1 & 1.5000 $\pm$ 0.2500 (3) & 26.00 $\pm$ 1.00 (3)" in page
    assert r"B\_1 \& co & \textbf{61.00 $\pm$ 1.00} (3)" in page
    assert page.count(r"\begin{table}") == page.count(r"\end{table}") == 3 == page.count(r"\toprule")
    for tabular in re.findall(r"\\begin\{tabular\}\{(l[c]*)\}(.*?)\\end\{tabular\}", page, re.DOTALL):
        rows = [line for line in tabular[1].splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
        assert {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows} == {len(tabular[0])}


def test_titles_notes_and_proofs_are_there(page: str) -> None:
    assert r"\caption{Two µ-rows $|$ 50 \%.}" in page and r"\label{tab:two-rows-differences}" in page
    assert r"\textbf{Bold}: the best mean of a column, of the rows that have all" in page and r"\emph{Holm}" in page
    assert "\n% A / FedAvg: 0: abababab, 1: cdcdcdcd.\n" in page


def one_column(*rows: tuple[str, str]) -> str:
    """The page of a table with a label and a count in each row."""
    made = tuple((label, (Entry("0.50", "", count),)) for label, count in rows)
    return latex.page(Page("T", (Table("", "%", (Head("", "accuracy"),), made, ()),)), "t")


def test_a_number_of_runs_that_all_share_stands_in_the_caption() -> None:
    found = outcomes()
    table = building.means(found)
    entries = (table.rows[0][1][0],)
    own = type(table)("", "%", table.heads[:1], (("FedAvg", entries),), ())
    text = latex.page(Page("T", (own,)), "t")
    assert r"\caption{T. Mean $\pm$ standard deviation over 3 seeds.}" in text and "1.00 (3)" not in text
    single = one_column(("a", "(1)"), ("b", "(1)"))
    assert r"\caption{T. One seed.}" in single and r"a & 0.50 \\" in single


def test_failed_runs_are_told_where_all_cells_have_the_same_number_of_them() -> None:
    text = one_column(("a", "(4, 1 failed)"), ("b", "(4, 1 failed)"))
    assert r"\caption{T.}" in text and text.count("0.50 (4, 1 failed)") == 2


def test_a_label_is_no_option_of_the_line_above_it() -> None:
    r"""LaTeX knows ``\\[5pt]``, ``\\*`` and ``\midrule[1pt]``; other labels are left as they are."""
    text = one_column(("[5pt]", "(3)"), ("*", "(3)"), ("plain", "(3)"))
    assert "\\midrule\n{}[5pt] & 0.50 \\\\\n{}* & 0.50 \\\\\nplain & 0.50" in text


def test_no_sign_of_a_name_is_a_command() -> None:
    assert latex.escaped(r"\input{/etc/passwd} $x$ 5 % #1 a_b^c~d <|>") == (
        r"\textbackslash{}input\{/etc/passwd\} \$x\$ 5 \% \#1 a\_b\textasciicircum{}c\textasciitilde{}d $<$$|$$>$"
    )


@long
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_latex_takes_it(page: str, tmp_path: Path) -> None:
    body = "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\\input{table}\\end{document}"
    (tmp_path / "table.tex").write_text(page, encoding="utf-8")
    (tmp_path / "paper.tex").write_text(body)
    subprocess.run(["pdflatex", "-halt-on-error", "paper.tex"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    assert (tmp_path / "paper.pdf").stat().st_size > 10_000
