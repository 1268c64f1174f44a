"""The trained model of a run: what is written at the end, and what is read back from the folder."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import raysim
from raysim.config.run_config import RunConfig
from raysim.engine.load_federation import load_federation
from raysim.errors import CheckpointError, ConfigError, DamagedError, ResultsError
from raysim.methods.fedavg import FedAvg
from raysim.results.newest_state import newest_state
from raysim.results.result import RunResult, load_result
from raysim.storage import checkpoint
from raysim.storage.run_folder import RunFolder
from raysim.workloads.metrics import evaluate
from raysim.workloads.models.image_specs import Cnn
from raysim.workloads.parallel_map import Sequential
from tests.small_runs import LOGISTIC, small_run, worker_of

TASKS = {"workload.name": "toy-graphs", "workload.limit": None, "workload.graphs_per_client": 60, "model.name": "gin"}


def small(folder: Path, **options: Any) -> RunConfig:
    return small_run(folder, LOGISTIC, **{"schedule__rounds": 2, **options})


def judged(config: RunConfig, module: torch.nn.Module, client: int | None = None) -> tuple[float, float]:
    """Accuracy and loss on the global test set, or on a client's own."""
    federation = load_federation(config, Sequential())
    if client is None:
        samples = federation.global_test(0, federation.global_test_size, "cpu")
    else:
        samples = federation.client(client, "cpu").test
    found = evaluate(module, samples.batches(config.evaluation.batch_size), federation.input_spec(client or 0).classes)
    return found.accuracy, found.loss


# -- the global model -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["fedavg", "fedgh", "centralized"])
def test_the_global_model_is_the_one_that_was_judged(tmp_path: Path, method: str) -> None:
    config = small(tmp_path / "run", method__name=method, model__name="mlp")
    result = raysim.run(config)
    accuracy, loss = judged(config, result.model)
    assert accuracy == result.summary["accuracy"] and loss == pytest.approx(result.summary["loss"], rel=1e-6)
    assert result.model is result.model and not result.model.training


def test_the_file_has_the_names_of_the_module(tmp_path: Path) -> None:
    """A convolution's kernels lie in another order within the simulation; batch norm counts in integers."""
    config = small(tmp_path / "run", model__name="mobilenet", model__width=0.1)
    result = raysim.run(config)
    tensors = load_file(tmp_path / "run" / "model.safetensors")
    module = config.model.build(load_federation(config, Sequential()).input_spec(0))
    module.load_state_dict(tensors)
    assert judged(config, module.eval())[0] == result.summary["accuracy"]
    assert {tensor.dtype for tensor in tensors.values()} == {torch.float32, torch.int64}


def test_the_model_is_read_without_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = small(tmp_path / "run")
    result = raysim.run(config)
    monkeypatch.setattr(type(config.workload), "load", lambda *arguments: pytest.fail("the data was loaded"))
    expected = result.model.state_dict()
    for found in (raysim.load_model(tmp_path / "run"), load_result(tmp_path / "run").model):
        assert all(torch.equal(value, expected[name]) for name, value in found.state_dict().items())


def test_a_run_that_has_not_ended_gives_the_model_of_its_last_checkpoint(tmp_path: Path) -> None:
    config = small(tmp_path / "run", schedule__rounds=3, engine__checkpoint_every=1, engine__keep_checkpoints=3)
    raysim.run(config)
    third = raysim.load_model(tmp_path / "run").state_dict()
    (tmp_path / "run" / "model.safetensors").unlink()
    again = raysim.load_model(tmp_path / "run").state_dict()
    assert all(torch.equal(again[name], third[name]) for name in third)
    newest = checkpoint.newest_first(tmp_path / "run" / "checkpoints")[0]
    (newest / "server.safetensors").write_bytes(b"torn")
    second = raysim.load_model(tmp_path / "run").state_dict()
    assert not all(torch.equal(second[name], third[name]) for name in third)
    assert newest.is_dir()  # only looked at
    for path in checkpoint.newest_first(tmp_path / "run" / "checkpoints"):
        (path / "manifest.json").unlink()
    with pytest.raises(DamagedError, match=r"manifest\.json.*finish the run with --resume"):
        raysim.load_model(tmp_path / "run")


def test_a_run_that_is_trained_longer_has_no_model_of_before(tmp_path: Path) -> None:
    config = small(tmp_path / "run")
    before = raysim.run(config).model.state_dict()
    longer = replace(config, schedule=replace(config.schedule, rounds=3))
    found = raysim.run(longer, resume=tmp_path / "run").model.state_dict()
    assert not all(torch.equal(found[name], before[name]) for name in before)


# -- a client's model -----------------------------------------------------------------------------------------------


