"""Dropout layers of a user's module, whose draws are faster than torch's and the same on every processor."""

from __future__ import annotations

import torch

from raysim.workloads.models.dropout import GeneratorDropout


def draw_from_generator(module: torch.nn.Module) -> None:
    """Have the module's ``Dropout`` layers draw from torch's global generator on every processor.

    torch itself draws from MKL's generator on Intel's, and from its own on others, which have the same bits here in 0.4
    of the time. Layers that change their input in place, and dropout that a module calls as a function, stay as they
    are.
    """
    for part in module.modules():
        if type(part) is torch.nn.Dropout and not part.inplace:
            part.__class__ = GeneratorDropout
