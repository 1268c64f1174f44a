"""Runs of a user's own data, models and methods from Python."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import raysim
from raysim.config.run_config import to_dict
from raysim.errors import ConfigError, ResultsError
from raysim.launch import main
from raysim.methods.fedavg import FedAvg
from raysim.methods.fedprox import FedProx
from raysim.running.python_objects import config_of
from raysim.workloads.errors import WorkloadError
from tests.fingerprint import fingerprint
from tests.own_data import QUICK, Items, Net, samples, seeded, three_clients


def run(output: Path, method: Any = "fedavg", **given: Any) -> Any:
    chosen: dict[str, Any] = {"model": seeded(), "clients": three_clients(), "test": samples(20, 9)}
    return raysim.run(method, **{**QUICK, **chosen, "output": str(output), **given})


def test_own_data_and_model_train_and_leave_a_whole_folder(tmp_path: Path) -> None:
    module = seeded()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    found = run(tmp_path / "run", "fedprox", mu=0.1, model=module, rounds=8)
    assert found.rounds["accuracy"].iloc[-1] > found.rounds["accuracy"].iloc[0]
    assert found.config["method"]["mu"] == 0.1
    assert isinstance(found.model, Net)
    assert all(torch.equal(before[name], tensor) for name, tensor in module.state_dict().items())
    assert not torch.equal(found.model.head.weight, module.head.weight)
    assert found.config["workload"]["name"] == found.config["model"]["name"] == "given"
    assert len(found.config["workload"]["digest"]) == len(found.config["model"]["digest"]) == 64
    assert "class Net" in (tmp_path / "run" / "source.txt").read_text()


@pytest.mark.parametrize(
    ("method", "options", "expected"),
    [
        ({"method": "fedprox", "schedule.rounds": 50, "training": {"momentum": 0.5}}, {"rounds": 7, "mu": 0.2}, 7),
        ({"method": "fedprox", "rounds": 50, "method.mu": 0.3}, {"schedule.rounds": 7, "method": {"mu": 0.2}}, 7),
        (FedProx(mu=0.5), {"rounds": 7, "mu": 0.2}, 7),
        (FedProx(mu=0.5), {"schedule": {"rounds": 7}, "method.mu": 0.2}, 7),
        (None, {"method.name": "fedprox", "rounds": 7, "mu": 0.2}, 7),
    ],
)
def test_a_keyword_wins_by_whichever_name(method: Any, options: dict[str, Any], expected: int) -> None:
    """The settings mapping and the instance's field won, without a word, over a keyword of the other name."""
    config, _ = config_of(method, None, {"workload.name": "synthetic", **options})
    assert (config.schedule.rounds, config.method.mu) == (expected, 0.2)


def test_one_option_by_two_names_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"schedule\.rounds is given twice, .* Leave one out"):
        config_of("fedavg", None, {"rounds": 7, "schedule.rounds": 8})


def test_a_default_that_nothing_reads_is_refused_as_a_keyword_of_its_own() -> None:
    """Sections, and settings in the place of a method, may be all that a run's file has."""
    for name in ("candidates", "schedule.candidates"):
        with pytest.raises(ConfigError, match=r"schedule\.candidates: 2\.0 has no effect with schedule\.sampling"):
            config_of("fedavg", None, {"workload": "digits", name: 2.0})
    stored = to_dict(config_of("fedavg", None, {"workload": "digits"})[0])
    assert config_of(None, None, stored)[0] == config_of(stored, None, {})[0]


@pytest.mark.parametrize("name", ["test_share", "workload.test_share"])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_the_share_of_tests_is_the_one_that_was_given(name: str, share: float) -> None:
    whole: dict[str, Any] = {"test": samples(20, 9)} if not share else {}
    for method, options in (("fedavg", {name: share}), ({"method": "fedavg", name: share}, {})):
        assert config_of(method, None, options, seeded(), three_clients(), **whole)[0].workload.test_share == share
    assert config_of("fedavg", None, {}, seeded(), three_clients())[0].workload.test_share == 0.2


