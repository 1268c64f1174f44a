"""The page that compares runs, and its table."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas
import pytest

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
        str(target),
        str(tmp_path / "compare.csv"),
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


def test_seeds_of_a_setting_are_one_line_with_the_options_that_differ(tmp_path: Path) -> None:
    target, table = compare.compare(seeds(tmp_path), tmp_path / "out.html")
    text = target.read_text()
    results = text.split("<h2>Results</h2>")[1].split("</table>")[0]
    assert re.findall(r"<th[^>]*>([^<]*)</th>", results)[:3] == ["training.batch_size", "seeds", "accuracy (%)"]
    rows = [re.findall(r"<td[^>]*>([^<]*)</td>", row)[:3] for row in results.split("<tr>")[2:]]
    assert rows == [["16", "0, 1, 2", "82.00 ± 2.00"], ["32", "0, 1, 2", "62.00 ± 2.00"]]
    # Bytes in one unit: 4 rounds of 1024 bytes up and 1024 down.
    assert "sent and received (kB)" in results and ">8.19<" in results and ">4<" in results
    assert text.split("<h2>Runs</h2>")[1].count("<tr>") == 7
    frame = pandas.read_csv(table)
    assert frame["setting"].tolist() == ["batch_size 16", "batch_size 32"]
    assert frame["training.batch_size"].tolist() == [16, 32] and frame["seeds"].tolist() == ["0 1 2", "0 1 2"]
    np.testing.assert_allclose(frame[["accuracy", "accuracy std"]], [[0.82, 0.02], [0.62, 0.02]])


def test_a_repeated_run_is_no_second_seed(tmp_path: Path) -> None:
    runs = [make(tmp_path / name, more="seed: 3\n") for name in ("one", "two")]
    target, table = compare.compare(runs, tmp_path / "out.html")
    assert "Not counted, as another run has the same settings and seed: two." in target.read_text()
    frame = pandas.read_csv(table)
    assert frame["accuracy std"].isna().all() and frame["seeds"].tolist() == [3]


def test_another_method_brings_its_name_and_not_its_options(tmp_path: Path) -> None:
    runs = [make(tmp_path / "a"), make(tmp_path / "b"), make(tmp_path / "c")]
    for run, method in zip(runs, ("fedavg", "fedprox, mu: 0.1", "fedprox, mu: 1.0"), strict=True):
        text = (run / "config.yaml").read_text().replace("name: fedavg", f"name: {method}")
        (run / "config.yaml").write_text(text)
    frame = pandas.read_csv(compare.compare(runs, tmp_path / "out.html")[1])
    assert frame["setting"].tolist() == ["fedavg", "fedprox, mu 0.1", "fedprox, mu 1.0"]
    target, _ = compare.compare(runs[:2], tmp_path / "out.html")
    assert "method.mu" not in target.read_text()


def test_the_comparison_lies_beside_the_first_run_and_a_repeat_with_a_star_works(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make(tmp_path / name)
    for _ in range(2):
        assert run_page.main([str(path) for path in sorted(tmp_path.iterdir())]) == 0
    assert "different workloads" not in (tmp_path / "compare.html").read_text()
    assert "synthetic data" not in (tmp_path / "compare.html").read_text()
