r"""A page of tables as LaTeX for the package booktabs, to be taken into a paper by ``\input``.

Names are text: every sign that LaTeX would read as a command is escaped.
"""

from __future__ import annotations

import itertools
import re

from raysim.comparison.table import Entry, Page, Table
from raysim.storage.folder_files import without_controls

SIGNS = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    "±": r"$\pm$",
    "−": "$-$",
    "≈": r"$\approx$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "×": r"$\times$",
    "→": r"$\to$",
    "∞": r"$\infty$",
    "ε": r"$\varepsilon$",
    "\u202f": r"\,",
    "\u00a0": "~",
    **{
        letter: f"$\\{name}$"
        for letter, name in zip(
            "αβγδηθλμρστ",
            ("alpha", "beta", "gamma", "delta", "eta", "theta", "lambda", "mu", "rho", "sigma", "tau"),
            strict=True,
        )
    },
}
"""Sign → its LaTeX, also for pdflatex, which knows few others beyond Latin letters."""
MARKUP = re.compile(r"\*\*(?P<bold>[^*]+)\*\*|\*(?P<emphasis>[^*]+)\*")


def page(content: Page, label: str) -> str:
    r"""All tables, each as a float with caption and label, ``\ref{tab:LABEL}``, and their origin as comments."""
    lines = [r"% \usepackage{booktabs}", *(f"% {without_controls(line)}" for line in content.origin)]
    for table in content.tables:
        lines += ["", *_float(content, table, label)]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Plain text as LaTeX."""
    return "".join(SIGNS.get(sign, sign) for sign in without_controls(text))


def _float(content: Page, table: Table, label: str) -> list[str]:
    """One table with its caption over it, and its notes under it."""
    common = _common_count(table)
    caption = f"{content.title}{f', {table.name}' if table.name else ''}."
    if common:
        seeds = int(common.strip("()"))
        caption += f" Mean ± standard deviation over {seeds} seeds." if seeds > 1 else " One seed."
    own = "-".join(filter(None, (label, table.name)))
    before = content.before if table is content.tables[0] else ()
    return [
        r"\begin{table}[t]",
        r"\centering",
        f"\\caption{{{escaped(caption)}}}",
        f"\\label{{tab:{re.sub(r'[^A-Za-z0-9-]+', '-', own).strip('-')}}}",
        r"\vspace{1ex}",  # the usual classes set a caption for the place under a table
        *_tabular(table, common),
        *(f"\\par\\smallskip\\footnotesize {_sentence(note)}" for note in (*before, *table.notes)),
        r"\end{table}",
    ]


def _common_count(table: Table) -> str:
    """The number of runs that all cells with a value share; empty where there is none, or where runs failed.

    The caption tells it in their place. What failed stays in the cells.
    """
    counts = {entry.count for _, entries in table.rows for entry in entries if entry.text and entry.count}
    common = counts.pop() if len(counts) == 1 else ""
    return common if re.fullmatch(r"\(\d+\)", common) else ""


def _tabular(table: Table, common: str) -> list[str]:
    """Headings and rows; ``common`` is the number of runs that stands in the caption."""
    lines = [f"\\begin{{tabular}}{{l{'c' * len(table.heads)}}}", r"\toprule"]
    if any(head.group for head in table.heads):
        lines += _groups(table)
    lines += [_line([escaped(table.corner), *(escaped(head.words) for head in table.heads)]), r"\midrule"]
    for name, entries in table.rows:
        lines.append(_line([escaped(name), *(_text(entry, common) for entry in entries)]))
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def _groups(table: Table) -> list[str]:
    """The line over the headings with the names of columns, each over its measures, and the rules under them."""
    texts, rules, place = [""], list[str](), 2
    for name, heads in itertools.groupby(head.group for head in table.heads):
        width = len([*heads])
        texts.append(f"\\multicolumn{{{width}}}{{c}}{{{escaped(name)}}}")
        rules.append(f"\\cmidrule(lr){{{place}-{place + width - 1}}}")
        place += width
    return [_line(texts), " ".join(rules)]


def _text(entry: Entry, common: str) -> str:
    text = escaped(entry.text)
    marked = {"best": f"\\textbf{{{text}}}", "near": f"$\\approx$ {text}", "": text}[entry.mark]
    count = "" if entry.count == common else escaped(entry.count)
    return f"{marked} {count}".strip()


def _sentence(text: str) -> str:
    """A sentence whose emphasis is that of Markdown."""
    found, end = "", 0
    for match in MARKUP.finditer(text):
        command = "textbf" if match["bold"] else "emph"
        found += f"{escaped(text[end : match.start()])}\\{command}{{{escaped(match['bold'] or match['emphasis'])}}}"
        end = match.end()
    return found + escaped(text[end:])


def _line(texts: list[str]) -> str:
    r"""A row; ``{}`` keeps the command in front (``\\``, a rule) from taking a first bracket or star for its option."""
    text = " & ".join(texts)
    return f"{'{}' if text.lstrip().startswith(('[', '*')) else ''}{text} \\\\"