def test_arrays_that_run_backwards_or_are_of_another_machine(tmp_path: Path) -> None:
    pairs, tests = three_clients(), samples(20, 9)
    turned = [(np.ascontiguousarray(x[:, ::-1])[:, ::-1], y.astype(">u2")) for x, y in pairs]
    foreign = (np.ascontiguousarray(tests[0][:, ::-1])[:, ::-1], tests[1].astype(">i8"))
    assert turned[0][0].strides[1] < 0 and foreign[0].strides[1] < 0
    one, other = run(tmp_path / "one", test=tests), run(tmp_path / "other", clients=turned, test=foreign)
    assert fingerprint(one.folder) == fingerprint(other.folder)


def test_a_run_is_resumed_without_its_methods_name(tmp_path: Path) -> None:
    sizes = {"train_size": 300, "test_size": 100}
    options = {"workload": "synthetic", "model": "logistic", **sizes, **QUICK, "rounds": 1}
    raysim.run("fedprox", **options, output=str(tmp_path / "run"))
    found = raysim.run(resume=tmp_path / "run", rounds=2)
    assert len(found.rounds) == 2 and found.config["method"]["name"] == "fedprox"


def test_a_module_keeps_its_initial_values_and_a_factory_has_the_seeds(tmp_path: Path) -> None:
    def first(name: str, **given: Any) -> Any:
        found = run(tmp_path / name, training={"learning_rate": 1e-9}, rounds=1, **given)
        return found.model.body.weight

    assert torch.allclose(first("module", model=seeded(3)), seeded(3).body.weight, atol=1e-6)
    assert torch.equal(first("class", model=Net, seed=0), first("function", model=lambda: Net(), seed=0))
    assert not torch.equal(first("seed-0", model=Net, seed=0), first("seed-1", model=Net, seed=1))
    assert first("task", model=lambda task: Net(task.classes + 4)).shape == (7, 4)


@pytest.mark.parametrize(
    "form",
    [
        lambda pairs: [(torch.tensor(x), torch.tensor(y)) for x, y in pairs],
        lambda pairs: [torch.utils.data.TensorDataset(torch.tensor(x), torch.tensor(y)) for x, y in pairs],
        lambda pairs: [Items(x, y) for x, y in pairs],
        lambda pairs: [[x.astype(np.float64), y.astype(np.int8)] for x, y in pairs],
    ],
    ids=["tensors", "TensorDataset", "Dataset", "lists"],
)
def test_all_forms_of_data_are_the_same_data(tmp_path: Path, form: Any) -> None:
    one, other = run(tmp_path / "arrays"), run(tmp_path / "form", clients=form(three_clients()))
    assert fingerprint(one.folder) == fingerprint(other.folder)


def test_a_tensor_dataset_of_ones_own_is_read_by_its_own_items(tmp_path: Path) -> None:
    class Halves(torch.utils.data.TensorDataset):
        def __getitem__(self, index: Any) -> Any:
            x, y = (tensor[index] for tensor in self.tensors)
            return x / 2, y

    pairs = three_clients()
    own = [Halves(torch.tensor(x), torch.tensor(y)) for x, y in pairs]
    one, other = run(tmp_path / "a", clients=own), run(tmp_path / "b", clients=[(x / 2, y) for x, y in pairs])
    assert fingerprint(one.folder) == fingerprint(other.folder)


def test_a_dict_of_tests_for_a_list_of_clients_goes_by_number(tmp_path: Path) -> None:
    tests = [samples(5 + number, 7) for number in range(3)]
    by_number = {number: tests[number] for number in (2, 0, 1)}
    one, other = run(tmp_path / "a", "fedbn", test=tests), run(tmp_path / "b", "fedbn", test=by_number)
    assert fingerprint(one.folder) == fingerprint(other.folder)


