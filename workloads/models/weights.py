"""Reading a network's weights from a local file; nothing is fetched and no pickled code is run."""

from __future__ import annotations

from collections.abc import Mapping, Set
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from raysim.workloads.errors import WorkloadError
from raysim.workloads.files.regular_files import open_regular
from raysim.workloads.models.classifier import Classifier


def load_weights(model: Classifier, file: str, *, skip: Set[str], published_head: str) -> None:
    """Copy the file's tensors into ``model``, in place, by their names.

    These are the model's own, ``body.`` and ``head.`` before all; a head that is missing or has another shape, as of
    other classes, keeps its present values. Or they are those that the body's network was published with: then names
    that start with ``published_head`` are passed over, and those in ``skip`` keep their present values.

    BatchNorm's ``num_batches_tracked``, which older files lack, may be missing. Any other missing or unknown name of
    the body and any differing shape raises WorkloadError before a value is changed.
    """
    state = read_state(file)
    if not any(name.startswith(("body.", "head.")) for name in state):
        body = {
            name: value for name, value in state.items() if not (published_head and name.startswith(published_head))
        }
        _load(model.body, body, file, skip)
        return
    _load(model.body, {name.removeprefix("body."): state[name] for name in state if not name.startswith("head.")}, file)
    head = {name.removeprefix("head."): value for name, value in state.items() if name.startswith("head.")}
    if _shapes(head) == _shapes(model.head.state_dict()):
        model.head.load_state_dict(head)


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, torch.Size]:
    return {name: value.shape for name, value in tensors.items()}


def _load(body: nn.Module, loaded: Mapping[str, Tensor], file: str, skip: Set[str] = frozenset()) -> None:
    """Copy tensors into a body of the same names; WorkloadError, and no value changed, where one does not fit."""
    wanted = {name: value for name, value in body.state_dict().items() if name not in skip}
    missing = [name for name in wanted if name not in loaded and not name.endswith("num_batches_tracked")]
    unknown = [name for name in loaded if name not in wanted and name not in skip]
    shapes = [
        f"{name} is {tuple(loaded[name].shape)}, not {tuple(value.shape)}"
        for name, value in wanted.items()
        if name in loaded and loaded[name].shape != value.shape
    ]
    problems = [
        f"{what}: {', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''}"
        for what, names in (("missing", missing), ("unknown", unknown), ("of another shape", shapes))
        if names
    ]
    if problems:
        raise WorkloadError(
            f"The weights file {file} does not fit this network: {'; '.join(problems)}. It must hold the state dict of "
            "the same network, by raysim's names (body.…, head.…) or by those that it was published with."
        )
    with torch.no_grad():
        for name, value in wanted.items():
            if name in loaded:
                value.copy_(loaded[name])


def read_state(file: str) -> dict[str, Tensor]:
    """The named tensors of a .safetensors file, or of a state dict by torch.save; WorkloadError if it has none."""
    path = Path(file).expanduser()
    try:
        open_regular(path).close()  # both readers would wait for a pipe
        state = (
            load_file(path)
            if path.suffix == ".safetensors"
            else torch.load(path, map_location="cpu", weights_only=True)
        )
    except Exception as error:  # the two readers raise many types, undocumented, for damaged files
        reason = str(error).strip().split("\n")[0]
        raise WorkloadError(
            f"The weights file {path} cannot be read ({type(error).__name__}: {reason}). It must be an undamaged"
            " .safetensors file or a state dict of tensors written by torch.save."
        ) from error
    if not isinstance(state, dict) or not all(isinstance(value, Tensor) for value in state.values()):
        raise WorkloadError(f"The weights file {path} must hold a state dict: names mapped to tensors, nothing else.")
    return state
