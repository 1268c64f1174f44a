"""Code of ``__main__`` and of notebook cells reaches Ray's processes, and what cannot be sent is named."""

from __future__ import annotations

import dataclasses
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import raysim
from raysim.actors.sending import check_object, check_sendable, send_modules_by_name
from raysim.config.run_config import RunConfig, with_sections
from raysim.errors import ConfigError
from raysim.workloads.given.given_data import GivenModel
from tests.long_tests import long

ROOT = Path(__file__).parents[2]
NET = """
import torch
import raysim

class Net(torch.nn.Module):
    def __init__(self, task):
        super().__init__()
        self.layer = torch.nn.Linear(task.input_shape[0], task.classes)

    def forward(self, x):
        return self.layer(x)
"""
"""The first program of many a user: ``classes`` beside ``torch`` is what torch.classes is called too."""
AGAIN = f"exec({NET!r}, globals())\n"
"""The same class once more, from code that is in no file, as that of ``python -c`` and of standard input."""
RUN = """
x, y = torch.randn(60, 4), torch.randint(0, 3, (60,))
clients = raysim.split((x, y), clients=3, partition="iid")
result = raysim.run("fedavg", model=Net, clients=clients, rounds=1, pictures=False, engine={"dashboard": False})
print("rounds", len(result.rounds))
"""
LOCK = threading.Lock()


@pytest.mark.slow
def test_a_class_of_a_program_that_asks_the_task_for_its_classes_is_sent(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(NET + RUN + AGAIN + RUN, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=590
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines().count("rounds 1") == 2


@long  # test_own_data_examples.py runs a notebook too
@pytest.mark.slow
def test_a_class_of_a_notebook_that_asks_the_task_for_its_classes_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=":")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in (NET, RUN)])
    place = {"metadata": {"path": str(tmp_path)}}
    client.NotebookClient(notebook, timeout=590, kernel_name="python3", resources=place).execute()
    printed = "".join(output.get("text", "") for output in notebook.cells[1]["outputs"])
    assert "rounds 1" in printed


def by_value(name: str) -> Callable[[Any], Any]:
    """A function that is sent by value and has torch and a name in its code that one of torch's modules bears."""
    space: dict[str, Any] = {"t": torch, "torch": torch, "__name__": "__main__"}
    exec(f"def use(task):\n    return t.nn, task.{name}", space)
    found: Callable[[Any], Any] = space["use"]
    return found


@pytest.mark.parametrize("name", ["classes", "ops", "backends.cudnn", "utils.deterministic", "_VF"])
def test_names_that_modules_of_torch_bear_too_are_sent(name: str) -> None:
    import ray.cloudpickle as cloudpickle

    send_modules_by_name()
    again = pickle.loads(cloudpickle.dumps(by_value(name)))
    assert again(by_value.__globals__["torch"]) is not None


def test_a_module_that_only_its_parent_knows_is_sent_by_name() -> None:
    send_modules_by_name()
    assert pickle.loads(pickle.dumps(torch.ops.aten)) is torch.ops.aten


def test_what_cannot_be_sent_is_named_with_who_uses_it() -> None:
    lock = LOCK

    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with lock:
                return x

    class Held(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.file = threading.Lock()

    class Shared(torch.nn.Module):
        gate = LOCK

    def loss(outputs: torch.Tensor, labels: torch.Tensor, gate: Any = LOCK) -> torch.Tensor:
        return outputs.mean()

    found = {
        "lock, which test_what_cannot_be_sent_is_named_with_who_uses_it.<locals>.Net.forward takes from": Net,
        "attribute file of an object of test_what_cannot_be_sent_is_named_with_who_uses_it.<locals>.Held": Held(),
        "attribute gate of class test_what_cannot_be_sent_is_named_with_who_uses_it.<locals>.Shared": Shared,
    }
    for sentence, code in found.items():
        with pytest.raises(ConfigError) as caught:
            check_object("model Net", code)
        message = str(caught.value)
        assert message.startswith(f"model Net: {sentence}") and "\n" not in message
        assert "of type lock, cannot be sent to Ray's processes (TypeError: cannot pickle '_thread.lock'" in message
    with pytest.raises(ConfigError, match=r"loss: entry 0, of type lock"):
        check_object("loss", loss)


def test_a_config_says_which_section_cannot_be_sent_and_copies_no_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(tensor: torch.Tensor, protocol: object) -> None:
        raise AssertionError("a tensor was copied")

    monkeypatch.setattr(torch.Tensor, "__reduce_ex__", refuse)
    usual = raysim.default_config("fedavg")
    model = GivenModel(class_name="Net")
    check_sendable(with_sections(usual, model=model.holding(torch.nn.Linear(2, 2))))
    config: RunConfig = with_sections(usual, model=model.holding(threading.Lock()))
    with pytest.raises(ConfigError, match=r"^model Net: attribute held of an object of GivenModel, of type lock"):
        check_sendable(config)


@dataclasses.dataclass
class Odd:
    def __reduce__(self) -> Any:
        raise RuntimeError("no\nwords")


def test_what_has_no_part_to_blame_is_named_itself() -> None:
    with pytest.raises(ConfigError, match=r"^model Odd: it, of type Odd, cannot .* \(RuntimeError: no words\)"):
        check_object("model Odd", Odd())
