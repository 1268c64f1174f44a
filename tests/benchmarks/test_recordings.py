"""Recordings show what a terminal showed, and pictures keep their stamps whatever their format."""

from __future__ import annotations

import io
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from PIL import Image, ImageSequence

from benchmarks import recordings
from benchmarks.pictures import stamp_of, stamped
from benchmarks.recordings import COLUMNS, HELD, LENGTH, LINES

OUTPUT = [
    (0.0, "$ run\r\n"),
    (1.0, "\x1b[?25l\x1b[1mround 1\x1b[0m\r\nleft 2\r\n"),
    (2.0, "\r\x1b[2K\x1b[1A\x1b[2K\x1b[1A\x1b[2Kround 2 \x1b[38;5;70mdone\x1b[0m\r\n"),
    (100.0, "<end>"),
]


def test_lines_that_are_wiped_are_written_anew() -> None:
    shown = [lines for _, lines in recordings.screens(OUTPUT)]
    assert shown[1][:3] == [(("", "$ run"),), (("#ffffff", "round 1"),), (("", "left 2"),)]
    assert shown[2][:3] == [(("", "$ run"),), (("", "round 2 "), ("#7ec16e", "done")), ()]
    assert [seconds for seconds, _ in recordings.screens(OUTPUT)] == [0.0, 1.0, 2.0, 100.0]


def test_a_recording_is_one_file_that_plays_for_its_length_and_ends_with_the_last_screen() -> None:
    found = recordings.svg([*recordings.screens(OUTPUT), (160.0, [(("", "x" * (COLUMNS + 1)),)] * LINES)])
    root = ElementTree.fromstring(found)
    text = found.decode()
    frames = root.findall(".//{*}g[@transform]")
    assert f"play {LENGTH:g}s step-end -{LENGTH - HELD:g}s" in text and "&lt;end&gt;" in text  # begins with its end
    assert len(re.findall(r"%\{transform", text)) == len(frames)
    assert max(float(stop) for stop in re.findall(r"([\d.]+)%\{", text)) <= 100 * (1 - HELD / LENGTH)
    assert len(list(frames[-1])) == LINES and "https://" not in text.replace("http://www.w3.org", "")


def test_a_film_begins_with_its_last_picture() -> None:
    shots = []
    for color in ("red", "lime", "blue"):
        buffer = io.BytesIO()
        Image.new("RGB", (8, 8), color).save(buffer, "PNG")
        shots.append(buffer.getvalue())
    with Image.open(io.BytesIO(recordings._film(shots))) as film:
        frames = [np.asarray(frame.convert("RGB"))[4, 4] for frame in ImageSequence.Iterator(film)]
    brightest = [int(frame.argmax()) for frame in frames]
    assert brightest == [2, 0, 1]


def test_a_stamp_is_read_back_from_each_format(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (8, 8), color) for color in ("red", "blue")]
    for kind in ("PNG", "WEBP", "SVG"):
        buffer = io.BytesIO()
        if kind == "SVG":
            buffer.write(b"<svg/>\n")
        else:
            more = {"save_all": True, "append_images": frames[1:], "duration": 40} if kind == "WEBP" else {}
            frames[0].save(buffer, kind, **more)
        path = tmp_path / f"a.{kind.lower()}"
        path.write_bytes(stamped(buffer.getvalue(), "0123456789abcdef"))
        assert stamp_of(path) == "0123456789abcdef", kind
    with Image.open(tmp_path / "a.webp") as again:
        assert len(list(ImageSequence.Iterator(again))) == 2