def test_names_of_clients_and_their_own_tests_are_in_the_tables(tmp_path: Path) -> None:
    clients = dict(zip(["north", "south", "west"], three_clients(), strict=True))
    tests = {name: samples(5 + number, 7) for number, name in enumerate(["west", "south", "north"])}
    found = run(tmp_path / "run", "fedbn", clients=clients, test=tests)
    assert set(found.clients["name"]) == {"north", "south", "west"}
    judged = found.clients[found.clients["round"] == 3].set_index("name")
    assert judged["accuracy"]["north"] * 7 == pytest.approx(round(judged["accuracy"]["north"] * 7))
    with pytest.raises(ConfigError, match="fedbn judges every client's model on the client's own test set"):
        run(tmp_path / "none", "fedbn")
    message = "batchnorm_statistics local judges every client's model on the client's own test set"
    with pytest.raises(ConfigError, match=message):
        run(tmp_path / "none", "fedavg", batchnorm_statistics="local")


def test_without_a_test_a_fifth_of_each_client_is_its_test(tmp_path: Path) -> None:
    found = run(tmp_path / "run", test=None)
    assert found.config["workload"]["test_share"] == 0.2
    assert found.clients["samples"][:3].tolist() == [32, 16, 24]


def test_options_have_short_and_full_names_and_the_same_errors(tmp_path: Path) -> None:
    found = run(tmp_path / "run", momentum=0.5, **{"training.batch_size": 8}, schedule={"sampling_rate": 0.5})
    settings = found.config
    assert (settings["training"]["momentum"], settings["training"]["batch_size"]) == (0.5, 8)
    assert settings["schedule"]["sampling_rate"] == 0.5
    for given, words in (
        ({"momentun": 0.5}, r"Unknown option momentun. Did you mean training.momentum"),
        ({"momentum": 2}, r"training.momentum: 2 is not allowed"),
        ({"mu": 0.5}, "mu belongs to"),
        ({"model": 3}, "model: 3 is not allowed. Allowed: a name"),
        ({"clients": None}, "test: it goes with clients.*Give clients too, or leave it out"),
        ({"clients": None, "test": None, "loss": abs}, "loss: it goes with clients.*federation has it .objective."),
    ):
        with pytest.raises(ConfigError, match=words):
            run(tmp_path / "refused", **given)
    with pytest.raises(ConfigError, match=r"Unknown method 'fedprx'. Did you mean fedprox"):
        run(tmp_path / "refused", "fedprx")
    assert not (tmp_path / "refused").exists()


@dataclasses.dataclass(frozen=True)
class Halved(FedAvg):
    share: float = 0.5

    def aggregate(self, server: Any, updates: Any, report: Any) -> Any:
        return server + np.float32(self.share) * updates.mean()


def test_a_method_may_be_a_class_or_an_instance_of_ones_own(tmp_path: Path) -> None:
    @dataclasses.dataclass(frozen=True)
    class Local(Halved):
        """In a function, as nothing that is imported could be."""

    one = run(tmp_path / "class", Halved)
    other = run(tmp_path / "instance", Halved(share=0.25))
    local = run(tmp_path / "local", Local)
    assert fingerprint(one.folder)["server"] == fingerprint(local.folder)["server"]
    assert fingerprint(one.folder)["server"] != fingerprint(other.folder)["server"]
    assert other.config["method"]["share"] == 0.25
    assert "class Halved" in (tmp_path / "class" / "source.txt").read_text()
    longer = run(tmp_path / "local", Local, resume=tmp_path / "local", rounds=4)
    assert len(longer.rounds) == 4


