"""A figure as a part of a page: an SVG whose text is text and whose colors are those of the page, light or dark."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from raysim.report.canvas import DARK, GROUND, INK, LIGHT, MUTED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_VARIABLES = {INK: "ink", MUTED: "muted", GROUND: "card"} | {color: f"c{place}" for place, color in enumerate(LIGHT)}
"""Color of a figure → the name of the page's own for it."""
_COLOR = re.compile("|".join(_VARIABLES))
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Signs that XML has not."""
_FONTS = re.compile("font-family: [^;]*;? ?")
"""Those of the figure; the page has its own."""
_IMPLIED = {"stroke-linejoin": "round", "stroke-linecap": "butt"}


def series_colors(dark: bool) -> str:
    """The colors of series as the page's style has them."""
    return ";".join(f"--c{place}:{color}" for place, color in enumerate(DARK if dark else LIGHT))


def page_svg(figure: Figure) -> bytes:
    """The figure as an element for a page, without anything that reaches beyond itself (styles, names, links out)."""
    import matplotlib

    buffer = io.StringIO()
    size = f"{figure.get_figwidth():g} {figure.get_figheight():g}"  # two forms on one page name no part alike
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": size}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    root = ElementTree.fromstring(_FORBIDDEN.sub("?", buffer.getvalue()))
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"):
                parent.remove(child)
    _use_own_names(root)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.attrib |= _IMPLIED | {"aria-hidden": "true"}
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    return ElementTree.tostring(root, encoding="unicode").encode()


def _use_own_names(root: ElementTree.Element) -> None:
    """Write colors as the page's, and drop the names that nothing refers to."""
    attributes = [value for element in root.iter() for value in element.attrib.values()]
    used = {name for value in attributes for name in re.findall(r"(?:url\(#|^#)([^)]+)", value)}
    for element in root.iter():
        if element.get("id") not in used:
            element.attrib.pop("id", None)
        for name in ("style", "fill", "stroke"):
            if name in element.attrib:
                value = _FONTS.sub("", element.attrib[name])
                element.set(name, _COLOR.sub(lambda found: f"var(--{_VARIABLES[found[0]]})", value))
