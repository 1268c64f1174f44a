from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from raysim.config.command_line import given_config, parse
from raysim.config.config_file import sealed
from raysim.config.run_config import default_config, to_dict, to_yaml
from raysim.errors import ConfigError
from raysim.launch import main


def refused(*argv: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(argv)
    return str(caught.value)


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_no_argument_is_the_default_run() -> None:
    invocation = parse([])
    assert invocation.config == default_config()
    assert (invocation.action, invocation.overrides, invocation.resume, invocation.verbose) == ("run", (), None, False)


def test_names_full_paths_bare_fields_and_hyphens() -> None:
    line = (
        "--method fedprox --workload.name=cifar10 --model mobilenet --workload.clients 20 --mu 0.1 --rounds=50 --seed 7"
        " --training.learning-rate 1e-3 --sampling-rate .5 --dashboard false --joins 3,2 --join_every 20"
        " --output 2024 --verbose"
    )
    invocation = parse(line.split())
    config, data = invocation.config, to_dict(invocation.config)
    assert [data[kind]["name"] for kind in ("method", "workload", "model")] == ["fedprox", "cifar10", "mobilenet"]
    assert (config.workload.clients, config.method.mu, config.schedule.rounds, config.seed) == (20, 0.1, 50, 7)
    assert (config.training.learning_rate, config.schedule.sampling_rate) == (1e-3, 0.5)
    assert (config.engine.dashboard, config.schedule.joins, config.output) == (False, (3, 2), "2024")
    assert invocation.verbose
    assert invocation.overrides[:5] == ("method.name", "workload.name", "model.name", "workload.clients", "method.mu")
    assert {"training.learning_rate", "seed", "output"} <= set(invocation.overrides)


def test_lists_in_brackets_negative_numbers_and_the_last_of_two() -> None:
    assert parse(["--joins", "[3, 2]", "--join_every", "4"]).config.schedule.joins == (3, 2)
    assert parse(["--model", "mlp", "--hidden", "64,32"]).config.model.hidden == (64, 32)
    assert parse(["--model", "mlp", "--hidden", "64"]).config.model.hidden == 64
    assert "seed: -1 is not allowed" in refused("--seed", "-1")  # a value, not an option
    assert parse(["--seed", "1", "--seed", "2"]).config.seed == 2


def test_files_lie_under_the_command_line_and_later_files_win(tmp_path: Path) -> None:
    first = write(tmp_path / "a.yaml", "method: fedprox\ntraining:\n  learning_rate: 1e-2\n  momentum: 0.1\nseed: 1\n")
    second = write(tmp_path / "b.yaml", "training: {momentum: 0.2}\nschedule:\nseed: 2\n")
    invocation = parse(["--seed", "3", "--config", first, f"--config={second}", "--mu", "0.5"])
    config = invocation.config
    assert (config.training.learning_rate, config.training.momentum, config.seed) == (1e-2, 0.2, 3)
    assert config.method.mu == 0.5  # the bare name belongs to the method that the file named
    assert set(invocation.overrides) == {
        "method.name",
        "training.learning_rate",
        "training.momentum",
        "seed",
        "method.mu",
    }


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    assert parse(["--config", write(tmp_path / "empty.yaml", "# nothing\n")]).config == default_config()


def test_a_finished_runs_config_repeats_it_also_with_another_method(tmp_path: Path) -> None:
    run = parse(["--method", "fedprox", "--mu", "0.5", "--clients", "7", "--joins", "3,2", "--join_every", "9"]).config
    path = write(tmp_path / "config.yaml", to_yaml(run))
    assert parse(["--config", path]).config == run
    other = parse(["--config", path, "--method", "fedavg"]).config
    assert to_dict(other) == {**to_dict(run), "method": {"name": "fedavg"}}


def test_resume_starts_from_the_folders_config(tmp_path: Path) -> None:
    run = default_config("fedprox", model="mlp")
    write(tmp_path / "config.yaml", to_yaml(run))
    invocation = parse(["--resume", str(tmp_path), "--mu", "0.5", "--actors", "3"])
    assert (invocation.resume, invocation.action) == (tmp_path, "run")
    assert invocation.overrides == ("method.mu", "engine.actors")
    expected = to_dict(run)
    expected["method"]["mu"], expected["engine"]["actors"] = 0.5, 3
    assert to_dict(invocation.config) == expected


def test_files_and_folders_may_lie_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path / "config.yaml", to_yaml(default_config("fedprox")))
    assert parse(["--resume=~/"]).resume == tmp_path
    assert parse(["--config=~/config.yaml", "--trust=~/"]).config == default_config("fedprox")


