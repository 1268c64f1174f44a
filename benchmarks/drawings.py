"""Pictures that explain: a round, the modes of virtual time, ways to split data, and the layers of the code.

Each is drawn for a light and for a dark page.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raysim.report.canvas import DARK, INK, LIGHT, MUTED, new_figure, picture_bytes, style


@dataclass(frozen=True)
class Theme:
    """Colors of a page."""

    ground: str
    ink: str
    muted: str
    panel: str
    colors: Sequence[str]

    @contextmanager
    def figure(self, width: float, height: float, **options: Any) -> Iterator[Any]:
        """A figure of this size in inches, on the page's ground."""
        text = ("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.titlecolor")
        colors = dict.fromkeys(text, self.ink) | {"axes.edgecolor": self.muted}
        grounds = {"axes.facecolor": self.ground, "figure.facecolor": self.ground}
        with style(colors | grounds | {"savefig.dpi": 160, "font.size": 10}):
            yield new_figure(figsize=(width, height), layout="constrained", **options)


THEMES = {
    "light": Theme("#ffffff", INK, MUTED, "#eef2f7", LIGHT),
    "dark": Theme("#14181e", "#ced6dd", "#8b949e", "#222832", DARK),
}
LANES = ("your program", "driver", "client actor 1", "client actor 2")
STEPS: Sequence[tuple[int, int, str]] = (
    (0, 1, "raysim.run(…)"),
    (1, 1, "who takes part, in which order:\nfrom config and seed alone"),
    (1, 2, "message(server, client 3), (…, 8)"),
    (1, 3, "message(server, client 5), (…, 9)"),
    (2, 2, "train(…)\nof 3, then of 8"),
    (3, 3, "train(…)\nof 5, then of 9"),
    (3, 1, "updates, in any order"),
    (2, 1, "updates"),
    (1, 1, "into client order, then\naggregate(server, updates)"),
    (1, 2, "the new global model"),
    (1, 3, "the new global model"),
    (3, 1, "its accuracy on a share of the test set"),
    (2, 1, "on the other share"),
    (1, 1, "tables, checkpoint, proof"),
    (1, 0, "round_finished(row)"),
)
"""Lane from, lane to, words: one round, top to bottom."""


def sequence(theme: Theme) -> bytes:
    """One round as a sequence diagram."""
    with theme.figure(9.4, 8.2) as figure:
        axes = figure.add_subplot()
        axes.set(xlim=(-0.45, 3.5), ylim=(len(STEPS) + 0.4, -1.1))
        axes.axis("off")
        for lane, name in enumerate(LANES):
            color = theme.colors[0 if lane < 2 else 2]
            box = {"boxstyle": "round,pad=0.5", "facecolor": theme.panel, "edgecolor": color}
            axes.text(lane, -0.6, name, ha="center", va="center", fontweight="bold", bbox=box)
            axes.plot([lane, lane], [-0.1, len(STEPS) + 0.2], color=theme.muted, linewidth=1, linestyle=":")
        for row, (start, end, words) in enumerate(STEPS):
            if start == end:
                box = {"boxstyle": "round,pad=0.35", "facecolor": theme.panel, "edgecolor": theme.colors[1]}
                axes.text(start, row + 0.35, words, ha="center", va="center", fontsize=9, bbox=box)
                continue
            arrow = {"arrowstyle": "-|>", "color": theme.colors[0 if end > start else 2], "linewidth": 1.4}
            axes.annotate("", (end, row + 0.5), (start, row + 0.5), arrowprops=arrow)
            step = 1 if end > start else -1
            axes.text(start + step * 0.5, row + 0.4, words, ha="center", va="bottom", fontsize=9)
        return picture_bytes(figure)


