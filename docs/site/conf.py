"""Settings of Sphinx for the site; ``python -m docs.site FOLDER`` builds it."""

from __future__ import annotations

import re
from typing import Any

from raysim.version import __version__

project = "raysim"
author = "The raysim authors"
copyright = author
version = release = __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "sphinx_llm.txt",
]
exclude_patterns = ["files"]
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
html_theme = "pydata_sphinx_theme"
html_title = f"raysim {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options: dict[str, Any] = {
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "collapse_navigation": True,  # of the part that is open; half of the time of a build otherwise
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
llms_txt_description = "Federated learning, simulated in parallel on Ray."
llms_txt_build_parallel = False
llms_txt_suppress_unknown_node_warnings = ["abbreviation", "PassthroughTextElement"]  # keyword-only mark, cards

MARKS = re.compile(r"(``.+?``|:\w+:`[^`]+`|`[^`]+`_?)|([*|]|_(?=\W|$))", re.DOTALL)


ATTRIBUTES: dict[str, list[str]] = {}
"""Name of an attribute → its docstring, which napoleon would cut at a colon into a type and a text."""


def escape(app: object, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Docstrings are plain text with ``code`` and Google's sections: signs of formulas are no markup."""
    text = "\n".join(lines)
    lines[:] = MARKS.sub(lambda mark: mark.group(1) or f"\\{mark.group(2)}", text).split("\n")
    if what in ("attribute", "property"):
        ATTRIBUTES[name] = list(lines)


def whole(app: object, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """The docstring of an attribute as it was before napoleon."""
    lines[:] = ATTRIBUTES.pop(name, lines)


def shorten(app: object, what: str, *told: Any) -> tuple[str | None, str | None]:
    """A signature with the help of every option in it (RunConfig's): the options have pages of their own."""
    *_, signature, returns = told
    return ("(...)" if signature and "Help(" in signature else signature), returns


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", escape, priority=100)
    app.connect("autodoc-process-docstring", whole, priority=900)
    app.connect("autodoc-process-signature", shorten)
