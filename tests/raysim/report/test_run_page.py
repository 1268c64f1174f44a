from __future__ import annotations

import base64
import re
import shlex
from pathlib import Path

import pytest

from raysim.errors import ResultsError
from raysim.report import run_page
from raysim.results.result import load_result
from tests.raysim.report.pages import EVIL, check, make

pytestmark = pytest.mark.usefixtures("no_pictures")


def test_page_is_self_contained_escaped_and_whole(tmp_path: Path) -> None:
    folder = make(tmp_path / f"run {EVIL.replace('/', '')}")
    (folder / "devices.png").write_bytes(b"devices")
    path = run_page.page(folder)
    assert path == folder / "report.html"
    found = check(path)
    (address,) = found.addresses
    assert base64.b64decode(address.removeprefix("data:image/png;base64,")) == b"devices"
    assert path.read_bytes().count(b"picture</div>") == 4  # curves and costs, in a wide and a narrow form
    text = path.read_text()
    assert "http:" not in text and "https:" not in text and "url(" not in text
    assert "prefers-color-scheme" in text and 'name="viewport"' in text and "default-src 'none'" in text
    assert (
        "".join(found.texts).count("<script>alert(1)</script>") >= 3
    )  # as text: the clients' names, config, environment
    assert "80.00\u202f%" in found.texts and "8.19\u202fkB" in found.texts


def test_the_settings_and_the_command_stand_under_the_title(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", clients=3, more="training: {learning_rate: 0.3}\nseed: 7\n")
    found = check(run_page.page(folder))
    texts = [text for text in found.texts if text.strip()]
    assert texts[texts.index("fedavg · digits, 3 clients · rate 0.3 · seed 7") - 1] == "fedavg on digits"
    command = next(text for text in found.texts if text.startswith("python -m raysim.launch"))
    assert shlex.split(command)[3:] == [
        *("--method", "fedavg", "--note", EVIL, "--training.learning_rate", "0.3", "--seed", "7")
    ]


def test_clients_are_sorted_by_their_last_accuracy_and_many_are_cut(tmp_path: Path) -> None:
    text = run_page.page(make(tmp_path / "few")).read_text()
    assert [float(value) for value in re.findall(r'<meter value="([\d.]+)"', text)] == [0.333, 0.667, 1.0]
    many = run_page.page(make(tmp_path / "many", clients=100)).read_text()
    widths = [float(value) for value in re.findall(r'<meter value="([\d.]+)"', many)]
    assert len(widths) == 80 and widths == sorted(widths) and (widths[0], widths[-1]) == (0.01, 1.0)
    assert "1.00\u202f% to 100.00\u202f%" in many and "20 in the middle are not shown" in many


def test_only_the_last_rounds_are_listed(tmp_path: Path) -> None:
    text = run_page.page(make(tmp_path / "run", rounds=30, clients=1)).read_text()
    table = text.split("Last 20 rounds")[1].split("</table>")[0]
    assert re.findall(r"<tr><td>(\d+)</td>", table) == [str(number) for number in range(30, 10, -1)]


@pytest.mark.parametrize(
    ("synthetic", "title"), [(True, "fedavg on digits (synthetic data)"), (False, "fedavg on digits")]
)
def test_synthetic_data_is_said_in_the_title(tmp_path: Path, synthetic: bool, title: str) -> None:
    text = run_page.page(make(tmp_path / "run", synthetic=synthetic)).read_text()
    assert f"<title>{title}</title>" in text and f"<h1>{title}</h1>" in text


def test_an_unfinished_synthetic_run_is_labeled_by_its_config(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", finish=False)
    assert "not finished" in run_page.page(folder).read_text()
    (folder / "config.yaml").write_text("workload: {name: synthetic}\nmethod: {name: fedavg}\n")
    assert "<h1>fedavg on synthetic (synthetic data)</h1>" in run_page.page(folder).read_text()


def test_a_run_without_a_round_has_a_page(tmp_path: Path) -> None:
    check(run_page.page(make(tmp_path / "run", rounds=0, finish=False)))


def test_a_table_without_bytes_has_accuracies_without_that_cost(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", rounds=0, finish=False)
    (folder / "rounds.csv").write_text("round,local_epochs,accuracy,loss\n1,1,0.4,1.0\n2,1,0.95,0.5\n")
    assert "95.00\u202f%" in check(run_page.page(folder)).texts


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
    assert len(drawn) == 2  # wide and narrow of the run that goes on
    assert run_page.main([str(done)]) == 0
    assert len(drawn) == 4  # asked for by itself it is made anew


def test_pictures_are_drawn_while_the_partition_is_still_made(tmp_path: Path) -> None:
    folder = make(tmp_path / "run")

    def made() -> None:
        (folder / "partition.csv").write_text("client,name,samples,class_0,class_1\n0,client 0,7,3,4\n")

    texts = check(run_page.page(folder, load_result(folder), made)).texts
    assert "Training samples of 1 client by class" in texts


def test_what_is_no_run_ends_with_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_page.main([str(tmp_path)]) == 2
    assert "config.yaml is missing" in capsys.readouterr().err
    with pytest.raises(ResultsError):
        run_page.page(tmp_path / "absent")
    assert run_page.main([str(tmp_path), "--out", "x.html"]) == 2
