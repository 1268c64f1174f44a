"""The spectral-bias picture: how the eigenvalues of every client lie, and how far apart the clients' spectra are.

FedSSP, Fig. 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from raysim.report.canvas import INK, MUTED, new_figure, picture_bytes, style

if TYPE_CHECKING:
    from pandas import DataFrame

Numbers = NDArray[np.float64]

POINTS = 400
"""Points of a density curve."""
BANDWIDTH = 0.012
"""Standard deviation of its kernel, of the whole range."""
NUMBERS = 24
"""Largest number of clients for which the distances are written into the cells."""
TICKS = (0, 1, 3, 10, 30, 100, 300, 1000, 3000)
"""Eigenvalues that are marked where they have no bound."""


def distances(names: Sequence[str], spectra: Sequence[NDArray[np.floating[Any]]]) -> DataFrame:
    """Wasserstein-1 distance between the pooled eigenvalues of any two clients, in units of λ."""
    import pandas as pd
    from scipy.stats import wasserstein_distance

    found = np.zeros((len(spectra), len(spectra)))
    for i in range(len(spectra)):
        for j in range(i + 1, len(spectra)):
            found[i, j] = found[j, i] = wasserstein_distance(spectra[i], spectra[j])
    return pd.DataFrame(found, index=pd.Index(names, name="client"), columns=list(names))


def density(values: NDArray[np.floating[Any]], high: float) -> tuple[Numbers, Numbers]:
    """(λ [POINTS], density [POINTS]) over [0, high], by a Gaussian kernel.

    It is reflected at both ends, so that the integral is 1 and the many eigenvalues at the ends are not halved.
    """
    from scipy.ndimage import gaussian_filter1d

    counts, edges = np.histogram(values, bins=POINTS, range=(0.0, high), density=True)
    smooth: Numbers = gaussian_filter1d(counts, BANDWIDTH * POINTS, mode="reflect")
    return (edges[:-1] + edges[1:]) / 2, smooth


def draw(
    spectra: Sequence[NDArray[np.floating[Any]]],
    table: DataFrame,
    title: str,
    laplacian: str,
    kind: Literal["png", "svg"],
) -> bytes:
    """The picture: densities left, one row a client, and the distances of ``table`` right, in the same order."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    names = [str(name) for name in table.index]
    side = max(4.2, 0.52 * len(names) + 1.4)  # of the square of distances, in inches
    with style({"svg.hashsalt": "raysim"}):  # the same picture, the same bytes
        layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08)
        figure = new_figure(figsize=(side + 6.4, side + 0.6), dpi=150, layout=layout)
        left, right = figure.subplots(1, 2, width_ratios=(4.6, side))
        figure.suptitle(title, fontsize=13, fontweight="bold")
        _densities(left, names, spectra, laplacian)
        _distances(figure, right, names, table.to_numpy(dtype=float))
        return picture_bytes(figure, kind)


def _densities(axes: Any, names: list[str], spectra: Sequence[NDArray[np.floating[Any]]], laplacian: str) -> None:
    from matplotlib import colormaps
    from matplotlib.ticker import MaxNLocator

    bounded = laplacian == "normalized"
    # Without a bound, sets of dense graphs reach far beyond the others: of these only a logarithm shows the shape.
    shown = [values if bounded else np.log1p(values) for values in spectra]
    high = 2.0 if bounded else max(1.0, *(float(values.max()) for values in shown))
    for row, values in enumerate(shown):
        x, y = density(values, high)
        base = row + 0.5
        color = colormaps["viridis"](0.85 * row / max(1, len(names) - 1))
        # Each to its own peak: with a common scale one set of near-complete graphs would flatten all the others.
        height = base - 0.92 * y / y.max()
        axes.fill_between(x, base, height, color=color, alpha=0.35, linewidth=0)
        axes.plot(x, height, color=color, linewidth=1.5)
        axes.axhline(base, color=MUTED, linewidth=0.6, alpha=0.5)
    axes.set(xlim=(0, high), ylim=(len(names) - 0.5, -0.5), yticks=range(len(names)), yticklabels=names)
    if bounded:
        axes.xaxis.set_major_locator(MaxNLocator(4))
    else:
        ticks = [tick for tick in TICKS if np.log1p(tick) <= high]
        axes.set_xticks(np.log1p(ticks), labels=map(str, ticks))
    axes.set_xlabel(f"eigenvalue λ of the {laplacian} Laplacian" + ("" if bounded else ", along log(1 + λ)"))
    axes.set_title("density, each to its own peak", fontsize=11)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=MUTED, alpha=0.25)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _distances(figure: Any, axes: Any, names: list[str], table: Numbers) -> None:
    top = float(table.max()) or 1.0
    image = axes.imshow(table, cmap="YlGnBu", vmin=0, vmax=top)
    places = range(len(names))
    axes.set(xticks=places, yticks=places, yticklabels=names)
    if len("".join(names)) > 30:
        axes.set_xticklabels(names, rotation=45, ha="right", rotation_mode="anchor")
    else:
        axes.set_xticklabels(names)
    axes.set_title("Wasserstein-1 distance between clients", fontsize=11)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    figure.colorbar(image, ax=axes, fraction=0.04, pad=0.02).outline.set_visible(False)
    if len(names) > NUMBERS:
        return
    digits = 2 if top < 10 else 1
    for i in places:
        for j in places:
            text = "0" if i == j else f"{table[i, j]:.{digits}f}"
            color = "#ffffff" if table[i, j] > 0.55 * top else INK
            axes.text(j, i, text, ha="center", va="center", color=color, fontsize=9)
