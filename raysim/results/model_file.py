"""``model.safetensors``: the global model at the end of a run, with the names of the module's own ``state_dict``.

Code with the module's class reads it without raysim (``module.load_state_dict(safetensors.torch.load_file(path))``).
Its header also holds the task (shape of inputs, number of classes), so that raysim builds the module without the data.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim.config.conditions import own_models
from raysim.config.run_config import RunConfig
from raysim.errors import CheckpointError
from raysim.storage.atomic_files import write_atomically
from raysim.storage.folder_files import open_file
from raysim.storage.state_files import damaged
from raysim.workloads.federated_data import InputSpec, distinct_input_specs

if TYPE_CHECKING:
    import torch

    from raysim.client_side.worker import Worker
    from raysim.workloads.federated_data import Federation

MODEL_NAME = "model.safetensors"
CHECKSUM = "sha256"
"""In the file's header: over its tensors and what else the header holds."""


def has_global_model(config: RunConfig, federation: Federation) -> bool:
    """Whether a run trains one model, the same for all clients."""
    return not own_models(config) and len(distinct_input_specs(federation)) == 1


def save_global_model(folder: Path, worker: Worker, server: Any, round: int) -> None:
    """Write the file from the server's state after ``round``; nothing where there is no global model.

    Raises:
        DiskFullError, ResultsError: it cannot be written.
    """
    from safetensors.torch import save

    if not has_global_model(worker.config, worker.federation):
        return
    module = worker.deployed(0, worker.method.message(server, 0), None).module
    facts = {
        "task": json.dumps(dataclasses.asdict(worker.federation.input_spec(0))),
        "round": str(round),
        "format": "pt",
    }
    tensors = tensors_of(module)
    written = save(tensors, {**facts, CHECKSUM: _checksum(tensors, facts)})
    write_atomically(folder / MODEL_NAME, with_sorted_header(written))


def global_model(config: RunConfig, folder: Path) -> torch.nn.Module:
    """The model in the file.

    Raises:
        DamagedError: it is no such file.
        CheckpointError: its tensors are not those of the config's model.
    """
    from safetensors import SafetensorError, safe_open

    path = folder / MODEL_NAME
    try:
        open_file(path).close()  # safetensors would follow a link
        with safe_open(path, framework="pt") as file:
            facts = file.metadata()
            task = _task(json.loads(facts["task"]))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
        written = facts.pop(CHECKSUM, None)  # absent in files of earlier versions
        if written is not None and written != _checksum(tensors, facts):
            raise ValueError("its values are not those that were written")
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise damaged(path, str(error)) from error
    return module_with(tensors, config, task, folder)


def with_sorted_header(written: bytes) -> bytes:
    """The same safetensors file with its header's entries in order, so that equal models are equal files.

    The library writes the texts of the header in an order that changes from process to process. A file is the header's
    length (8 bytes, little-endian), the header (JSON, filled with spaces to a multiple of 8), and the tensors.
    """
    end = 8 + int.from_bytes(written[:8], "little")
    entries = json.loads(written[8:end])
    facts = entries.pop("__metadata__", {})
    entries = dict(sorted(entries.items(), key=lambda entry: (entry[1]["data_offsets"], entry[0])))
    header = json.dumps({"__metadata__": dict(sorted(facts.items())), **entries}, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + written[end:]


def tensors_of(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """A copy of the module's ``state_dict``, every tensor with memory of its own."""
    import torch

    # In the simulation they are views of one flat vector, the kernels of convolutions not in the usual order.
    return {
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, tensor in module.state_dict().items()
        if isinstance(tensor, torch.Tensor)  # no "extra state" of a user's own module, which may be any object
    }


def _checksum(tensors: Mapping[str, torch.Tensor], facts: Mapping[str, str]) -> str:
    """SHA-256 of tensors with their names, types and shapes, and of texts with theirs."""
    import torch

    found = hashlib.sha256(json.dumps(dict(sorted(facts.items()))).encode())
    for name, tensor in sorted(tensors.items()):
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
        found.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def module_with(
    tensors: dict[str, torch.Tensor], config: RunConfig, inputs: InputSpec, folder: Path
) -> torch.nn.Module:
    """A new module of the config's model and method with these values, in evaluation mode.

    Raises:
        CheckpointError: they are not those of such a module.
    """
    import torch

    from raysim.client_side.worker import new_module

    module = new_module(config, inputs)
    others = {name: value for name, value in module.state_dict().items() if not isinstance(value, torch.Tensor)}
    try:
        module.load_state_dict(tensors | others)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise CheckpointError(f"The model in {folder} does not fit its config.yaml: {reason}") from error
    return module.eval()


def _task(found: dict[str, Any]) -> InputSpec:
    given: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}
    inputs = InputSpec(**given)
    sizes = (*inputs.input_shape, inputs.classes, *inputs.categories, inputs.vocabulary + 1, inputs.edge_width + 1)
    whole = all(type(size) is int and size > 0 for size in sizes) and type(inputs.padded) is bool
    if not (whole and inputs.kind in ("array", "graph", "nodes") and isinstance(inputs.name, str)):
        raise ValueError(f"{found} is no task")
    return inputs
