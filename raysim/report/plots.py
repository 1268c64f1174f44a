"""Pictures of accuracy and loss against rounds, and of accuracy against what it cost: files, or parts of a page."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from raysim import columns
from raysim.report.canvas import FILE, LIGHT, MUTED, Form, new_figure, picture_bytes, style
from raysim.report.margins import place
from raysim.report.page_svg import page_svg
from raysim.results.costs import running_costs
from raysim.units import scale, time_unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

_BARS = 100
"""Largest number of rounds with bars of their own."""
_SMALL = 9.5
"""Points of the font of legends and of a second axis."""
_STYLES = ("-", "--", ":", "-.")
_GRID = {
    "axes.grid": True,
    "grid.color": MUTED,
    "grid.alpha": 0.25,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "legend.frameon": False,
    "legend.fontsize": _SMALL,
}


@dataclass(frozen=True)
class _Line:
    """One series: ``y`` (and its spread ``band``, if any) at the rounds ``x``; ``rank`` chooses color and dashes."""

    label: str
    x: Any
    y: Any
    rank: int
    band: Any = None


def run_picture(rounds: DataFrame, title: str, form: Form = FILE) -> bytes:
    """Accuracy (global, and over clients with its standard deviation and worst tenth) and loss of one run.

    Args:
        rounds: a run's table of rounds; columns that are absent or empty are left out.
        title: shown above a file; the caller says there whether the data is synthetic.
        form: a PNG, or an SVG for a page.
    """
    accuracy, loss = (_curves(rounds, chart) for chart in ("accuracy", "loss"))
    if np.array_equal(accuracy[0].y, accuracy[1].y):  # a personal method has no other accuracy than its clients'
        del accuracy[0]
    return _draw(accuracy, loss, title, form, epochs=rounds if "epochs_total" in rounds else None)


def chart_picture(rounds: DataFrame, name: str, form: Form) -> bytes:
    """One chart of a run's page (:data:`raysim.columns.CHARTS`) against rounds."""
    chart = columns.CHARTS[name]
    lines = [line for line in _curves(rounds, name) if len(line.x)]
    with style(_GRID):
        figure = new_figure(figsize=(form.width, _height(2.6, form)), dpi=150)
        panel = figure.subplots()
        if chart.stacked:
            _stack(panel, rounds["round"].to_numpy(), lines, form)
        else:
            _plot(panel, lines, form, len(lines) > 1, 1.0)
        panel.set(xlabel="round", ylabel=chart.unit if chart.unit == "seconds" else "")
        if chart.unit == "percent":
            panel.yaxis.set_major_formatter(_percent())
        if chart.whole:
            panel.set_ylim(0, 1.05)
        place(figure, [panel])
        return _finished(figure, form)


def _stack(panel: Any, x: Any, lines: Iterable[_Line], form: Form) -> None:
    """Bars of the lines' values one upon the other; where they are many, areas, which are drawn in one piece."""
    bottom, edges = np.zeros(len(x)), np.append(x - 0.5, x[-1:] + 0.5)
    for line in lines:
        heights, look = np.interp(x, line.x, line.y), {"color": LIGHT[line.rank], "label": _label(line.label, form)}
        if len(x) <= _BARS:
            panel.bar(x, heights, 0.9, bottom, **look)
        else:
            panel.stairs(bottom + heights, edges, baseline=bottom, fill=True, **look)
        bottom = bottom + heights
    panel.legend(loc="best")


def comparison_picture(runs: Sequence[tuple[str, Sequence[DataFrame]]], title: str, form: Form = FILE) -> bytes:
    """Accuracy and loss of several settings; clients' mean where there is no global accuracy.

    Args:
        runs: label of a setting, and the table of rounds of its run with each seed: their mean is drawn, in a band of
            one standard deviation.
    """
    accuracy, loss = [], []
    for rank, (label, tables) in enumerate(runs):
        own = _mean_line([_line(rounds, "accuracy", label, rank) for rounds in tables])
        personal = [_line(rounds, "client_accuracy_mean", label, rank) for rounds in tables]
        accuracy.append(own if len(own.x) else _mean_line(personal))
        loss.append(_mean_line([_line(rounds, "loss", label, rank) for rounds in tables]))
    return _draw(accuracy, loss, title, form, shared_legend=True)


COSTS = ("bytes", "virtual_seconds")
"""Axes that accuracy is drawn against."""


