"""Places of a page's panels, from the lengths of the labels beside them.

Matplotlib's constrained layout draws a figure twice before it draws it, to measure its texts; that is more than half
of the time of a picture. The texts of a page are in the reader's font, for which its measures would be no truer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS = 72.0
"""Points of an inch."""
SIGN, LINE = 0.62, 1.3
"""Width of a sign of a tick's label, and height of a line, in sizes of the font."""
PAD = 4.0
"""Points between ticks, their labels and the label of an axis."""
EDGE = 8.0
"""Points that are left at an edge of the picture without labels; labels of ticks reach a little beyond their axis."""


def place(figure: Figure, panels: Sequence[Any], *, above: float = 0.0, shared: bool = False) -> None:
    """Place panels one below the other so that their labels fit; called when all is drawn into them.

    A figure that has a layout of its own (matplotlib's constrained one, say) is left as it is.

    Args:
        panels: from above; the lowest has an x axis with a label.
        above: size in points of the font of a second x axis above the highest panel, 0: there is none.
        shared: whether the lowest panel's x axis is that of all.
    """
    import matplotlib

    if figure.get_layout_engine() is not None:
        return
    size = float(matplotlib.rcParams["font.size"])
    below = 2 * (LINE * size + PAD) + PAD
    top = EDGE + (2 * (LINE * above + PAD) if above else 0.0)
    gap = EDGE + PAD if shared else below + EDGE
    width, height = POINTS * figure.get_figwidth(), POINTS * figure.get_figheight()
    each = (height - top - below - (len(panels) - 1) * gap) / len(panels)
    figure.subplots_adjust(top=1 - top / height, bottom=below / height, hspace=gap / each)  # ticks depend on it
    left = max(_longest(panel) for panel in panels) * SIGN * size + LINE * size + 3 * PAD
    figure.subplots_adjust(left=left / width, right=1 - (EDGE + PAD) / width)


def _longest(panel: Any) -> int:
    """Number of signs of the longest label of the y axis."""
    low, high = sorted(panel.get_ylim())
    axis = panel.yaxis
    places = [place for place in axis.get_majorticklocs() if low <= place <= high]
    return max(map(len, axis.get_major_formatter().format_ticks(places)), default=0)
