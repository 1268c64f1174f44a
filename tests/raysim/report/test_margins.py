"""Panels of a page's pictures lie within them, with room for their labels."""

from __future__ import annotations

import numpy as np
import pytest

from raysim.report import plots
from raysim.report.canvas import FILE, NARROW, WIDE, Form, new_figure
from raysim.report.margins import place


@pytest.mark.parametrize("form", [WIDE, NARROW])
def test_panels_leave_room_for_the_longest_label(form: Form) -> None:
    found = []
    for largest in (1.0, 1e5):
        figure = new_figure(figsize=(form.width, 5))
        upper, lower = figure.subplots(2, 1)
        upper.plot([1, 2], [0, 1])
        lower.plot([1, 2], [0, largest])
        place(figure, (upper, lower))
        boxes = [panel.get_position() for panel in (upper, lower)]
        assert all(0 < box.x0 < 0.4 and 0.9 < box.x1 < 1 and 0 < box.y0 < box.y1 < 1 for box in boxes)
        assert boxes[0].y0 > boxes[1].y1 and np.isclose(boxes[0].height, boxes[1].height)
        found.append(boxes[0].x0)
    assert found[0] < found[1]


def test_a_figure_with_a_layout_of_its_own_is_left_as_it_is() -> None:
    figure = new_figure(layout="constrained")
    panel = figure.subplots()
    before = panel.get_position()
    place(figure, [panel])
    assert panel.get_position() == before or np.allclose(panel.get_position(), before)


def test_a_file_measures_its_texts_and_a_page_only_where_a_legend_takes_room() -> None:
    kinds = [plots._new_figure(form, 3.0, "", below).get_layout_engine() is not None for form, below in (
        (FILE, False), (WIDE, False), (WIDE, True)
    )]  # fmt: skip
    assert kinds == [True, False, True]
