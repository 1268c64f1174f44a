"""Tables and scripts of pages."""

from __future__ import annotations

import base64
import hashlib
import re

from markupsafe import Markup

from raysim.report.html import Number, Picture, Table, render

PICTURE = Picture("curves", Markup("<svg></svg>"), Markup("<svg></svg>"))


def page(*tables: Table, sorts: bool) -> str:
    content: dict[str, object] = {"title": "t", "notes": [], "curves": PICTURE, "costs": None, "differences": None}
    content |= {"tables": [], "marks": []}
    return render("compare.html", content | {"results": tables[0], "runs": tables[-1]}, sorts=sorts).decode()


def test_the_policy_names_the_only_script_by_its_digest() -> None:
    table = Table(["run"], [["a"]])
    text = page(table, sorts=True)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text
    plain = page(table, sorts=False)
    assert "<script" not in plain and "script-src" not in plain


def test_a_table_says_where_it_is_wider_than_its_page() -> None:
    narrow, middle, broad = (Table(["heading"] * columns, [["1234"] * columns]) for columns in (2, 6, 20))
    assert [table.reach for table in (narrow, middle, broad)] == ["", "phone", "desk"]
    assert page(narrow, sorts=False).count("scrolls sideways") == 0
    assert page(broad, sorts=False).count('class="hint desk"') == 2


def test_a_number_in_changing_units_has_the_value_by_which_to_sort() -> None:
    text = page(Table(["bytes"], [[Number("8.19 kB", 8190.0)]]), sorts=True)
    assert re.search(r'<td data-value="8190\.0">\s*8\.19 kB', text)
