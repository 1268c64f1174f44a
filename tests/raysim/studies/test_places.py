"""A study that came from somebody else reads and writes only what it names, and never through a link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from raysim import study
from raysim.config.run_config import to_yaml
from raysim.errors import ConfigError
from raysim.studies import places, study_file, tables
from tests.raysim.small_study import TEXT, keep, study_of


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of the user's, outside the study, that looks like a page of a study."""
    path = tmp_path / "home" / "secret.md"
    path.parent.mkdir()
    path.write_text(f"{tables.BEGIN}\n{tables.END}\n", encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "foreign"
    path.mkdir()
    return path


def refused(folder: Path, more: str = "", text: str = TEXT) -> str:
    (folder / "small.yaml").write_text(text + more, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        tables.write_table(study_file.read(folder / "small.yaml"))
    return str(caught.value)


def test_a_page_that_is_a_link_is_refused_by_name(folder: Path, secret: Path) -> None:
    before = secret.read_bytes()
    (folder / "page.md").symlink_to(secret)
    assert refused(folder).startswith(f"{folder / 'page.md'} is a link")
    assert secret.read_bytes() == before


@pytest.mark.timeout(180)
def test_a_page_that_is_a_pipe_does_not_hang(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(folder / "page.md")
    assert f"{folder / 'page.md'} is neither a regular file nor a folder" in refused(folder)
    assert study.main([str(folder / "small.yaml"), "--table-only"]) == 2
    assert capsys.readouterr().err.startswith(f"raysim: {folder / 'page.md'} is neither")


@pytest.mark.timeout(180)
def test_a_page_exchanged_for_a_pipe_or_link_after_the_study_was_read(folder: Path, secret: Path) -> None:
    read = study_of(folder)
    os.mkfifo(folder / "page.md")
    with pytest.raises(ConfigError, match=r"page\.md: cannot be read: it is not a regular file"):
        tables.place_of_table(read)
    (folder / "page.md").unlink()
    (folder / "page.md").symlink_to(secret)
    with pytest.raises(ConfigError, match=r"page\.md: cannot be read: it is a link"):
        tables.write_table(read)


@pytest.mark.parametrize("key", ["heat_map", "curves"])
def test_a_picture_that_is_a_link_is_refused_by_name(key: str, folder: Path, secret: Path) -> None:
    (folder / "a.png").symlink_to(secret)
    more = {"heat_map": "label: a", "curves": "against: round"}[key]
    assert "a.png is a link" in refused(folder, f"{key}: {{path: a.png, measure: accuracy, {more}}}\n")


def test_a_folder_on_the_way_that_is_a_link_is_refused(folder: Path, secret: Path) -> None:
    (folder / "out").symlink_to(secret.parent)
    assert f"{folder / 'out'} is a link" in refused(folder, text=TEXT.replace("page.md", "out/secret.md"))
    assert f"{folder / 'out'} is a link" in refused(folder, text=TEXT.replace("results: results", "results: out/x"))


def test_a_link_in_the_results_is_refused(folder: Path, secret: Path) -> None:
    (folder / "results").mkdir()
    (folder / "results" / "mlp").symlink_to(secret.parent)
    (folder / "small.yaml").write_text(TEXT, encoding="utf-8")
    assert study.main([str(folder / "small.yaml"), "--table-only"]) == 2
    with pytest.raises(Exception, match="mlp is a link"):
        study_file.read(folder / "small.yaml")


@pytest.mark.timeout(180)
def test_a_kept_cell_that_is_a_pipe_or_link_is_refused_by_name(folder: Path, secret: Path) -> None:
    read = study_of(folder)
    first, second, *_ = read.cells()
    keep(first, accuracy=[0.5])
    first.path.unlink()
    os.mkfifo(first.path)
    with pytest.raises(ConfigError, match=r"fedavg-seed0\.csv: cannot be read: it is not a regular file"):
        tables.write_table(read)
    first.path.unlink()
    second.path.with_suffix(".failed.csv").symlink_to(secret)
    with pytest.raises(ConfigError, match=r"strong-prox-seed0\.failed\.csv: cannot be read: it is a link"):
        tables.write_table(read)


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ("epochs_total,accuracy\n2,0.5", "it has no column round, which every run writes"),
        ("round,accuracy\n1,0.5", "it has no column epochs_total, which every run writes"),
        *(
            (
                f"round,epochs_total,{name}\n1,2,{value}",
                f"its column {name} does not hold each client's accuracy, 0=0.5",
            )
            for name in ("client_accuracies", "tuned_client_accuracies")
            for value in ("0=0.5 1=a", "0=", "x", "0.5", "a=0.5")
        ),
    ],
)
def test_a_kept_cell_without_what_every_run_writes_is_refused_by_name(
    folder: Path, columns: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    more = "curves: {path: a.png, measure: accuracy, against: bytes}\n"
    text = TEXT.replace("{accuracy: last,", "{accuracy_over_epochs_1_to_2: first,")
    (folder / "small.yaml").write_text(text + more, encoding="utf-8")
    cell = next(study_file.read(folder / "small.yaml").cells())
    cell.path.parent.mkdir(parents=True)
    cell.path.write_text(f"{columns}\n", encoding="utf-8")
    cell.path.with_suffix(".yaml").write_text(to_yaml(cell.config()), encoding="utf-8")
    assert study.main([str(folder / "small.yaml"), "--table-only"]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and f"fedavg-seed0.csv: cannot be read: {reason}" in said


def test_accuracies_of_clients_may_be_empty_or_nan(folder: Path) -> None:
    path = folder / "kept.csv"
    path.write_text("round,epochs_total,client_accuracies\n1,2,\n2,4,0=0.5 3=1e-05 12=nan\n", encoding="utf-8")
    assert len(places.cell_table(path)) == 2


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (TEXT.replace("page.md", "../home/.bashrc"), "a path that ends in .md"),
        (TEXT + "heat_map: {path: ../home/id_rsa, measure: accuracy, label: a}\n", "a path that ends in .png"),
    ],
)
def test_pages_and_pictures_replace_no_file_of_another_kind(text: str, wrong: str, folder: Path) -> None:
    assert wrong in refused(folder, text=text)


def test_links_to_the_study_itself_are_the_users_own(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "shortcut").symlink_to(folder)
    (folder / "small.yaml").write_text(TEXT.replace("page.md", "../page.md"), encoding="utf-8")
    read = study_file.read(tmp_path / "shortcut" / "small.yaml")
    assert read.table == tmp_path / "page.md" and read.results == folder / "results"


def test_a_page_too_large_is_not_read(folder: Path) -> None:
    read = study_of(folder)
    with (folder / "page.md").open("wb") as file:
        file.truncate(places.MAX_TEXT_BYTES + 1)
    with pytest.raises(ConfigError, match=r"page\.md: cannot be read: it is larger than 4"):
        tables.place_of_table(read)


@pytest.mark.parametrize(("results", "wrong"), [("small.yaml", "small.yaml"), ("small.yaml/x", "small.yaml")])
def test_results_are_in_a_folder(results: str, wrong: str, folder: Path) -> None:
    """It was said by the first cell, as an error of the operating system."""
    message = refused(folder, text=TEXT.replace("results: results", f"results: {results}"))
    named = f"{results} is not allowed: {folder / wrong} is a file. Allowed: a folder."
    assert message == f"{folder / 'small.yaml'}: {named}"


def test_a_place_is_a_path(folder: Path) -> None:
    """The character NUL in one was a traceback."""
    message = refused(folder, text=TEXT.replace("results: results", 'results: "a\\0b"'))
    assert message.endswith(r"'a\x00b' is not allowed. Allowed: a path, without the character NUL.")


def test_an_absolute_path_is_taken_as_it_is(folder: Path, tmp_path: Path) -> None:
    (folder / "small.yaml").write_text(TEXT, encoding="utf-8")
    assert places.place(folder / "small.yaml", str(tmp_path / "a" / ".." / "b")) == tmp_path / "b"