def drawn_costs(tables: Iterable[DataFrame]) -> list[str]:
    """Those of :data:`COSTS` that all these tables of rounds have; none where one of them has no accuracy."""
    known = [set(running_costs(rounds)) if "accuracy" in rounds else set() for rounds in tables]
    return [cost for cost in COSTS if all(cost in own for own in known)]


def cost_picture(runs: Sequence[tuple[str, Sequence[DataFrame]]], title: str, form: Form = FILE) -> bytes:
    """Accuracy against traffic and virtual time, as far as all runs have them.

    Args:
        runs: label of a setting, and the table of rounds of its run with each seed. Of several seeds the mean accuracy
            of each round is drawn at the mean cost of that round; without a table, a setting keeps its color unused.
    """
    every = [rounds for _, tables in runs for rounds in tables]
    axes = [(cost, *unit_of_costs(cost, every)) for cost in drawn_costs(every)]
    with style(_GRID):
        labels = [name for name, tables in runs if tables] if len(runs) > 1 else []
        height = _height(3.4, form) * len(axes) + _legend_height(labels, form)
        figure = _new_figure(form, height, title, bool(labels))
        panels = list(figure.subplots(len(axes), squeeze=False)[:, 0])
        for panel, (cost, factor, label) in zip(panels, axes, strict=True):
            lines = [_against(cost, factor, name, tables, rank) for rank, (name, tables) in enumerate(runs) if tables]
            _plot(panel, [line for line in lines if len(line.x)], form, legend=False, highest=1.0)
            panel.set(xlabel=label, ylabel="accuracy")
            panel.yaxis.set_major_formatter(_percent())
        if len(runs) > 1:
            _legend_below(figure, panel)
        place(figure, panels)
        return _finished(figure, form)


def unit_of_costs(cost: str, tables: Iterable[DataFrame]) -> tuple[float, str]:
    """The unit in which the costs of all these runs are easy to read, and the axis's label."""
    most = max(float(running_costs(rounds)[cost].max()) for rounds in tables)
    if cost == "bytes":
        scaled = scale("bytes", [most])
        return 1 / scaled.factor, f"{scaled.symbol} sent and received"
    factor, unit = time_unit(most)
    return factor, f"virtual {unit}"


def _against(cost: str, factor: float, label: str, tables: Sequence[DataFrame], rank: int) -> _Line:
    """Accuracy against a running cost, which is written in units of ``factor``."""
    lines = []
    for rounds in tables:
        judged = np.isfinite(rounds["accuracy"].to_numpy(dtype=float))
        costs = running_costs(rounds)[cost].to_numpy(dtype=float)[judged] / factor
        line = _line(rounds, "accuracy", label, rank)
        lines.append((line, replace(line, y=costs)))
    accuracy, cost_of_rounds = (_mean_line(half) for half in zip(*lines, strict=True))
    return replace(accuracy, x=cost_of_rounds.y)


def _percent() -> Any:
    from matplotlib.ticker import PercentFormatter

    return PercentFormatter(1.0, symbol=" %")


def _mean_line(lines: Sequence[_Line]) -> _Line:
    """The mean of lines at the rounds that all of them have, with the standard deviation where there are two."""
    import pandas as pd

    if len(lines) == 1:
        return lines[0]
    values = pd.Series(np.concatenate([line.y for line in lines])).groupby(np.concatenate([line.x for line in lines]))
    everywhere = values.count() == len(lines)
    mean, band = values.mean()[everywhere], values.std()[everywhere]
    return _Line(lines[0].label, mean.index.to_numpy(), mean.to_numpy(), lines[0].rank, band.to_numpy())


def _curves(rounds: DataFrame, chart: str) -> list[_Line]:
    """The curves of one chart of a run."""
    return [
        _line(rounds, name, f"{columns.label_of(name)}{' (± std)' if column.band else ''}", rank, column.band)
        for rank, (name, column) in enumerate(columns.curves(chart).items())
    ]


def _line(rounds: DataFrame, name: str, label: str, rank: int, spread: str = "") -> _Line:
    if name not in rounds:
        return _Line(label, np.zeros(0), np.zeros(0), rank)
    y = rounds[name].to_numpy(dtype=float)
    present = np.isfinite(y)  # rounds without evaluation
    band = np.nan_to_num(rounds[spread].to_numpy(dtype=float)[present]) if spread in rounds else None
    return _Line(label, rounds["round"].to_numpy()[present], y[present], rank, band)


