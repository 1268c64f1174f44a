from __future__ import annotations

import base64
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from raysim.errors import ResultsError
from raysim.report import compare, run_page
from raysim.report.plots import comparison_picture, run_picture
from raysim.storage.run_folder import RunFolder

EVIL = "<script>alert(1)</script>\"'&"


class Checker(HTMLParser):
    """Every tag is closed in its order; collects texts, attributes and tags."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attributes if name in ("src", "href", "srcset")]
        if tag not in ("meta", "img", "source"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def check(path: Path) -> Checker:
    checker = Checker()
    checker.feed(path.read_text(encoding="utf-8"))
    assert checker.open == []
    assert "script" not in checker.tags and "link" not in checker.tags
    return checker


def make(
    path: Path,
    rounds: int = 4,
    clients: int = 3,
    finish: bool = True,
    more: str = "",
    lift: float = 0.0,
    **summary: Any,
) -> Path:
    """A run's folder; ``more`` goes into its config, ``lift`` is added to its accuracies."""
    folder = RunFolder.create(
        path, f"method: {{name: fedavg}}\nworkload: {{name: digits}}\nnote: {json.dumps(EVIL)}\n{more}", {"cpu": EVIL}
    )
    for number in range(1, rounds + 1):
        judged = number % 2 == 0
        row: dict[str, Any] = {
            "round": number,
            "epochs_total": 3 * number,
            "accuracy": 0.2 * number + lift if judged else np.nan,
        }
        row |= {"loss": 1 / number if judged else np.nan, "train_loss": 0.5, "bytes_down": 1024, "bytes_up": 1024}
        folder.append_round(row)
        folder.append_clients(
            {
                "round": number,
                "client": client,
                "name": f"{EVIL}{client}",
                "samples": 10,
                "accuracy": 1 - client / clients,
            }
            for client in range(clients)
        )
    if finish:
        folder.finish({"method": "fedavg", "workload": "digits", "synthetic": False, "accuracy": 0.8} | summary)
    return path


def size(png: bytes) -> tuple[int, int]:
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")


def pixels(png: bytes) -> np.ndarray:
    from matplotlib.image import imread

    return np.asarray(imread(io.BytesIO(png)))


def coloured(png: bytes, colour: str) -> int:
    wanted = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return int((np.abs(pixels(png)[..., :3] - wanted).max(axis=-1) < 0.02).sum())


