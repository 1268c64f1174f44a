"""The common ground of all pictures: colors of text and background, no display, no global state."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, MUTED, GROUND = "#222222", "#6b7280", "#ffffff"
# Okabe and Ito's colors, told apart with every kind of color vision; lighter where the ground is dark.
LIGHT = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#5b5b5b", "#7b3fa0")
DARK = ("#56b4e9", "#ff8c42", "#2bc79a", "#e6a3c8", "#f0c541", "#8ab6ff", "#b5b5b5", "#c39be6")


@dataclass(frozen=True)
class Form:
    """A form in which a picture is drawn: a file with a title, or a part of a page, which has its own heading."""

    width: float
    """Inches, 72 points each."""
    page: bool = False
    """An SVG in the colors of the page, light or dark; else a PNG on white."""

    @property
    def wide(self) -> bool:
        """Whether a line of text holds 60 signs and more."""
        return self.width > 5


FILE = Form(6.4)
WIDE, NARROW = Form(6.4, page=True), Form(3.7, page=True)
"""Widths on a desk and on a phone: the text of a picture shrinks with it, so that one form cannot serve both."""


@contextmanager
def style(more: Mapping[str, Any]) -> Iterator[None]:
    """Matplotlib's settings within the block.

    Args:
        more: settings beside those that all pictures share.
    """
    import matplotlib

    settings: Any = {
        "text.parse_math": False,  # a $ in a name is a $
        "font.size": 11,
        "axes.facecolor": GROUND,
        "figure.facecolor": GROUND,
        "axes.edgecolor": MUTED,
        **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
        **more,
    }
    with matplotlib.rc_context(settings):
        yield


def new_figure(**options: Any) -> Figure:
    """A figure without pyplot, which would keep it and choose a display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(**options)
    FigureCanvasAgg(figure)
    return figure


def picture_bytes(figure: Figure, kind: Literal["png", "svg"] = "png") -> bytes:
    """The picture as a file's content: the same for the same figure."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, metadata={"Date": None} if kind == "svg" else {"Software": None})
    return buffer.getvalue()