@pytest.mark.parametrize("line", ["--profile", "--profile --seed 1", "--engine.profile --rounds 3", "--profile=true"])
def test_an_option_that_is_true_or_false_needs_no_value(line: str) -> None:
    assert parse(line.split()).config.engine.profile is True


def test_print_config_is_a_config_file() -> None:
    invocation = parse(["--method", "fedprox", "--print-config", "--mu", "0.3"])
    assert invocation.action == "print-config"
    assert given_config(yaml.safe_load(invocation.text)) == invocation.config
    assert parse(["--print_config"]).action == "print-config"


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("--training.learnin_rate 1", "Unknown option --training.learnin_rate. Did you mean --training.learning_rate?"),
        ("--lr 1", "Unknown option --lr. Did you mean --training.learning_rate?"),
        ("--schedule.batch_size 1", "Did you mean --training.batch_size or --evaluation.batch_size?"),
        ("--conifg x", "Did you mean --config?"),
        ("--no-dashboard", "Unknown option --no-dashboard. Write --engine.dashboard false."),
        ("--learning-rat 1", "Unknown option --learning-rat. Did you mean --training.learning_rate?"),
        ("--metod fedavg", "Did you mean --method?"),
        ("--xyzzy 1", "Unknown option --xyzzy. Sections: method"),
        ("--method fedavg --mu 1", "Unknown option --mu. --mu belongs to methods apple, fedprox, moon: choose one"),
        ("--method fedavg --method.margin_weight 1", "--method.margin_weight belongs to fedld: choose --method fedld"),
        ("--workload digits --setting SM", "--setting belongs to tudataset: choose --workload tudataset or leave it"),
        ("--workload tudataset --augment none", "belongs to workloads digits, cifar10, "),
        ("--method fedprxo", "Unknown method 'fedprxo'. Did you mean fedprox?"),
        ("--method fedprxo --help", "Unknown method 'fedprxo'"),
        ("--batch_size 8", "--batch_size is ambiguous: write --training.batch_size or --evaluation.batch_size."),
        ("--rounds", "--rounds needs a value"),
        ("--method --seed 1", "--method needs a value"),
        ("--seed --dashboard", "--seed needs a value"),
        ("--config --seed 1", "--config needs a value"),
        ("--rounds many", "schedule.rounds: 'many' is not allowed. Allowed: a whole number ≥ 1; default 20."),
        ("--method fedavg --learning_rate x", "Allowed: a finite number > 0; default 0.1."),  # the method's own
        (
            "--method fedssp --workload toy-graphs --optimizer SGD",
            "Did you mean sgd? Allowed: sgd | adam | adamw; default adamw.",
        ),
        ("--dataset mnist", "Unknown option --dataset. That is --workload here."),
        ("--num-gpus 1", "That is --engine.gpus_per_client here."),
        ("--privacy.clip 1", "privacy.clip: 1.0 has no effect with privacy.kind none."),  # the default, but typed
        ("fedavg", "Unexpected argument 'fedavg'"),
        ("--model cnn mlp", "Unexpected argument 'mlp'. Options are written --section.option VALUE; see --help."),
        ("--joins 3 2 3", "several numbers of one with commas between them (--joins 3,2); see --help."),
        ("--rounds 5 --ui 8300", "'8300'. The page's address comes behind an equals sign: --ui=HOST:PORT; see --help."),
        ("--rounds 5 --verbose 7", "Unexpected argument '7'. Options are written --section.option VALUE; see --help."),
        ("--method mine.py", "or mine:Class for a class of this file."),
        ("--method ./own/mine.py:Mine", "not by its file: write own.mine:Mine."),
        ("-v", "Unexpected argument '-v'"),
        ("--", "Unexpected argument '--'"),
        ("--help=all", "--help takes no value"),
        ("--config no_such.yaml", "--config no_such.yaml: there is no such file"),
        (
            "--resume no_such_folder",
            "--resume no_such_folder: no config.yaml in it, so this is not the folder of a run",
        ),
    ],
)
def test_each_wrong_line_gets_one_message(line: str, wanted: str, capsys: pytest.CaptureFixture[str]) -> None:
    """test_options.py, test_sections.py and test_registry.py have the values and names that are refused."""
    message = refused(*line.split())
    assert wanted in message
    assert "\n" not in message and "usage" not in message
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "training:\n  learnin_rate: 1\n",
            "Unknown option training.learnin_rate. Did you mean training.learning_rate?",
        ),
        ("training: [1\n", "not valid YAML"),
        ("- 1\n- 2\n", "expected sections"),
        ("method: {name: [1]}\n", "method.name: [1] is not allowed"),
    ],
)
def test_each_wrong_file_gets_a_message(tmp_path: Path, text: str, wanted: str) -> None:
    assert wanted in refused("--config", write(tmp_path / "c.yaml", text))


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_bytes(b"\xff\xfe\x00\x80")
    assert "cannot be read" in refused("--config", str(tmp_path / "c.yaml"))
    assert "cannot be read" in refused("--config", str(tmp_path))