def frame(**columns: Any) -> pandas.DataFrame:
    count = len(next(iter(columns.values())))
    return pandas.DataFrame({"round": range(1, count + 1), **columns})


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes most of the time, and most tests are about the words."""
    monkeypatch.setattr(run_page, "run_picture", lambda *arguments: b"picture")
    monkeypatch.setattr(run_page, "cost_picture", lambda *arguments: b"picture")
    monkeypatch.setattr(compare, "comparison_picture", lambda *arguments: b"picture")
    monkeypatch.setattr(compare, "cost_picture", lambda *arguments: b"picture")


def test_curve_draws_each_series_that_is_there() -> None:
    rounds = frame(
        accuracy=[np.nan, 0.5, 0.9], loss=[np.nan, 2.0, 1.0], train_loss=[3.0, 2.0, 1.0], epochs_total=[1, 5, 9]
    )
    png = run_picture(rounds, "digits")
    assert size(png) == (960, 960)
    assert coloured(png, "#0072b2") > 500 and coloured(png, "#d55e00") > 500
    without = run_picture(rounds.drop(columns="train_loss"), "digits")
    assert coloured(without, "#d55e00") < 50
    assert (
        coloured(without, "#ffffff") > 100_000 and coloured(run_picture(rounds, "digits", dark=True), "#ffffff") < 1000
    )


def test_the_accuracy_of_a_personal_method_is_drawn_once() -> None:
    same = run_picture(frame(accuracy=[0.1, 0.4], client_accuracy_mean=[0.1, 0.4]), "")
    assert coloured(same, "#0072b2") < 50 and coloured(same, "#d55e00") > 500


@pytest.mark.parametrize(
    "rounds",
    [
        pandas.DataFrame(),
        frame(accuracy=[np.nan, np.nan]),
        frame(accuracy=[0.5], loss=[1.0], epochs_total=[2]),
        frame(accuracy=[0.1, 0.2], loss=[np.inf, 1e30]),
    ],
)
def test_odd_tables_still_give_a_picture(rounds: pandas.DataFrame) -> None:
    assert size(run_picture(rounds, "a $title_ {of} \\any kind")) == (960, 960)


def test_overlaid_runs_have_their_own_colours_and_any_label() -> None:
    runs = [(label, [frame(accuracy=[0.1, level], loss=[1.0, level])]) for label, level in (("_a$", 0.5), ("b", 0.9))]
    png = comparison_picture(runs, "two")
    for colour in ("#0072b2", "#d55e00"):
        assert coloured(png, colour) > 500


def test_page_is_self_contained_escaped_and_whole(tmp_path: Path) -> None:
    folder = make(tmp_path / f"run {EVIL.replace('/', '')}")
    picture = run_picture(frame(accuracy=[0.5]), "partition")
    (folder / "partition.png").write_bytes(picture)
    path = run_page.page(folder)
    assert path == folder / "report.html"
    found = check(path)
    assert len(found.addresses) == 5 and all(
        address.startswith("data:image/png;base64,") for address in found.addresses
    )
    assert base64.b64decode(found.addresses[4].partition(",")[2]) == picture
    text = path.read_text()
    assert "http:" not in text and "https:" not in text and "url(" not in text
    assert "prefers-color-scheme" in text and 'name="viewport"' in text and "default-src 'none'" in text
    assert (
        "".join(found.texts).count("<script>alert(1)</script>") >= 3
    )  # as text: the clients' names, config, environment
    assert "80.00\u202f%" in found.texts and "8.19\u202fkB" in found.texts


@pytest.mark.usefixtures("no_pictures")
def test_clients_are_sorted_by_their_last_accuracy_and_many_are_cut(tmp_path: Path) -> None:
    text = run_page.page(make(tmp_path / "few")).read_text()
    assert [float(value) for value in re.findall(r"width:([\d.]+)%", text)] == [33.3, 66.7, 100.0]
    many = run_page.page(make(tmp_path / "many", clients=100)).read_text()
    widths = [float(value) for value in re.findall(r"width:([\d.]+)%", many)]
    assert len(widths) == 60 and widths == sorted(widths) and (widths[0], widths[-1]) == (1.0, 100.0)
    assert "100 clients: 1.00\u202f% to 100.00\u202f%" in many and "40 in the middle are not shown" in many


@pytest.mark.usefixtures("no_pictures")
def test_only_the_last_rounds_are_listed(tmp_path: Path) -> None:
    text = run_page.page(make(tmp_path / "run", rounds=30, clients=1)).read_text()
    table = text.split("Last 20 rounds")[1].split("</table>")[0]
    assert re.findall(r"<tr><td>(\d+)</td>", table) == [str(number) for number in range(30, 10, -1)]


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize(
    ("synthetic", "title"), [(True, "fedavg on digits (synthetic data)"), (False, "fedavg on digits")]
)
def test_synthetic_data_is_said_in_the_title(tmp_path: Path, synthetic: bool, title: str) -> None:
    text = run_page.page(make(tmp_path / "run", synthetic=synthetic)).read_text()
    assert f"<title>{title}</title>" in text and f"<h1>{title}</h1>" in text


@pytest.mark.usefixtures("no_pictures")
def test_an_unfinished_synthetic_run_is_labelled_by_its_config(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", finish=False)
    assert "not finished" in run_page.page(folder).read_text()
    (folder / "config.yaml").write_text("workload: {name: synthetic}\nmethod: {name: fedavg}\n")
    assert "<h1>fedavg on synthetic (synthetic data)</h1>" in run_page.page(folder).read_text()


@pytest.mark.usefixtures("no_pictures")
def test_a_run_without_a_round_has_a_page(tmp_path: Path) -> None:
    check(run_page.page(make(tmp_path / "run", rounds=0, finish=False)))


@pytest.mark.usefixtures("no_pictures")
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
    found = check(target)
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


@pytest.mark.usefixtures("no_pictures")
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


@pytest.mark.usefixtures("no_pictures")
def test_a_repeated_run_is_no_second_seed(tmp_path: Path) -> None:
    runs = [make(tmp_path / name, more="seed: 3\n") for name in ("one", "two")]
    target, table = compare.compare(runs, tmp_path / "out.html")
    assert "Not counted, as another run has the same settings and seed: two." in target.read_text()
    frame = pandas.read_csv(table)
    assert frame["accuracy std"].isna().all() and frame["seeds"].tolist() == [3]


@pytest.mark.usefixtures("no_pictures")
def test_another_method_brings_its_name_and_not_its_options(tmp_path: Path) -> None:
    runs = [make(tmp_path / "a"), make(tmp_path / "b"), make(tmp_path / "c")]
    for run, method in zip(runs, ("fedavg", "fedprox, mu: 0.1", "fedprox, mu: 1.0"), strict=True):
        text = (run / "config.yaml").read_text().replace("name: fedavg", f"name: {method}")
        (run / "config.yaml").write_text(text)
    frame = pandas.read_csv(compare.compare(runs, tmp_path / "out.html")[1])
    assert frame["setting"].tolist() == ["fedavg", "fedprox, mu 0.1", "fedprox, mu 1.0"]
    target, _ = compare.compare(runs[:2], tmp_path / "out.html")
    assert "method.mu" not in target.read_text()


def test_the_band_of_seeds_is_drawn() -> None:
    tables = [frame(accuracy=[0.2 + lift, 0.5 + lift], loss=[1.0, 0.5]) for lift in (0.0, 0.2)]
    assert not np.array_equal(
        pixels(comparison_picture([("a", tables)], "")),
        pixels(comparison_picture([("a", [frame(accuracy=[0.3, 0.6], loss=[1.0, 0.5])])], "")),
    )


@pytest.mark.usefixtures("no_pictures")
def test_finished_reports_are_not_drawn_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done, going = make(tmp_path / "done", more="seed: 1\n"), make(tmp_path / "going", finish=False)
    for run in (done, going):
        run_page.page(run)
    drawn: list[tuple[object, ...]] = []

    def draw(*arguments: object) -> bytes:
        drawn.append(arguments)
        return b"picture"

    monkeypatch.setattr(run_page, "run_picture", draw)
    assert run_page.main([str(done), str(going)]) == 0
    assert len(drawn) == 2  # light and dark of the run that goes on
    assert run_page.main([str(done)]) == 0
    assert len(drawn) == 4  # asked for by itself it is made anew


@pytest.mark.usefixtures("no_pictures")
def test_the_comparison_lies_beside_the_first_run_and_a_repeat_with_a_star_works(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make(tmp_path / name)
    for _ in range(2):
        assert run_page.main([str(path) for path in sorted(tmp_path.iterdir())]) == 0
    assert "different workloads" not in (tmp_path / "compare.html").read_text()
    assert "synthetic data" not in (tmp_path / "compare.html").read_text()


def test_what_is_no_run_ends_with_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_page.main([str(tmp_path)]) == 2
    assert "config.yaml is missing" in capsys.readouterr().err
    with pytest.raises(ResultsError):
        run_page.page(tmp_path / "absent")
    with pytest.raises(SystemExit):
        run_page.main([str(tmp_path), "--out", "x.html"])
