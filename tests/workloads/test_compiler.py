"""torchvision and PyTorch Geometric without torch's compiler, which is loaded once something asks for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOADED = "[name for name in ('torch._dynamo', 'sympy', 'triton') if name in sys.modules]"
BUILT = f"""
import sys
import torch
from raysim.workloads.images.torchvision_sets import Cifar10
from raysim.workloads.models import torchvision_models
from raysim.workloads._torchvision import datasets
torchvision_models.mobilenet_v2(3, 10, small=True, width=0.1, dropout=0.0)(torch.zeros(2, 3, 8, 8)).sum().backward()
assert datasets.CIFAR10.__module__ == "torchvision.datasets.cifar"
from raysim.workloads.models import gnn
gnn.Convolution("add")
assert not {LOADED} and "torch._dynamo.utils" not in sys.modules, {LOADED}
"""
MEANWHILE = """
from raysim.workloads._compiler import left_out
from torchvision.ops import roi_align
supported = sys.modules["torchvision.ops.roi_align"].is_compile_supported
with left_out("torch._dynamo.utils"):
    from torch._dynamo.utils import is_compile_supported
    assert is_compile_supported("cpu") and "torch._dynamo" in sys.modules
assert sys.modules["torch._dynamo.utils"].is_compile_supported is not is_compile_supported
"""
AFTERWARDS = """
from torch_geometric import is_torch_instance
assert is_torch_instance(torch.compile(torch.nn.Linear(1, 1)), torch.nn.Linear)
import torch._dynamo.utils as real
assert supported("cpu") == real.is_compile_supported("cpu") and real.__file__
assert float(torch.compile(lambda x: x + 1, backend="eager")(torch.ones(()))) == 2
with left_out("torch._dynamo.utils"):  # as for a process that had loaded it before
    assert sys.modules[real.__name__] is real
assert sys.modules[real.__name__] is real
"""


@pytest.mark.slow
def test_the_compiler_is_left_alone() -> None:
    """Not loaded by what is built; and there for whoever asks for it meanwhile, afterwards, or did so before."""
    code = BUILT + MEANWHILE + AFTERWARDS
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
