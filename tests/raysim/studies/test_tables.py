"""The table of a study: measures, units, and its place in the page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from raysim import study
from raysim.studies import study_file, tables
from tests.raysim.small_study import TEXT, keep


def test_a_row_may_show_another_measure_in_the_place_of_one(small: Path) -> None:
    """Clients' accuracy after fine-tuning, in the column of methods whose clients have models of their own."""
    tuned = "shows: {accuracy: tuned_client_accuracy_mean}, evaluation.fine_tune: 2"
    small.write_text(TEXT.replace("{method.name: fedavg}", f"{{method.name: fedavg, {tuned}}}"), encoding="utf-8")
    for cell in study_file.read(small).cells():
        keep(cell, accuracy=[0.1, 0.2, 0.3], tuned_client_accuracy_mean=[0.4, 0.5, 0.6])
        assert cell.config().evaluation.fine_tune == (2 if cell.row == "FedAvg" else 0)
    tables.write_table(study_file.read(small))
    page = (small.parent / "page.md").read_text(encoding="utf-8")
    assert "| FedAvg | 60.00 ± 0.00 (2) | 30.00 ± 0.00 (2) |" in page  # last round tuned, best round as it is
    assert "| Strong prox | 30.00 ± 0.00 (2) | 30.00 ± 0.00 (2) |" in page


def test_every_measure_has_its_unit(small: Path) -> None:
    """A loss of 0.7286 was printed as 72.86 and bytes as 1924000000.00, both in percent."""
    text = TEXT.replace(
        "{accuracy: last, best_accuracy: best}",
        "{accuracy: last, best_loss: loss, bytes_up: sent, system_loss: {title: system loss, unit: plain}}",
    )
    small.write_text(text, encoding="utf-8")
    for cell in study_file.read(small).cells():
        keep(cell, accuracy=[0.1, 0.2, 0.3], loss=[2.0, 0.7286, 0.9], bytes_up=19_240_000, system_loss=2.5)
    tables.write_table(study_file.read(small))
    page = (small.parent / "page.md").read_text(encoding="utf-8")
    assert "|  | MLP, last (%) | MLP, loss | MLP, sent (MB) | MLP, system loss | Logistic, last (%) |" in page
    row = "| FedAvg | 30.00 ± 0.00 (2) | 0.7286 ± 0.0000 (2) | 19.24 (2) | 2.5000 ± 0.0000 (2) | 30.00 (1) |"
    assert row in page


