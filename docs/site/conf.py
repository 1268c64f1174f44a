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


def escape(app: object, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Docstrings are plain text with ``code`` and Google's sections: signs of formulas are no markup."""
    text = "\n".join(lines)
    lines[:] = MARKS.sub(lambda mark: mark.group(1) or f"\\{mark.group(2)}", text).split("\n")


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", escape, priority=100)