def test_help_shows_every_option_with_default_range_and_source_in_100_columns() -> None:
    invocation = parse(["--help", "--method", "fedprox", "--model", "alexnet"])
    assert invocation.action == "help"
    data = to_dict(default_config("fedprox", model="alexnet"))
    for section, values in data.items():
        for name in values if isinstance(values, dict) else ():
            assert name == "name" or f"--{section}.{name} " in invocation.text
    assert "--seed " in invocation.text and "--resume FOLDER" in invocation.text
    assert "[default 0.5 · a finite number ≥ 0, < 1 · Krizhevsky et al. 2012]" in " ".join(invocation.text.split())
    assert "method fedprox: FedProx" in invocation.text
    assert max(map(len, invocation.text.splitlines())) <= 100
    assert "neunet" not in invocation.text  # another method's


def test_help_of_a_model_without_options_still_names_it() -> None:
    assert "model cnn: " in parse(["-h"]).text


def test_help_follows_the_names_of_a_file(tmp_path: Path) -> None:
    path = write(tmp_path / "c.yaml", "method: {name: fedprox, mu: 0.7}\n")
    text = parse(["--config", path, "--help"]).text
    assert "--method.mu" in text and "0.7" not in text  # the default is shown, not the file's value


def test_list_shows_all_names_with_their_meaning() -> None:
    invocation = parse(["--list"])
    assert invocation.action == "list"
    for name in ("fedavg", "fedrad", "digits", "synthetic", "cnn", "resnet50"):
        assert f"\n  {name} " in invocation.text
    assert "FedProx: FedAvg whose local loss" in invocation.text
    assert max(map(len, invocation.text.splitlines())) <= 100


def test_an_earlier_name_is_read_with_a_note(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAYSIM_DATA", raising=False)  # where the data would be found all the same
    invocation = parse(["--workload=mnist", "--data-dir", "there"])
    assert invocation.config.workload.path == "there"
    assert invocation.notes == ("--data-dir is called --path now; the earlier name goes with the next release",)
    full = parse(["--method=fedavg", "--workload=ogb", "--model=gin", "--workload.data=there"])
    assert full.config.workload.path == "there"
    assert full.notes == ("--workload.data is called --workload.path now; the earlier name goes with the next release",)
    assert parse(["--workload=mnist", "--path", "there"]).notes == ()
    assert "Unknown option --data." in refused("--workload=digits", "--data", "x")
    assert main(["--workload=mnist", "--data_dir=nowhere", "--engine.backend=inline"]) == 2
    assert capsys.readouterr().err.startswith("note: --data_dir is called --path now")


def test_a_file_alone_sends_no_run_to_a_remote_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "a.yaml", "output: s3://elsewhere/loot\n")
    for words in ([], ["--trust", str(tmp_path / "other")]):
        assert main(["--config", file, *words]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and f"{file} names a remote folder, output 's3://elsewhere/loot'" in said
        assert f"add --output s3://elsewhere/loot, or --trust {tmp_path}" in said
    for words, output in (
        (["--output", "s3://mine/run"], "s3://mine/run"),
        (["--output="], ""),
        (["--trust", str(tmp_path)], "s3://elsewhere/loot"),
    ):
        assert parse(["--config", file, *words]).config.output == output
    near = write(tmp_path / "b.yaml", "output: runs/mine\n")
    assert parse(["--config", near]).config.output == "runs/mine"


def test_the_remote_folder_of_a_run_does_not_keep_it_from_being_resumed(tmp_path: Path) -> None:
    write(tmp_path / "config.yaml", sealed("method: {name: fedavg}\noutput: s3://mine/run\n"))
    assert parse(["--resume", str(tmp_path)]).config.output == "s3://mine/run"
