"""Reading a network's weights from a local file; nothing is fetched and no pickled code is run."""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from raysim.workloads.errors import WorkloadError


def load_body(body: nn.Module, file: str, *, skip: Set[str], head: str) -> None:
    """Copy the file's tensors into ``body``, in place; both use the same names.

    Names in ``skip`` keep their present values, and the file's names that start with ``head`` are passed over.
    BatchNorm's ``num_batches_tracked``, which older files lack, may be missing. Any other missing or unknown name and
    any differing shape raises WorkloadError before a value is changed.
    """
    loaded = {name: value for name, value in read_state(file).items() if not name.startswith(head)}
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
            f"The weights file {file} does not fit this network: {'; '.join(problems)}."
            " It must hold torchvision's state dict of the same network."
        )
    with torch.no_grad():
        for name, value in wanted.items():
            if name in loaded:
                value.copy_(loaded[name])


def read_state(file: str) -> dict[str, Tensor]:
    """The named tensors of a .safetensors file, or of a state dict by torch.save; WorkloadError if it has none."""
    path = Path(file).expanduser()
    try:
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