def test_a_run_is_resumed_with_the_same_objects_only(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole", rounds=4)
    folder = run(tmp_path / "part", rounds=2).folder
    given: dict[str, Any] = {"model": seeded(), "clients": three_clients(), "test": samples(20, 9)}
    before = fingerprint(folder)
    for changed, words in (
        ({"clients": three_clients()[::-1]}, r"the data is not the one that .*part was made with"),
        ({"model": seeded(1)}, r"the model is not the one that .*part was made with"),
        ({"model": torch.nn.Linear(4, 3)}, r"the model is not the one"),
        ({"momentum": 0.1}, r"training.momentum: 0.0 → 0.1"),
    ):
        with pytest.raises(ResultsError, match=words):
            raysim.run("fedavg", resume=folder, **{**given, **changed})
    assert fingerprint(folder) == before
    found = raysim.run("fedavg", resume=folder, rounds=4, **given)
    assert fingerprint(found.folder) == fingerprint(whole.folder)


def test_the_command_line_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = run(tmp_path / "run").folder
    for words in (["--resume", str(folder)], ["--config", str(folder / "config.yaml")], ["--workload", "given"]):
        assert main([*words, "--engine.backend", "inline", "--output", str(tmp_path / "no")]) == 2
        assert "the data of this run was given in Python" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()


def test_a_folder_gives_the_trained_module_to_who_has_its_class(tmp_path: Path) -> None:
    found = run(tmp_path / "run")
    again: Any = raysim.load_model(found.folder, model=Net())
    assert torch.equal(again.head.weight, found.model.head.weight)
    with pytest.raises(WorkloadError, match=r"raysim.load_model\(FOLDER, model=…\)"):
        raysim.load_model(found.folder)


def test_a_clients_own_model_is_made_of_the_data_that_was_given(tmp_path: Path) -> None:
    given: dict[str, Any] = {"clients": three_clients(), "test": [samples(20, seed) for seed in (5, 6, 7)]}
    found = run(tmp_path / "run", "ditto", **given)
    last = found.clients[found.clients["round"] == 3]
    models = [found.client_model(client) for client in range(3)]
    for model, (x, y), accuracy in zip(models, given["test"], last["accuracy"], strict=True):
        right = model(torch.tensor(x)).argmax(dim=1) == torch.tensor(y)
        assert float(right.float().mean()) == pytest.approx(accuracy)
    assert not torch.equal(models[0].head.weight, models[1].head.weight)
    later: Any = raysim.load_model(found.folder, client=1, model=Net(), **given)
    assert torch.equal(later.head.weight, models[1].head.weight)
    with pytest.raises(ResultsError, match=r"result.client_model\(0\), or raysim.load_model\(.*model=…, clients=…\)"):
        _ = found.model
    with pytest.raises(WorkloadError, match=r"a client's model, raysim.load_model\(FOLDER, client=…, clients=…\)"):
        raysim.load_model(found.folder, client=1, model=Net())
    with pytest.raises(ResultsError, match=r"the data is not the one that .* was made with"):
        raysim.load_model(found.folder, client=1, model=Net(), clients=three_clients()[::-1], test=given["test"])


def test_an_own_model_trains_on_a_named_workload(tmp_path: Path) -> None:
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    found = raysim.run(
        "fedavg", model=module, workload="digits", clients=3, limit=90, output=str(tmp_path / "r"), **QUICK
    )
    assert isinstance(found.model, torch.nn.Sequential) and found.config["workload"]["clients"] == 3


def test_progress_is_shown_when_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path / "quiet")
    assert capsys.readouterr().err == ""
    run(tmp_path / "shown", progress=True)
    shown = capsys.readouterr().err
    assert "fedavg on own data with Net, seed 0" in shown and "round 3/3" in shown


class Log(raysim.Observer):
    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []

    def clients_finished(self, rows: Any) -> None:
        self.told.append(("clients", [row["client"] for row in rows]))

    def round_finished(self, row: Any) -> None:
        self.told.append(("round", row["round"]))


def test_an_observer_of_ones_own_is_told_of_clients_and_rounds(tmp_path: Path) -> None:
    log = Log()
    found = run(tmp_path / "run", observer=log, rounds=2, progress=True)
    assert log.told == [("clients", [0, 1, 2]), ("round", 1), ("clients", [0, 1, 2]), ("round", 2)]
    assert len(found.rounds) == 2
