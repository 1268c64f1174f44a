"""Drawings say what the code says: floors of the house are in the order of its layers, and every mode is drawn."""

from __future__ import annotations

import io
import itertools
import tomllib
from pathlib import Path

from PIL import Image

from benchmarks import drawings
from raysim.config.timing import MODES

ROOT = Path(__file__).resolve().parents[2]


def test_floors_of_the_house_are_in_the_order_of_the_layers() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    place = {module: row for row, line in enumerate(layers) for module in line.split(" | ")}
    rows = [[place[room] for room in rooms] for _, rooms, _, _ in drawings.FLOORS]
    for above, below in itertools.pairwise(rows):
        assert max(above) < min(below)


def test_every_timing_mode_is_drawn() -> None:
    assert sorted(mode for mode, _, _ in drawings.MODES) == sorted(MODES)


def test_a_drawing_has_the_colors_of_its_page() -> None:
    corners = {}
    for name, theme in drawings.THEMES.items():
        with Image.open(io.BytesIO(drawings.rooms(theme))) as picture:
            corners[name] = picture.convert("RGB").getpixel((0, 0))
    assert corners == {"light": (255, 255, 255), "dark": (0x14, 0x18, 0x1E)}
