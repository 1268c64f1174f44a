"""The pictures in docs/ are those that today's code draws; the cheap one is drawn anew."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from benchmarks import pictures
from benchmarks.pictures import PICTURES, ROOT, Drawn, stamped
from raysim.studies import study_file

SUFFIXES = (".png", ".svg", ".jpg", ".gif", ".webp")


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: Path(picture.path).stem)
def test_a_picture_of_the_docs_is_current(picture: Drawn) -> None:
    assert picture.is_current(), f"draw it anew: python -m benchmarks.pictures {Path(picture.path).stem}"


def test_every_picture_of_the_docs_is_drawn_by_a_program_and_shown() -> None:
    drawn = {picture.path for picture in PICTURES}
    for file in sorted((ROOT / "docs" / "studies").glob("*.yaml")):
        study = study_file.read(file)
        found = [part.path for part in (study.picture, study.heat_map) if part is not None]
        found += study.curves.path if study.curves is not None else []
        drawn |= {path.resolve().relative_to(ROOT.resolve()).as_posix() for path in found}
    kept = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*") if path.suffix in SUFFIXES}
    assert kept == drawn | {"docs/pictures/ray-actors.png"}  # of Ray's own dashboard
    pages = "".join(page.read_text(encoding="utf-8") for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
    shown = {path for path in kept if f"({path.removeprefix('docs/')})" in pages or path in pages}
    of_the_dark = {path.replace(".", "-dark.") for path in shown}  # the site shows them in place of the light ones
    assert sorted(kept - shown - of_the_dark) == []


def test_the_timeline_is_drawn_anew_as_large_as_it_is_in_the_docs() -> None:
    from PIL import Image

    picture = next(picture for picture in PICTURES if picture.path.endswith("timeline.png"))
    with Image.open(io.BytesIO(picture.draw(picture))) as drawn, Image.open(ROOT / picture.path) as kept:
        assert drawn.size == kept.size


def test_a_stamp_is_about_what_the_code_does_and_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from PIL import Image

    monkeypatch.setattr(pictures, "ROOT", tmp_path)
    plain = io.BytesIO()
    Image.new("RGB", (4, 4)).save(plain, "PNG")
    drawn = Drawn("a.png", ("--seed", "1"), ("*.py",), lambda drawn: plain.getvalue())
    monkeypatch.setattr(pictures, "PICTURES", (drawn,))
    code = tmp_path / "draw.py"
    code.write_text("import old\n\ndef draw():\n    return 1\n")
    assert pictures.main(["--check"]) == 1  # there is none
    assert pictures.main([]) == 0 and drawn.is_current()
    code.write_text('"""Words."""\nimport new\n\ndef draw():\n    """More words."""\n    return 1  # a remark\n')
    assert pictures.main(["--check"]) == 0
    code.write_text("def draw():\n    return 2\n")
    assert pictures.main(["--check"]) == 1 and "python -m benchmarks.pictures a" in capsys.readouterr().err
    assert not Drawn("a.png", ("--seed", "2"), ("*.py",), drawn.draw).is_current()
    assert stamped(plain.getvalue(), "x")[:4] == b"\x89PNG"