def _draw(
    accuracy: list[_Line],
    loss: list[_Line],
    title: str,
    form: Form,
    *,
    epochs: DataFrame | None = None,
    shared_legend: bool = False,
) -> bytes:
    from matplotlib.ticker import MaxNLocator

    with style(_GRID):
        labels = [line.label for line in accuracy] if shared_legend else []
        height = _height(6.4, form) + _legend_height(labels, form)
        figure = _new_figure(form, height, title, shared_legend)
        # One above the other: side by side they would be too small on a phone.
        upper, lower = figure.subplots(2, 1, sharex=True)
        for axes, name, lines, highest in ((upper, "accuracy", accuracy, 1.0), (lower, "loss", loss, np.inf)):
            _plot(axes, [line for line in lines if len(line.x)], form, not shared_legend, highest)
            axes.set_ylabel(name)
        figure.align_ylabels()
        if shared_legend:
            _legend_below(figure, max((upper, lower), key=lambda axes: len(axes.get_lines())))
        upper.yaxis.set_major_formatter(_percent())
        lower.set_xlabel("round")
        lower.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
        upper.spines["top"].set_visible(epochs is not None)
        if epochs is not None and len(epochs):
            _label_epochs(upper, epochs)
        place(figure, (upper, lower), above=0.0 if epochs is None else _SMALL, shared=True)
        return _finished(figure, form)


def _new_figure(form: Form, height: float, title: str, legend_below: bool) -> Figure:
    """A figure that measures its texts, but on a page without a legend below: that takes most of the time."""
    layout = "constrained" if legend_below or not form.page else None
    figure = new_figure(figsize=(form.width, height), dpi=150, layout=layout)
    if not form.page:
        figure.suptitle(title, fontsize=13, fontweight="bold")
    return figure


def _height(inches: float, form: Form) -> float:
    """A picture's height; on a phone a picture is as wide as high, nearly."""
    return inches if form.wide else 0.8 * inches


def _finished(figure: Figure, form: Form) -> bytes:
    return page_svg(figure) if form.page else picture_bytes(figure)


def _legend_below(figure: Figure, axes: Any) -> None:
    """One legend under all panels, where it covers no line."""
    lines = axes.get_lines()
    figure.legend(lines, [line.get_label() for line in lines], loc="outside lower center")


def _legend_height(labels: Sequence[str], form: Form) -> float:
    """Inches of a legend below the panels."""
    return 0.22 * sum(_label(label, form).count("\n") + 1 for label in labels)


def _label(label: str, form: Form) -> str:
    """A label as a legend has it: in lines that are not longer than the picture is wide, without signs of control."""
    text = "".join(sign if sign.isprintable() else "?" for sign in label)
    # A thin space in front, since a label that begins with "_" would be dropped.
    return "\u200a" + textwrap.fill(text, 64 if form.wide else 32, max_lines=3, placeholder=" …")


def _plot(axes: Any, lines: list[_Line], form: Form, legend: bool, highest: float) -> None:
    for line in lines:
        color = LIGHT[line.rank % len(LIGHT)]
        style = _STYLES[line.rank // len(LIGHT) % len(_STYLES)]
        marker = "o" if len(line.x) <= 30 else None
        label = _label(line.label, form)
        axes.plot(line.x, line.y, style, color=color, marker=marker, markersize=3.5, linewidth=1.7, label=label)
        if line.band is not None:
            # A band beyond what can be would say nothing: a share is at most 1, and neither it nor a loss below 0.
            lower, upper = np.maximum(line.y - line.band, 0.0), np.minimum(line.y + line.band, highest)
            axes.fill_between(line.x, lower, upper, color=color, alpha=0.15, linewidth=0)
    if not lines:
        axes.text(0.5, 0.5, "no values", transform=axes.transAxes, ha="center", va="center", alpha=0.6)
    elif legend:
        axes.legend(loc="best")


def _label_epochs(axes: Any, rounds: DataFrame) -> None:
    """A second scale above: local epochs done by then, at the ticks of the rounds."""
    numbers, epochs = rounds["round"].to_numpy(), rounds["epochs_total"].to_numpy()
    low, high = axes.get_xlim()
    ticks = [tick for tick in axes.get_xticks() if low <= tick <= high and numbers[0] <= tick <= numbers[-1]]
    above = axes.secondary_xaxis("top")
    above.set_xticks(ticks, labels=[f"{np.interp(tick, numbers, epochs):.0f}" for tick in ticks])
    above.set_xlabel("local epochs in total", fontsize=_SMALL)
    above.tick_params(labelsize=_SMALL)