def test_a_measure_that_no_cell_has_is_said(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small.write_text(TEXT.replace("{accuracy: last,", "{auc: last,"), encoding="utf-8")
    keep(next(study_file.read(small).cells()), accuracy=[0.5])
    assert study.main([str(small), "--table-only"]) == 0
    assert "no finished cell has a value of auc" in capsys.readouterr().err
    more = "heat_map: {path: h.png, measure: accuracy, label: a}\ncurves: {path: c.svg, measure: auc, against: round}\n"
    small.write_text(TEXT + more, encoding="utf-8")
    assert study.main([str(small), "--table-only"]) == 0
    said = capsys.readouterr().err
    assert said.count("no finished cell") == 1 and "has a value of auc;" in said
    small.write_text(TEXT + "heat_map: {path: h.png, measure: tail_accuracy, label: a}\n", encoding="utf-8")
    assert study.main([str(small), "--table-only", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {each["measure"] for each in told["values"]} == {"accuracy", "best_accuracy"}  # those of the table alone


@pytest.mark.parametrize("second", [tables.BEGIN, "<!-- table small: written by raysim.study -->"])
def test_only_the_table_of_the_study_is_replaced(second: str, small: Path) -> None:
    page, first = small.parent / "page.md", "<!-- table other: written by raysim.study -->"
    page.write_text(f"a\n{first}\nold\n{tables.END}\nb\n{second}\nold\n{tables.END}\nc\n", encoding="utf-8")
    tables.write_table(study_file.read(small))
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"a\n{first}\nold\n{tables.END}\nb\n{second}\n| % |") and text.endswith("c\n")


def test_the_table_of_another_study_is_not_replaced(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two studies with one new page each wrote their table over the other's, and nothing was said."""
    page, other = small.parent / "page.md", small.with_name("other one.yaml")
    for file in (small, other):
        file.write_text(TEXT.replace("Strong", file.stem), encoding="utf-8")
    for cell in (*study_file.read(small).cells(), *study_file.read(other).cells()):
        keep(cell, accuracy=[0.5])
    assert study.main([str(other), "--table-only"]) == study.main([str(other), "--table-only"]) == 0
    before = page.read_text(encoding="utf-8")
    assert study.main([str(small), "--table-only"]) == 2
    said = capsys.readouterr().err
    assert "page.md has the table of another study, made by 'other one.yaml', where" in said
    named = "<!-- table small: written by raysim.study -->"
    assert f"Add the lines {named} and {tables.END} to the page" in said
    assert page.read_text(encoding="utf-8") == before
    page.write_text(f"{before}\n{named}\n{tables.END}\n", encoding="utf-8")
    assert study.main([str(small), "--table-only"]) == study.main([str(other), "--table-only"]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.count("| other one prox |") == text.count("| small prox |") == 1


def test_the_title_of_a_new_page_is_text(small: Path) -> None:
    study = replace(study_file.read(small), title="A <script>x</script> [b](http://c)", table=small.parent / "new.md")
    tables.write_table(study)
    heading = study.table.read_text(encoding="utf-8").splitlines()[0]
    assert heading.startswith("# A &lt;script>") and "](" not in heading.replace("]\\(", "")


def test_a_table_says_what_its_epsilon_is_about(small: Path) -> None:
    more = "measures: {epsilon: {title: ε, unit: plain}, accuracy: last"
    small.write_text(TEXT.replace("measures: {accuracy: last", more), encoding="utf-8")
    words = "sampling: poisson, one client added or removed", "sampling: fixed, one client replaced"
    for cell in study_file.read(small).cells():
        keep(cell, accuracy=[0.5], epsilon=1.2, neighbors=words[cell.row == "FedAvg"])
    tables.write_table(study_file.read(small))
    page = (small.parent / "page.md").read_text(encoding="utf-8")
    assert f"ε: {words[1]} (FedAvg); {words[0]} (Strong prox).\n\n| " in page
    for cell in study_file.read(small).cells():
        keep(cell, accuracy=[0.5], epsilon=1.2, neighbors=words[0])
    tables.write_table(study_file.read(small))
    assert f"ε: {words[0]}.\n\n| " in (small.parent / "page.md").read_text(encoding="utf-8")


def test_gains_are_over_the_row_that_trains_alone(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Seed by seed, and costs say how many runs they are of; without such a row the study is refused."""
    wanted = "measures: {local_gain: gain, rounds_to_0.8: rounds to 80 %, accuracy: last"
    text = TEXT.replace("measures: {accuracy: last", wanted).replace("base:", "base:\n  evaluation.each_client: true")
    small.write_text(text, encoding="utf-8")
    assert study.main([str(small), "--workers", "1"]) == 2
    assert (
        "local_gain: a client's gain is over what it reaches alone, and no row in column MLP" in capsys.readouterr().err
    )
    small.write_text(text.replace("rows:", "rows:\n  Alone: {method.name: local}"), encoding="utf-8")
    for cell in study_file.read(small).cells():
        share = {"Alone": 0.5, "FedAvg": (0.7, 0.9)[cell.seed > 0], "Strong prox": 0.4}[cell.row]
        keep(cell, accuracy=[0.1, share], client_accuracies=f"0={share} 1={share}")
    tables.write_table(study_file.read(small))
    page = (small.parent / "page.md").read_text(encoding="utf-8")
    assert "| FedAvg | 30.00 ± 14.14 (2) | 2 (1) |" in page and "| Strong prox | -10.00 ± 0.00 (2) |  |" in page
    assert "Costs of an accuracy are means over the runs that reached it" in page