def test_a_client_of_a_personal_method_has_the_model_that_it_was_judged_by(tmp_path: Path) -> None:
    config = small(tmp_path / "run", method__name="fedbn", model__name="mobilenet", model__width=0.1)
    result = raysim.run(config)
    assert not (tmp_path / "run" / "model.safetensors").exists()
    last = result.clients[result.clients["round"] == 2].set_index("client")
    for client in (0, 3):
        module = raysim.load_model(tmp_path / "run", client=client)
        assert judged(config, module, client)[0] == last.loc[client, "accuracy"]
        for found in (result, load_result(tmp_path / "run")):
            same = found.client_model(client).state_dict()
            assert all(torch.equal(same[name], tensor) for name, tensor in module.state_dict().items())
    with pytest.raises(ConfigError, match=r"clients: .* names its workload, digits, which is read\. Leave it out"):
        raysim.load_model(tmp_path / "run", client=0, clients=[])
    with pytest.raises(ResultsError, match=r"every client has a model of its own.*client=0"):
        _ = result.model
    no_client: tuple[Any, ...] = (4, -1, "0")
    for wrong in no_client:
        with pytest.raises(ResultsError, match=r"no client .* Allowed: 0 to 3"):
            raysim.load_model(tmp_path / "run", client=wrong)


def test_clients_of_different_tasks_have_models_of_their_own(tmp_path: Path) -> None:
    config = small(tmp_path / "run", **TASKS)
    result = raysim.run(config)
    with pytest.raises(ResultsError, match=r"different tasks.*client=0"):
        _ = result.model
    last = result.clients[result.clients["round"] == 2].set_index("client")
    modules = [raysim.load_model(tmp_path / "run", client=client) for client in range(4)]
    accuracies = [judged(config, module, client)[0] for client, module in enumerate(modules)]
    assert accuracies == last["accuracy"].loc[list(range(4))].tolist()


def test_any_client_of_a_global_method_has_the_global_model(tmp_path: Path) -> None:
    result = raysim.run(small(tmp_path / "run"))
    found = raysim.load_model(tmp_path / "run", client=2).state_dict()
    assert all(torch.equal(found[name], value) for name, value in result.model.state_dict().items())


# -- own code and damage --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mine(FedAvg):
    """FedAvg, as a user's own class."""


def own(folder: Path) -> RunResult:
    return raysim.run(replace(small(folder), method=Mine()))


def test_code_that_a_folder_names_is_imported_only_if_it_is_given_or_trusted(tmp_path: Path) -> None:
    result = own(tmp_path / "run")
    assert isinstance(result.model, torch.nn.Module)  # the run's own objects, nothing is imported
    nothing: list[type[Any]] = []
    for untrusted in (False, Cnn, nothing):
        with pytest.raises(ConfigError, match=r"names code of its own: method '.*:Mine'.*trust=MyClass.*trust=True"):
            raysim.load_model(tmp_path / "run", trust=untrusted)
    for trusted in (True, Mine, [Cnn, Mine]):
        raysim.load_model(tmp_path / "run", trust=trusted)
    with pytest.raises(ConfigError, match="trust: 'Mine' is not allowed"):
        raysim.load_model(tmp_path / "run", trust=["Mine"])  # type: ignore[list-item]


def test_damage_is_told(tmp_path: Path) -> None:
    raysim.run(small(tmp_path / "run"))
    path = tmp_path / "run" / "model.safetensors"
    whole = path.read_bytes()
    header = int.from_bytes(whole[:8], "little")
    names = json.loads(whole[8 : 8 + header])
    values = bytearray(whole)
    values[-2] ^= 1  # one bit of one number
    torn = (b"", whole[:20], whole[:-4], bytes(values))
    for broken in (*torn, *(whole.replace(*change) for change in ((b"task", b"tusk"), (b"array", b"arrax")))):
        path.write_bytes(broken)
        with pytest.raises(DamagedError, match=r"damaged: .*model\.safetensors"):
            raysim.load_model(tmp_path / "run")
    assert "head.weight" in names
    path.write_bytes(whole.replace(b"head.weight", b"tail.weight"))
    with pytest.raises(DamagedError, match="its values are not those that were written"):
        raysim.load_model(tmp_path / "run")
    path.write_bytes(whole)
    tensors = {name.replace("head", "tail"): tensor for name, tensor in load_file(path).items()}
    save_file(tensors, path, {"task": names["__metadata__"]["task"]})  # as an earlier version: without a checksum
    with pytest.raises(CheckpointError, match=r"does not fit its config\.yaml.*tail\.weight"):
        raysim.load_model(tmp_path / "run")
    with pytest.raises(ResultsError, match="is no run folder"):
        raysim.load_model(tmp_path)


def test_only_the_states_that_are_asked_for_are_kept(tmp_path: Path) -> None:
    config = small(tmp_path / "run", method__name="local")
    raysim.run(config)
    worker = worker_of(config)
    for clients, expected in ((None, [0, 1, 2, 3]), ((2,), [2]), ((), [])):
        state = newest_state(RunFolder(tmp_path / "run"), worker, clients)
        assert (state.round, list(state.clients)) == (2, expected)