MODES: Sequence[tuple[str, Sequence[str], str]] = (
    ("sync", (), "sync: the server waits for all"),
    ("deadline", ("--timing.deadline", "20"), "deadline: late clients stop"),
    ("quorum", ("--timing.quorum", "0.5"), "quorum: half of them are enough"),
    ("over-select", ("--timing.over_select", "1.5"), "over-select: ask more than are needed"),
    ("buffered", ("--timing.buffer", "3"), "buffered: a step at every third update"),
    ("async", ("--schedule.rounds", "60"), "async: a step at every update"),
)
RUN = (
    *("--method", "fedavg", "--model", "logistic", "--clients", "8", "--sampling_rate", "0.5", "--local_epochs", "2"),
    *("--devices.preset", "phones", "--devices.seconds_per_sample", "0.05", "--devices.spread", "0.7"),
    *("--schedule.rounds", "24", "--engine.backend", "inline", "--pictures", "false"),
)
"""The run whose tasks are drawn, in every mode."""
SHOWN = 150.0
"""Virtual seconds that are drawn."""


def modes(theme: Theme) -> bytes:
    """Client tasks and server steps of one run in each timing mode, as Gantt charts."""
    fates = {"update": theme.colors[0], "late": theme.colors[4], "lost": theme.colors[1]}
    with theme.figure(10, 6.4) as figure:
        panels = figure.subplots(3, 2, sharex=True, sharey=True).flat
        for axes, (mode, more, title) in zip(panels, MODES, strict=True):
            steps, tasks = _run(*RUN, "--timing.mode", mode, *more)
            colors, lengths = tasks["fate"].map(fates), tasks["end"] - tasks["start"]
            edge = {"edgecolor": theme.ground, "linewidth": 0.9}
            axes.barh(tasks["client"], lengths, left=tasks["start"], height=0.74, color=colors, **edge)
            axes.vlines(steps["virtual_seconds"], -0.7, 7.7, color=theme.ink, linewidth=0.9, linestyle="--")
            axes.set_title(title, fontsize=10, loc="left")
            axes.set(xlim=(0, SHOWN), ylim=(7.7, -0.7), yticks=range(0, 8, 2))
            axes.spines[["top", "right"]].set_visible(False)
        figure.supxlabel("virtual seconds, the same clients in all", fontsize=10)
        figure.supylabel("client", fontsize=10)
        marks = [axes.barh(-5, 1, color=fates["update"]), axes.barh(-5, 1, color=fates["late"])]
        marks.append(axes.plot([-9, -9], [-5, -4], color=theme.ink, linestyle="--", linewidth=0.9)[0])
        names = ("training whose update is used", "stopped: too late", "server step")
        figure.legend(marks, names, loc="outside upper center", ncols=3, frameon=False)
        axes.set(xlim=(0, SHOWN), ylim=(7.7, -0.7))
        return picture_bytes(figure)


@functools.cache
def _run(*words: str) -> tuple[Any, Any]:
    """Server steps and client tasks of a run, which is made; its steps are those of its plan."""
    from raysim import launch
    from raysim.config.command_line import parse
    from raysim.results.result import load_result
    from raysim.timeline import clock_of, tables

    steps, tasks = tables(clock_of(parse(words).config))
    with tempfile.TemporaryDirectory() as folder:
        launch.main([*words, "--output", f"{folder}/run"])
        happened = load_result(Path(folder, "run")).rounds["virtual_seconds"]
    if abs(happened.to_numpy() - steps["virtual_seconds"].to_numpy()).max() > 1e-6:
        raise RuntimeError(f"{' '.join(words)}: the run went another way than its plan")
    return steps, tasks


SPLITS: Sequence[tuple[str, dict[str, Any], str]] = (
    ("iid", {}, "iid"),
    ("dirichlet", {"alpha": 1.0}, "dirichlet, alpha 1"),
    ("dirichlet", {"alpha": 0.1}, "dirichlet, alpha 0.1"),
    ("shards", {"classes_per_client": 3}, "shards, 3 classes"),
    ("pathological", {"shards_per_client": 2}, "pathological, 2 shards"),
    ("lognormal", {"sigma": 1.0}, "lognormal, sigma 1"),
)


