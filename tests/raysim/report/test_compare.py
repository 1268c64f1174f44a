"""The page that compares runs, and its table."""

from __future__ import annotations

import re
from pathlib import Path

import pandas
import pytest

import raysim
from raysim.report import compare, run_page
from tests.raysim.report.pages import check, make

pytestmark = pytest.mark.usefixtures("no_pictures")


def test_comparison(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = make(tmp_path / "a" / "run", more="seed: 0\n")
    second = make(tmp_path / "b" / "run", synthetic=True, workload="synthetic", more="model: {name: mlp}\nseed: 0\n")
    target = tmp_path / "compare.html"
    assert run_page.main([str(first), str(second), "--out", str(target)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed == [
        str(first / "report.html"),
        str(second / "report.html"),
        *(str(tmp_path / name) for name in ("compare.html", "compare.csv", "compare-differences.csv")),
        *(str(tmp_path / name) for name in ("compare-runs.csv", "compare.md", "compare.tex")),
    ]
    found = check(target, scripts=1)
    assert [address for address in found.addresses if not address.startswith("data:")] == [
        "a/run/report.html",
        "b/run/report.html",
    ]
    assert "a/run" in found.texts and "b/run (synthetic data)" in found.texts
    text = target.read_text()
    assert "<h1>Comparison of 2 runs (partly synthetic data)</h1>" in text
    assert "different workloads (digits, synthetic)" in text


def test_a_place_where_no_page_can_be_is_refused_before_pages_are_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [str(make(tmp_path / name, more=f"seed: {seed}\n")) for seed, name in enumerate("ab")]
    assert run_page.main([*runs, "--out", str(tmp_path / "new" / "both.html")]) == 2
    assert f"there is no folder {tmp_path / 'new'}. Make it, or name another page" in capsys.readouterr().err
    assert run_page.main([*runs, "--out", str(tmp_path)]) == 2
    assert f"--out {tmp_path}: it is a folder. Name a page in it" in capsys.readouterr().err
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert run_page.main(runs) == 2
    assert f"{tmp_path} cannot be written. Name a page in another folder" in capsys.readouterr().err
    assert not [*tmp_path.rglob("*.html")]


def seeds(root: Path) -> list[Path]:
    """Two values of an option, each with seeds 0, 1 and 2; the last accuracies are 80, 82, 84 and 60, 62, 64 %."""
    return [
        make(
            root / f"run-{batch}-{seed}",
            more=f"training: {{batch_size: {batch}}}\nengine: {{actors: {seed}}}\nseed: {seed}\n",
            lift=0.02 * seed - (0.2 if batch == 32 else 0.0),
        )
        for seed in range(3)
        for batch in (16, 32)
    ]


def written(runs: list[Path], target: Path) -> str:
    """The text of the page that compares the runs."""
    return compare.write_page(raysim.compare(runs), target).read_text()


def test_seeds_of_a_setting_are_one_line_with_the_options_that_differ(tmp_path: Path) -> None:
    text = written(seeds(tmp_path), tmp_path / "out.html")
    results = text.split("<h2>Results</h2>")[1].split("</table>")[0]
    assert re.findall(r"<th[^>]*>([^<]*)</th>", results)[:3] == ["training.batch_size", "seeds", "accuracy (%)"]
    rows = [re.findall(r"<td[^>]*>\s*(?:<strong>)?([^<]*?)\s*<", row)[:3] for row in results.split("<tr>")[2:]]
    assert rows == [["16", "0, 1, 2", "82.00 ± 2.00"], ["32", "0, 1, 2", "62.00 ± 2.00"]]
    assert results.count("<strong>") == 1 and "Bold: the best mean of a column" in text
    # Bytes in one unit: 4 rounds of 1024 bytes up and 1024 down.
    assert "sent and received (kB)" in results and ">8.19<" in results and ">4<" in results
    assert results.count("accuracy (%)") == 2  # and the best; the measure that is compared stands there once
    differences = text.split("<h2>Differences over equal seeds</h2>")[1]
    assert '<td class="text">batch_size 32 − batch_size 16</td>' in differences
    assert "−20.00 [−20.00, −20.00], 3 seeds" in differences and "<h2>Tests of these differences</h2>" in differences
    assert text.split("<h2>Runs</h2>")[1].count("<tr>") == 7


def test_a_repeated_run_is_no_second_seed(tmp_path: Path) -> None:
    runs = [make(tmp_path / name, more="seed: 3\n") for name in ("one", "two")]
    text = written(runs, tmp_path / "out.html")
    assert "Not counted, as another run has the same settings and seed: two." in text and "80.00 ±" not in text


def test_another_method_brings_its_name_and_not_its_options(tmp_path: Path) -> None:
    runs = [make(tmp_path / "a"), make(tmp_path / "b")]
    text = (runs[1] / "config.yaml").read_text().replace("name: fedavg", "name: fedprox, mu: 0.1")
    (runs[1] / "config.yaml").write_text(text)
    assert "method.mu" not in written(runs, tmp_path / "out.html")


def test_tables_lie_beside_the_page_by_the_measures_that_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [str(path) for path in seeds(tmp_path)]
    words = [*runs, "--measure", "rounds_to_0.75", "--measure", "accuracy", "--against", "batch_size 32"]
    target = tmp_path / "out.html"
    assert run_page.main([*words, "--out", str(target)]) == 0
    text, table = target.with_suffix(".md").read_text(), pandas.read_csv(target.with_suffix(".csv"))
    assert "| batch_size 16 | 4 (3) | **82.00 ± 2.00** (3) |\n| batch_size 32 |  | 62.00 ± 2.00 (3) |" in text
    assert "batch_size 16 − batch_size 32 | +20.00 [+20.00, +20.00], 3 seeds |" in text
    assert " ".join(text.split()).count(f"Made by `python -m raysim.report {runs[0]}") == 1
    assert table["mean"].tolist() == pytest.approx([4, 0.82, 0.62])
    assert "batch\\_size 32" in target.with_suffix(".tex").read_text()
    assert pandas.read_csv(tmp_path / "out-runs.csv")["seed"].tolist() == [0, 1, 2, 0, 1, 2]
    for more, message in (
        (["--measure", "acuracy"], "no measure 'acuracy'. Did you mean accuracy?"),
        (["--measure", "rounds_to_0.99"], "no run has a value of rounds_to_0.99: no run reached it"),
        (["--measure", "local_gain"], "a gain over runs of --method local on the same data"),
        (["--against", "batch_size 64"], "no row 'batch_size 64'."),
        (["--out", str(tmp_path / "a.md")], "this is the name of a table beside the page"),
    ):
        assert run_page.main([*runs, *more]) == 2
        assert message in capsys.readouterr().err


def test_the_comparison_lies_beside_the_first_run_and_a_repeat_with_a_star_works(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make(tmp_path / name)
    for _ in range(2):
        assert run_page.main([str(path) for path in sorted(tmp_path.iterdir())]) == 0
    assert "different workloads" not in (tmp_path / "compare.html").read_text()
    assert "synthetic data" not in (tmp_path / "compare.html").read_text()
