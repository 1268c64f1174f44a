"""What the pictures of runs and spectra have in common: colors of text and ground, no display, no global state."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, MUTED, GROUND = "#222222", "#6b7280", "#ffffff"
_INK_ON_DARK, _DARK_GROUND = "#e6e6e6", "#1b1e23"


@contextmanager
def style(more: Mapping[str, Any], dark: bool = False) -> Iterator[None]:
    """Matplotlib's settings within the block.

    Args:
        more: settings beside those that all pictures share.
    """
    import matplotlib

    ink, ground = (_INK_ON_DARK, _DARK_GROUND) if dark else (INK, GROUND)
    settings: Any = {
        "text.parse_math": False,  # a $ in a name is a $
        "font.size": 11,
        "axes.facecolor": ground,
        "figure.facecolor": ground,
        "axes.edgecolor": MUTED,
        **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), ink),
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