def partitions(theme: Theme) -> bytes:
    """Handwritten digits, cut over ten clients in six ways: the samples of each class at each client."""
    import numpy as np
    from sklearn.datasets import load_digits

    import raysim

    x, y = load_digits(return_X_y=True)
    with theme.figure(9.4, 5.2) as figure:
        for axes, (name, options, title) in zip(figure.subplots(2, 3, sharex=True).flat, SPLITS, strict=True):
            clients = raysim.split((x.astype(np.float32), y), clients=10, partition=name, **options)
            counts = np.stack([np.bincount(labels, minlength=10) for _, labels in clients])
            left = np.zeros(10)
            for label in range(10):
                color = theme.colors[label % 8]
                hatch = "////" if label >= 8 else None
                edge = {"edgecolor": theme.ground, "linewidth": 0.4, "hatch": hatch}
                axes.barh(range(10), counts[:, label], left=left, height=0.8, color=color, label=str(label), **edge)
                left += counts[:, label]
            axes.set_title(title, fontsize=10, loc="left")
            axes.set(ylim=(9.6, -0.6), yticks=range(0, 10, 3))
            axes.spines[["top", "right"]].set_visible(False)
        handles, names = axes.get_legend_handles_labels()
        figure.legend(handles, names, loc="outside right center", title="digit", frameon=False)
        figure.supxlabel("training samples", fontsize=10)
        figure.supylabel("client", fontsize=10)
        return picture_bytes(figure)


FLOORS: Sequence[tuple[str, Sequence[str], str, int]] = (
    ("commands", ("launch", "study", "search", "replay", "contribution", "ui", "cli"), "what is typed", 1),
    ("one run", ("verification", "running"), "raysim.run, and its check", 0),
    ("Ray", ("actors",), "client actors, placement, recovery; no other room knows Ray", 3),
    ("around a run", ("driver", "report", "comparison", "results", "monitor"), "what is shown, and what is left", 0),
    ("a round", ("engine", "virtual_time"), "who takes part, chunks, sums, evaluation, checkpoints", 2),
    ("a client", ("client_side",), "one client's local work", 2),
    ("papers", ("methods", "wrappers", "training"), "a file a method: both halves, client and server", 4),
    ("contract", ("exchange", "method", "flat_model", "samplers"), "what a method may see, what travels", 4),
    ("settings and files", ("config", "storage", "columns"), "options, run folders, tables", 6),
    ("knows nothing of raysim", ("aggregators", "workloads"), "means of vectors; data sets, splits, models", 7),
)
"""Floor of the house, rooms on it, what they are for, and its color; from the top down."""


def rooms(theme: Theme) -> bytes:
    """The rooms of the code: imports point down, which lint-imports checks."""
    with theme.figure(9.4, 0.62 * len(FLOORS) + 0.3) as figure:
        axes = figure.add_subplot()
        axes.set(xlim=(0, 10), ylim=(len(FLOORS) - 0.5, -0.9))
        axes.axis("off")
        for row, (name, inside, purpose, color) in enumerate(FLOORS):
            axes.barh(row, 9.4, height=0.8, color=theme.panel, edgecolor=theme.colors[color], linewidth=1.5)
            axes.text(0.15, row, name, va="center", fontweight="bold", color=theme.colors[color])
            axes.text(2.7, row - 0.17, "  ".join(inside), va="center", family="monospace", fontsize=9)
            axes.text(2.7, row + 0.19, purpose, va="center", fontsize=9, color=theme.muted)
        down = {"arrowstyle": "-|>", "color": theme.ink}
        axes.annotate("", (9.75, len(FLOORS) - 0.6), (9.75, -0.4), arrowprops=down)
        axes.text(9.9, -0.65, "imports point down", ha="right", va="center", fontsize=9)
        return picture_bytes(figure)


DRAWINGS = {"round": sequence, "modes": modes, "partitions": partitions, "rooms": rooms}
"""Stem of the file → the drawing."""
