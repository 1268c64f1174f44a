"""Pieces of a self-contained HTML page: escaped text, tables, pictures as data; no script, nothing from outside."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from html import escape

STYLE = """
:root{color-scheme:light dark;--ink:#1f2328;--muted:#5d6672;--ground:#f5f6f8;--card:#fff;--line:#dde1e6;--bar:#0072b2}
@media(prefers-color-scheme:dark){:root{--ink:#e6e6e6;--muted:#9aa4b0;--ground:#121417;--card:#1b1e23;--line:#31363e;
--bar:#56b4e9}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:62rem;margin:auto;padding:1rem}
h1{font-size:1.5rem;line-height:1.25;margin:.5rem 0;overflow-wrap:anywhere}h2{font-size:1.1rem;margin:0 0 .6rem}
section{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:1rem;margin:1rem 0}
.note{color:var(--muted);margin:.3rem 0;overflow-wrap:anywhere}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(9rem,1fr));gap:.6rem;margin:1rem 0}
.tile{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:.5rem .8rem}
.tile span{display:block;color:var(--muted);font-size:.82rem}
.tile b{font-size:1.25rem;font-variant-numeric:tabular-nums}
img{display:block;max-width:min(100%,44rem);height:auto;margin:auto;border-radius:.3rem}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.86rem;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .6rem;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line)}
th{color:var(--muted);font-weight:600}.text{text-align:left}
.bar{display:inline-block;width:6rem;height:.6rem;background:var(--line);border-radius:.3rem;overflow:hidden}
.bar i{display:block;height:100%;background:var(--bar)}
pre{overflow-x:auto;font-size:.82rem;margin:0}summary{cursor:pointer;font-weight:600}details pre{margin-top:.6rem}
a{color:inherit}
"""


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def table(headings: Sequence[str], rows: Iterable[Iterable[str]], left: Iterable[int] = ()) -> str:
    """A table of texts; ``left`` are the columns that hold words, the others are flush right."""
    words = set(left)
    align = [' class="text"' if place in words else "" for place in range(len(headings))]

    def line(tag: str, values: Iterable[str]) -> str:
        cells = (value if isinstance(value, Html) else escape(value) for value in values)
        joined = (f"<{tag}{place}>{cell}</{tag}>" for place, cell in zip(align, cells, strict=True))
        return f"<tr>{''.join(joined)}</tr>"

    body = "".join(line("td", row) for row in rows)
    return f'<div class="scroll"><table><thead>{line("th", headings)}</thead><tbody>{body}</tbody></table></div>'


def tiles(figures: Iterable[tuple[str, str]]) -> str:
    """Names and values side by side."""
    made = (f'<div class="tile"><span>{escape(name)}</span><b>{escape(text)}</b></div>' for name, text in figures)
    return f'<div class="tiles">{"".join(made)}</div>'


def heading(text: str) -> str:
    return f"<h1>{escape(text)}</h1>"


def note(text: str) -> str:
    """A line of small print; nothing for no text."""
    return f'<p class="note">{escape(text)}</p>' if text else ""


def link(address: str, text: str) -> Html:
    return Html(f'<a href="{escape(address)}">{escape(text)}</a>')


def section(heading: str, content: str) -> str:
    return f"<section><h2>{escape(heading)}</h2>{content}</section>"


def folded(heading: str, content: str) -> str:
    """A section that a click opens."""
    return f"<section><details><summary>{escape(heading)}</summary>{content}</details></section>"


def code(text: str) -> str:
    """A file's text as it is."""
    return f"<pre>{escape(text)}</pre>"


def picture(png: bytes, description: str) -> str:
    return f'<img src="{_data(png)}" alt="{escape(description)}">'


def two_grounds(draw: Callable[[bool], bytes], description: str) -> str:
    """A picture for light and one for dark; the browser takes the one that fits."""
    dark = f'<source media="(prefers-color-scheme: dark)" srcset="{_data(draw(True))}">'
    return f"<picture>{dark}{picture(draw(False), description)}</picture>"


def document(title: str, parts: Iterable[str]) -> bytes:
    """The whole page, as bytes."""
    # The policy makes a browser refuse whatever a slip in escaping might still let in.
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style>"
    )
    body = "\n".join(parts)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body><main>{body}</main></body></html>\n'.encode()


def _data(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"
