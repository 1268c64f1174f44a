"""Pictures as parts of a page."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from raysim.report.canvas import NARROW, WIDE, Form
from raysim.report.plots import comparison_picture, run_picture
from tests.raysim.report.pages import EVIL, frame

ROUNDS = frame(accuracy=[0.1, 0.5], loss=[2.0, 1.0], epochs_total=[1, 2])


@pytest.mark.parametrize("form", [WIDE, NARROW])
def test_colors_are_those_of_the_page_and_texts_are_texts(form: Form) -> None:
    svg = run_picture(ROUNDS, "a title that the page has", form).decode()
    assert re.findall("#[0-9a-f]{6}", svg) == [] and {"--c0", "--ink", "--muted"} <= set(re.findall(r"--\w+", svg))
    texts = [element.text for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert {"accuracy", "loss", "round", "local epochs in total"} <= set(texts)
    assert "title" not in svg and "<style" not in svg and "<metadata" not in svg
    assert f'viewBox="0 0 {72 * form.width:g} ' in svg


def test_both_forms_on_one_page_name_no_part_alike() -> None:
    names = [set(re.findall(r' id="([^"]+)"', run_picture(ROUNDS, "", form).decode())) for form in (WIDE, NARROW)]
    assert names[0] and names[0].isdisjoint(names[1])


def test_foreign_labels_are_text_without_signs_of_control() -> None:
    label = f"{EVIL}\x1b\x00 style=#0072b2"
    svg = comparison_picture([(label, [ROUNDS]), ("b", [ROUNDS])], "", WIDE).decode()
    texts = [element.text or "" for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert any(f"{EVIL}?? style=#0072b2" in text for text in texts)
    assert "<script" not in svg


def test_a_long_label_is_broken_on_a_phone() -> None:
    label = "method fedavg, partition dirichlet, alpha 0.1, learning rate 0.05"
    wide, narrow = (comparison_picture([(label, [ROUNDS])], "", form).decode() for form in (WIDE, NARROW))
    assert label.split(", learning")[0] in wide and label.split(", alpha")[0] not in narrow
